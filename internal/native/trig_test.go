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

// TestAngles32 tries angles where the ways of their reduction begin and end, and those nearest to
// multiples of π/2. The result must not depend on the other lanes of a vector nor on the lane.
func TestAngles32(t *testing.T) {
	const cols = 37
	angles := []float32{
		0, float32(math.Copysign(0, -1)), 1e-45, -0.7853982, 1.5707964, -11, 10.995574,
		angleMost - 1.0/16, angleMost, -angleMost - 1.0/8, 0x1.cb3252p16, 0x1.fffffep44, -0x1p45, 0x1.000002p45,
		16367173 * 0x1p72, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	for _, isa := range Available() {
		for _, op := range []ir.Op{aten.Sin, aten.Cos, aten.Tan} {
			k := unaryF32(op)
			c, err := Compile(k, isa)
			if err != nil {
				t.Fatal(err)
			}
			run := func(x []float32) []float32 {
				y := make([]float32, len(x))
				f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
				f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0])
				if !k.Args[0].Write {
					f.Ptr[0], f.Ptr[1] = f.Ptr[1], f.Ptr[0]
				}
				c.Run(&f)
				return y
			}
			for i, v := range angles {
				alone := run([]float32{v})[0]
				if off := unitsOff(t, isa, op, v, alone, op.Spec().Scalar.F1(float64(v))); off > op.Spec().ULPs {
					t.Errorf("%v: %v(%v) = %v, %.2f units off", isa, op, v, alone, off)
				}
				for at := range cols {
					x := make([]float32, cols)
					for j := range x {
						x[j] = angles[(i+j)%3*(i+at)%len(angles)]
					}
					x[at] = v
					if got := run(x)[at]; math.Float32bits(got) != math.Float32bits(alone) && alone == alone {
						t.Fatalf("%v: %v(%v) = %v in lane %d, %v alone", isa, op, v, got, at, alone)
					}
				}
			}
		}
	}
}
