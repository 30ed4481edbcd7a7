package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// TestSolveVector multiplies each solution by its triangle again. The rest of the matrix, which ends at a page that can't be
// touched, is not a number.
func TestSolveVector(t *testing.T) {
	eachKernel(t, func(t *testing.T) (results [][]float64) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, n := range slices.Concat(orders, []int{8, 9, 24, 31, 32, 47, 130}) {
			for i := range 8 {
				upper, unit, transposed := i&1 != 0, i&2 != 0, i&4 != 0
				a := guarded.Slice[float64](n * n)
				for k := range a {
					switch r, c := k/n, k%n; {
					case r == c && unit, r < c && !upper, r > c && upper:
						a[k] = math.NaN()
					case r == c:
						a[k] = 2 + rng.Float64()
					default:
						a[k] = rng.NormFloat64() / float64(n)
					}
				}
				x := guarded.Slice[float64](n)
				for k := range x {
					x[k] = rng.NormFloat64()
				}
				b := slices.Clone(x)
				SolveVector(a, n, x, upper, unit, transposed)
				t.Run(fmt.Sprint(n, upper, unit, transposed), func(t *testing.T) { checkSolution(t, a, n, x, b, upper, unit, transposed) })
				results = append(results, slices.Clone(x))
			}
		}
		return results
	})
}

func checkSolution(t *testing.T, a []float64, n int, x, b []float64, upper, unit, transposed bool) {
	for i, want := range b {
		sum, size := 0.0, math.Abs(want)
		for k, v := range x {
			r, c := i, k
			if transposed {
				r, c = k, i
			}
			f := a[r*n+c]
			switch {
			case r == c && unit:
				f = 1
			case r < c && !upper, r > c && upper:
				continue
			}
			sum += f * v
			size += math.Abs(f * v)
		}
		if !(math.Abs(sum-want) <= 1e-15*float64(n+4)*size) {
			t.Fatalf("element %d of the product is %v, want %v", i, sum, want)
		}
	}
}
