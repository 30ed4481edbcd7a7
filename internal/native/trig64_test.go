package native

import (
	"math"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
	"github.com/loris-ml/loris/internal/twooverpi/angles"
)

func TestAngles64(t *testing.T) {
	x, y := make([]float64, len(angles.All)), make([]float64, len(angles.All))
	for i, a := range angles.All {
		x[i] = a[0]
	}
	for _, isa := range Available() {
		for i, op := range []ir.Op{aten.Sin, aten.Cos, aten.Tan} {
			run1(t, isa, op, x, y)
			for j, a := range angles.All {
				if off := unitsOff64(y[j], a[i+1]); !(off <= 2) {
					t.Errorf("%v: %v of %v is %v, %.1f units off %v", isa, op, a[0], y[j], off, a[i+1])
				}
			}
		}
	}
}

// run1 runs a function on floats.
func run1(t *testing.T, isa ISA, op ir.Op, x, y []float64) {
	t.Helper()
	b := looptest.New(loop.None)
	b.Store(b.Arg(ir.F64, loop.Unit, true), b.Op(op, b.Load(b.Arg(ir.F64, loop.Unit, false))))
	c, err := Compile(&b.Kernel, isa)
	if err != nil {
		t.Fatal(err)
	}
	f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
	for i, a := range b.Args {
		f.Ptr[i] = unsafe.Pointer(&x[0])
		if a.Write {
			f.Ptr[i] = unsafe.Pointer(&y[0])
		}
	}
	c.Run(&f)
}

// unitsOff64 returns by how many units in the last place of want got is off.
func unitsOff64(got, want float64) float64 {
	if math.Float64bits(got) == math.Float64bits(want) || math.IsNaN(want) && math.IsNaN(got) {
		return 0
	}
	if math.Signbit(got) != math.Signbit(want) {
		return math.Inf(1)
	}
	a := math.Abs(want)
	return math.Abs(got-want) / (math.Nextafter(a, math.Inf(1)) - a)
}
