package native

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

// sigmoid is the reference, which package math's exponential makes 0 too early.
func sigmoid(x float64) float64 {
	if x < -700 {
		return math.Exp(x)
	}
	return 1 / (1 + math.Exp(-x))
}

// TestSweep64 tries each function of f64 on floats of all sizes.
func TestSweep64(t *testing.T) {
	n := 200_000
	if !longtest.Enabled() {
		n = 20_000
	}
	r := rand.New(rand.NewPCG(1, 64))
	x := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, math.MaxFloat64, 5e-324, 709.9, -710.4, 0.999999999999, 6, -6.1}
	for range n {
		x = append(x, math.Float64frombits(r.Uint64()), r.NormFloat64(), 1000*r.NormFloat64(), 2*r.Float64()-1)
	}
	y := make([]float64, len(x))
	for _, isa := range Available() {
		ops := functions(isa, ir.F64)
		if len(ops) < 15 {
			t.Errorf("%v: only %d functions are native", isa, len(ops))
		}
		for _, op := range ops {
			most := op.Spec().Tolerance(ir.F64)
			run1(t, isa, op, x, y)
			reference := op.Spec().Scalar.F1
			if op == aten.Sigmoid {
				reference = sigmoid
			}
			worst, at := 0.0, 0.0
			for i, v := range x {
				want := reference(v)
				if off := unitsOff64(y[i], want); !(off <= worst) {
					worst, at = off, v
				}
			}
			t.Logf("%v %v: %.2f units", isa, op, worst)
			if !(worst <= most) {
				t.Errorf("%v %v: %.2f units off at %v, at most %v", isa, op, worst, at, most)
			}
		}
	}
}
