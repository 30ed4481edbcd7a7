package cpu

import (
	"errors"
	"testing"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// TestProbes asks an engine what it supports: each question is checked once, and
// nothing is built.
func TestProbes(t *testing.T) {
	checks := 0
	e := newEngine(func(*loop.Kernel) (executable, error) {
		t.Error("a probe builds code")
		return nil, errors.New("no code")
	}, func(k *loop.Kernel) error {
		checks++
		if k.Instrs[len(k.Instrs)-2].Op == ir.OpMul {
			return errors.New("no product")
		}
		return k.Validate()
	})
	binary := func(op ir.Op) fuse.Probe {
		return fuse.Probe{Op: op, In: [3]ir.DType{ir.F32, ir.F32}, N: 2, Out: ir.F32}
	}
	for range 2 {
		for op, want := range map[ir.Op]bool{ir.OpAdd: true, ir.OpMul: false} {
			if got := e.supports(binary(op)); got != want {
				t.Errorf("%v is supported: %v, want %v", op, got, want)
			}
		}
	}
	if checks != 2 || e.count() != 0 {
		t.Errorf("%d checks and %d kernels of two probes asked twice", checks, e.count())
	}
}
