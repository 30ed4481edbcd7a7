package cpu

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestLongDot computes a dot product in parts, of which the last is short.
func TestLongDot(t *testing.T) {
	const k = 2*dotPart + 17
	x, y := make([]float64, k), make([]float64, k)
	for i := range x {
		x[i], y[i] = float64(i%7)/8, float64(i%5)/32
	}
	for d, tolerance := range map[ir.DType]float64{ir.F32: 1e-5, ir.F64: 1e-13, ir.BF16: 1e-2, ir.F16: 1e-3} {
		sameAsRef(t, New(), fmt.Sprintf(`program @p { %%x = parameter "x" : %v[%d]
			%%y = parameter "y" : %v[%d]
			return matmul(%%x, %%y) }`, d, k, d, k), tolerance, x, y)
	}
}
