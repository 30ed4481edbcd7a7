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

// TestErfForms looks coefficients up in vectors of all lengths: kernels with f64 in them have half as
// many lanes. The bits must be the same, also next to where the coefficients change.
func TestErfForms(t *testing.T) {
	var x []float32
	for i := range 33 {
		at := float32(i) / 8
		x = append(x, at, -at, math.Nextafter32(at, 9), math.Nextafter32(at, -9), at+1.0/16)
	}
	x = append(x, 3.9, 10, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)))
	var first []float32
	for _, isa := range Available() {
		for _, wide := range []bool{false, true} {
			b := looptest.New(loop.None)
			v := b.Op(aten.Erf, b.Load(b.Arg(ir.F32, loop.Unit, false)))
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
				if off := unitsOff(t, isa, aten.Erf, v, y[i], math.Erf(float64(v))); off > aten.Erf.Spec().ULPs {
					t.Errorf("%v: erf(%v) = %v, %.2f units off", isa, v, y[i], off)
				}
				if math.Float32bits(y[i]) != math.Float32bits(first[i]) || wide && z[i] != float64(y[i]) {
					t.Errorf("%v, f64 %v: erf(%v) = %v, %v in other vectors", isa, wide, v, y[i], first[i])
				}
			}
		}
	}
}
