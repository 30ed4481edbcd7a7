package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// TestQuotients holds quotients by an inverse to the processor's division, bit for bit but for signs of zeros.
func TestQuotients(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		rng := rand.New(rand.NewPCG(7, 8))
		special := []float64{0, 1, -1, 3, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 0x1p-900, 49, 0x1p53 - 1}
		for range 2000 {
			src, dst := guarded.Slice[float64](3*lanes), guarded.Slice[float64](3*lanes)
			for i := range src {
				src[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(200)-100)
				if i%4 == 0 {
					src[i] = special[rng.IntN(len(special))]
				}
			}
			by := math.Ldexp(rng.NormFloat64(), rng.IntN(200)-100)
			if rng.IntN(4) == 0 {
				by = float64(1 + rng.IntN(100))
			}
			use.quotientsBy(&dst[0], &src[0], by, 1/by, 3)
			for i, v := range src {
				if want := v / by; dst[i] != want && (dst[i] == dst[i] || want == want) {
					t.Fatalf("%v/%v is %v, want %v", v, by, dst[i], want)
				}
			}
		}
		return nil
	})
}

// TestSolveDividesByAny solves with triangles whose diagonals have elements without an inverse of full precision.
func TestSolveDividesByAny(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range []int{5, 8, 16} {
			for _, d := range []float64{0, 0x1p-1060, 0x1p1020, math.Inf(1), math.NaN()} {
				for _, upper := range []bool{false, true} {
					a, b := random(n, n), random(n, 21)
					for i := range n {
						a.at(i, i)[0] += 2
					}
					a.at(n/2, n/2)[0] = d
					x := copied(b)
					Solve(a, x, upper, false)
					for j := range b.Cols {
						sum := b.at(n/2, j)[0]
						for c := range n - n/2 - 1 {
							if k := n - 1 - c; upper {
								sum = math.FMA(-a.at(n/2, k)[0], x.at(k, j)[0], sum)
							}
						}
						for k := range n / 2 {
							if !upper {
								sum = math.FMA(-a.at(n/2, k)[0], x.at(k, j)[0], sum)
							}
						}
						if got, want := x.at(n/2, j)[0], sum/d; got != want && (got == got || want == want) {
							t.Fatalf("%d, %v, %v: %v, want %v", n, d, upper, got, want)
						}
					}
				}
			}
		}
		return nil
	})
}

// TestGreatestAndExchange checks them with numbers that are none, in memory that ends where none may be touched.
func TestGreatestAndExchange(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		rng := rand.New(rand.NewPCG(9, 9))
		for blocks := 1; blocks < 6; blocks++ {
			for at := range blocks * lanes {
				x, y := guarded.Slice[float64](blocks*lanes), guarded.Slice[float64](blocks*lanes)
				for i := range x {
					x[i], y[i] = rng.Float64(), -1
				}
				x[(at+3)%len(x)], x[at] = math.NaN(), -2
				if got := use.greatest(&x[0], blocks); got != 2 {
					t.Fatalf("greatest of %d with -2 as %d: %v", len(x), at, got)
				}
				use.exchange(&x[0], &y[0], blocks)
				for i, v := range x {
					if v != -1 || y[i] == -1 {
						t.Fatal(fmt.Sprint(i, v, y[i]))
					}
				}
			}
		}
		return nil
	})
}
