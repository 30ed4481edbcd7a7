package native

import (
	"errors"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// TestArm64LacksNothing assembles, on any machine, for arm64 what has code for AVX2.
func TestArm64LacksNothing(t *testing.T) {
	n := 0
	same := func(k *loop.Kernel) {
		_, _, on := Assemble(k, AVX2)
		_, _, err := Assemble(k, NEON)
		if err != nil && on == nil {
			t.Errorf("%v\n%v", err, k)
		}
		if err == nil {
			n++
		}
		if err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v", err)
		}
	}
	for _, d := range looptest.Stored {
		for _, sp := range ir.Ops() {
			if sp.Category == ir.Pointwise && !sp.Composite() && sp.Op != aten.Cast && sp.Op != aten.Where && looptest.Defined(sp, d) {
				same(kernelOf(sp, d, loop.Unit, loop.Unit))
			}
		}
		for _, to := range looptest.Stored {
			b := looptest.New(loop.None)
			b.Store(b.Arg(to, loop.Free, true), b.Cast(b.Load(b.Arg(d, loop.Free, false)), loop.ComputeDType(to)))
			same(&b.Kernel)
		}
		for _, axis := range axes {
			for _, op := range []ir.Op{aten.Sum, aten.Prod, aten.Amax, aten.Amin, aten.Argmax, aten.Argmin} {
				b := looptest.New(axis)
				result := loop.ComputeDType(d)
				if op == aten.Argmax || op == aten.Argmin {
					result = ir.I64
				}
				v := b.Reduce(op, result, b.Load(b.Arg(d, loop.Unit, false)))
				b.Final(b.StoreOf(b.Arg(result, loop.Unit, true), v))
				same(&b.Kernel)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d kernels have code", n)
	}
}
