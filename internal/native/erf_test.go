package native

import (
	"math"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestTableForms looks coefficients up in vectors of all lengths: kernels with f64 in them have half as
// many lanes. The bits must be the same, also next to where the coefficients change.
func TestTableForms(t *testing.T) {
	for _, c := range []struct {
		op   ir.Op
		step float32 // half of the distance from one polynomial to the next
	}{{aten.Erf, 1.0 / 8}, {aten.SpecialNdtr, 1.0 / 2}} {
		t.Run(c.op.String(), func(t *testing.T) {
			var x []float32
			for i := range 33 {
				at := float32(i) * c.step
				x = append(x, at, -at, math.Nextafter32(at, 99), -math.Nextafter32(at, 99), math.Nextafter32(at, -99), at+c.step/2, -at-c.step/2)
			}
			inf := float32(math.Inf(1))
			x = append(x, 3.9, 10, 13.3, -13.3, 14.17, -14.17, 14.3, -14.31, 1e30, -1e30, inf, -inf, float32(math.NaN()), float32(math.Copysign(0, -1)))
			testTableForms(t, c.op, x)
		})
	}
}

func testTableForms(t *testing.T, op ir.Op, x []float32) {
	var first []float32
	for _, isa := range Available() {
		for _, wide := range []bool{false, true} {
			b := looptest.New(loop.None)
			v := b.Op(op, b.Load(b.Arg(ir.F32, loop.Unit, false)))
			b.Store(b.Arg(ir.F32, loop.Unit, true), v)
			if wide {
				b.Store(b.Arg(ir.F64, loop.Unit, true), b.Cast(v, ir.F64))
			}
			c, err := Compile(&b.Kernel, isa)
			if err != nil {
				t.Fatal(err)
			}
			y, z := make([]float32, len(x)), make([]float64, len(x))
			f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
			f.Ptr[0], f.Ptr[1], f.Ptr[2] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&z[0])
			c.Run(&f)
			if first == nil {
				first = y
			}
			for i, v := range x {
				if off := unitsOff(t, isa, op, v, y[i], op.Spec().Scalar.F1(float64(v))); off > op.Spec().ULPs {
					t.Errorf("%v: %v(%v) = %v, %.2f units off", isa, op, v, y[i], off)
				}
				if math.Float32bits(y[i]) != math.Float32bits(first[i]) || wide && z[i] != float64(y[i]) && v == v {
					t.Errorf("%v, f64 %v: %v(%v) = %v, %v in other vectors", isa, wide, op, v, y[i], first[i])
				}
			}
		}
	}
}
