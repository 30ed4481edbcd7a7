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

// TestTableForms computes functions of f32 by pieces in vectors of all lengths: kernels with f64 in them have half as
// many lanes. The bits must be the same, also next to where one piece ends, for some on all instruction sets.
func TestTableForms(t *testing.T) {
	multiples := func(step float32) func(i int) float32 { return func(i int) float32 { return float32(i) * step } }
	for _, c := range []struct {
		op   ir.Op
		ends func(i int) float32 // up to 33
		same bool
	}{
		{aten.Erf, multiples(1.0 / 8), true},
		{aten.SpecialNdtr, multiples(1.0 / 2), true},
		{aten.Erfc, multiples(erfcStep / 2), true},
		{aten.Erfinv, func(i int) float32 { return 1 - float32(math.Ldexp(1, -i)) }, false},
		{aten.Atan, func(i int) float32 { return math.Float32frombits(uint32(atanFirst-6+i) << atanHalves) }, false},
		{aten.Asin, multiples(1.0 / 32), false},
		{aten.Acos, multiples(1.0 / 32), false},
	} {
		t.Run(c.op.String(), func(t *testing.T) {
			var x []float32
			for i := range 33 {
				at := c.ends(i)
				above, below := math.Nextafter32(at, 99), math.Nextafter32(at, -99)
				middle := at + (c.ends(i+1)-at)/2
				x = append(x, at, -at, above, -above, below, -below, middle, -middle)
			}
			inf := float32(math.Inf(1))
			x = append(x, 3.9, 10, 10.05, 10.06, -10.06, 13.3, -13.3, 14.17, -14.17, 14.3, -14.31, 1e30, -1e30, math.MaxFloat32, inf, -inf,
				1e-20, -1e-30, 1e-45, -1e-45, float32(math.NaN()), float32(math.Copysign(0, -1)))
			testTableForms(t, c.op, x, c.same)
		})
	}
}

func testTableForms(t *testing.T, op ir.Op, x []float32, same bool) {
	var first []float32
	for _, isa := range Available() {
		if !same {
			first = nil
		}
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
				if math.Float32bits(y[i]) != math.Float32bits(first[i]) && v == v && y[i] == y[i] || wide && z[i] != float64(y[i]) && y[i] == y[i] {
					t.Errorf("%v, f64 %v: %v(%v) = %v, %v in other vectors", isa, wide, op, v, y[i], first[i])
				}
			}
		}
	}
}
