package cpu

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
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
		if k.Instrs[len(k.Instrs)-2].Op == aten.Mul {
			return errors.New("no product")
		}
		return k.Validate()
	})
	binary := func(op ir.Op) fuse.Probe {
		return fuse.Probe{Op: op, In: [3]ir.DType{ir.F32, ir.F32}, N: 2, Out: ir.F32}
	}
	for range 2 {
		for op, want := range map[ir.Op]bool{aten.Add: true, aten.Mul: false} {
			if got := e.supports(binary(op)); got != want {
				t.Errorf("%v is supported: %v, want %v", op, got, want)
			}
		}
	}
	if checks != 2 || e.count() != 0 {
		t.Errorf("%d checks and %d kernels of two probes asked twice", checks, e.count())
	}
}

// TestConcurrentCompiles has goroutines ask for two kernels: each is built once, and both at the
// same time, since neither build ends before the other has begun.
func TestConcurrentCompiles(t *testing.T) {
	const callers = 4
	var begun sync.WaitGroup
	begun.Add(2)
	var builds atomic.Int32
	e := newEngine(func(k *loop.Kernel) (executable, error) {
		builds.Add(1)
		begun.Done()
		begun.Wait()
		return definition{k}, nil
	}, nil)
	var all sync.WaitGroup
	for _, key := range []string{"a", "b"} {
		for range callers {
			all.Go(func() {
				if code, ok := e.compileAs(key, &loop.Kernel{}); !ok || code == nil {
					t.Errorf("no code for kernel %s", key)
				}
			})
		}
	}
	all.Wait()
	if builds.Load() != 2 || e.count() != 2 {
		t.Errorf("%d builds, %d counted, of 2 kernels", builds.Load(), e.count())
	}
}
