package native

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestPowers tries powers of f32: all pairs of special numbers, results of all sizes, and bases near 1, where the
// logarithm is small and the exponent large.
func TestPowers(t *testing.T) {
	inf := float32(math.Inf(1))
	special := []float32{0, 1, 0x1p-149, 0x1p-130, 0x1.fffffep-127, 0x1p-126, 0.5, 0.74999994, 0.75, 0.99999994, 1.0000001, 1.4999999,
		1.5, 2, 2.5, 3, 8388607, 8388609, 16777215, 16777216, 0x1p31, 0x1p64, math.MaxFloat32, inf, float32(math.NaN())}
	for _, v := range special {
		special = append(special, -v)
	}
	var x, y []float32
	for _, a := range special {
		for _, b := range special {
			x, y = append(x, a), append(y, b)
		}
	}
	r := rand.New(rand.NewPCG(1, 32))
	for range 50_000 {
		a := math.Float32frombits(r.Uint32() >> 1)
		near := float32(1 + math.Ldexp(r.Float64()-0.5, -r.IntN(20)))
		for _, base := range []float32{a, near} {
			x = append(x, base)
			y = append(y, float32((300*r.Float64()-150)/math.Log2(float64(base))))
		}
		x, y = append(x, -a), append(y, float32(r.IntN(20)-10))
	}
	z := make([]float32, len(x))
	for _, isa := range Available() {
		c, err := Compile(kernelOf(aten.Pow.Spec(), ir.F32, loop.Unit, loop.Unit), isa)
		if err != nil {
			t.Fatal(err)
		}
		f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
		f.Ptr[0], f.Ptr[1], f.Ptr[2] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&z[0])
		c.Run(&f)
		worst := 0.0
		for i := range x {
			off := unitsOff(t, isa, aten.Pow, x[i], z[i], aten.Pow.Spec().Scalar.F2(float64(x[i]), float64(y[i])))
			if worst = max(worst, off); off > 1.1 {
				t.Fatalf("%v: %v to the power %v is %v, %.2f units off", isa, x[i], y[i], z[i], off)
			}
		}
		t.Logf("%v: %.2f units", isa, worst)
	}
}
