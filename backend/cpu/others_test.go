package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
)

// TestProductsOfOthersOfLongRows has rows of several parts whose products stay among the numbers, leave them at one end
// or at both, come back, or are zero or NaN from an element on.
func TestProductsOfOthersOfLongRows(t *testing.T) {
	const n = 3*kernels.OthersPart + 77
	rng := rand.New(rand.NewPCG(5, 6))
	around := func(center, width float64) func(i int) float64 {
		return func(int) float64 {
			return (center + width*(rng.Float64()-0.5)) * float64(1-2*rng.IntN(2))
		}
	}
	near, small, large := around(1, 0.01), around(0.5, 1), around(3, 1)
	with := func(f func(i int) float64, places map[int]float64) func(i int) float64 {
		return func(i int) float64 {
			if v, ok := places[i]; ok {
				return v
			}
			return f(i)
		}
	}
	rows := []func(i int) float64{
		near, small, large,
		with(near, map[int]float64{n / 2: 0}),
		with(near, map[int]float64{3: 0, n - 2: 0}),
		with(small, map[int]float64{n / 2: math.Inf(-1)}),
		with(small, map[int]float64{n / 2: 0}),
		with(large, map[int]float64{n / 2: 0}),
		with(large, map[int]float64{n / 2: math.Inf(1)}),
		with(near, map[int]float64{n / 3: math.NaN()}),
		with(small, map[int]float64{n / 3: math.NaN()}),
		func(i int) float64 { // zero on the left where the right is infinite
			if i < n/2 {
				return small(i)
			}
			return large(i)
		},
		func(i int) float64 { // comes back to numbers that are small or large
			if i/500%2 == 0 {
				return 0.75
			}
			return 4. / 3
		},
	}
	var values []float64
	for _, row := range rows {
		for i := range n {
			values = append(values, row(i))
		}
	}
	for d, tolerance := range map[ir.DType]float64{ir.F32: 1e-6, ir.F64: 1e-12, ir.BF16: 2e-2, ir.F16: 2e-3} {
		for r := range rows {
			text := fmt.Sprintf(`program @p {
				%%x = parameter "x" : %v[1,%d]
				return _products_of_others(%%x)
			}`, d, n)
			for name, b := range map[string]*Backend{"native": New(), "portable": NewPortable()} {
				t.Run(fmt.Sprint(d, r, name), func(t *testing.T) { sameAsRef(t, b, text, tolerance, values[r*n:(r+1)*n]) })
			}
		}
		text := fmt.Sprintf(`program @p {
			%%x = parameter "x" : %v[%d,%d]
			return _products_of_others(%%x)
		}`, d, len(rows), n)
		t.Run(fmt.Sprint(d), func(t *testing.T) { sameAsRef(t, New(), text, tolerance, values) })
	}
}
