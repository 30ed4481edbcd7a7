package native

import (
	"math"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestErfinvDense tries erfinv of f32 on all of its range: near 1 it is steep, and sweeps over floats of all sizes have
// few there.
func TestErfinvDense(t *testing.T) {
	step := uint32(151)
	if longtest.Enabled() {
		step = 1
	}
	var x []float32
	for bits := math.Float32bits(0x1p-6); bits <= math.Float32bits(1); bits += step {
		x = append(x, math.Float32frombits(bits))
	}
	y := make([]float32, len(x))
	for _, isa := range Available() {
		k := unaryF32(aten.Erfinv)
		c, err := Compile(k, isa)
		if err != nil {
			t.Fatal(err)
		}
		f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
		f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0])
		if !k.Args[0].Write {
			f.Ptr[0], f.Ptr[1] = f.Ptr[1], f.Ptr[0]
		}
		c.Run(&f)
		worst, at := 0.0, float32(0)
		for i, v := range x {
			if off := unitsOff(t, isa, aten.Erfinv, v, y[i], math.Erfinv(float64(v))); off > worst {
				worst, at = off, v
			}
		}
		t.Logf("%v: %.2f units", isa, worst)
		if most := aten.Erfinv.Spec().ULPs; worst > most {
			t.Errorf("%v: %.2f units off at %v, at most %v", isa, worst, at, most)
		}
	}
}
