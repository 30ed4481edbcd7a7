package cpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
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
	if checks != 2 || e.compiled() != 0 {
		t.Errorf("%d checks and %d kernels of two probes asked twice", checks, e.compiled())
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
				c := e.find(key, &loop.Kernel{})
				if e.make(c); c.code == nil {
					t.Errorf("no code for kernel %s", key)
				}
			})
		}
	}
	all.Wait()
	if builds.Load() != 2 || e.compiled() != 2 {
		t.Errorf("%d builds, %d counted, of 2 kernels", builds.Load(), e.compiled())
	}
}

// sized is an executable of a size.
type sized struct {
	executable
	n int
}

func (s sized) Size() int { return s.n }

// What an engine keeps is bounded by bytes, whatever the kernels' sizes; one that is larger
// than the bound is kept alone.
func TestEngineKeepsFewBytes(t *testing.T) {
	sizes := []int{100 << 10, 1, 3 << 20, maxCodeBytes, 500 << 10}
	made := 0
	e := newEngine(func(*loop.Kernel) (executable, error) {
		made++
		return sized{n: sizes[made%len(sizes)]}, nil
	}, func(*loop.Kernel) error { return nil })
	for i := range 1000 {
		key := fmt.Sprint(i)
		c := e.find(key, &loop.Kernel{})
		if e.make(c); c.code == nil {
			t.Fatal("no code")
		}
		if !e.codes.Contains(key) {
			t.Fatal("what was compiled last is not kept")
		}
		sum := int64(0)
		for _, key := range e.codes.Keys() {
			code, _ := e.codes.Peek(key)
			sum += codeBytes(key, code.code)
		}
		if sum != e.bytes || e.bytes > maxCodeBytes && e.codes.Len() > 1 {
			t.Fatalf("%d kernels of %d bytes, counted as %d", e.codes.Len(), sum, e.bytes)
		}
	}
	if made != 1000 {
		t.Errorf("%d compilations", made)
	}
}

// A model tells the bytes of its kernels.
func TestModelHoldsItsCode(t *testing.T) {
	b := New()
	if b.engine == nil {
		t.Skip("no machine code here")
	}
	p, err := graph.Parse("program @x {\n%a = parameter \"a\" : f32[64]\n%r = sin(%a)\nreturn %r\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.Compile(t.Context(), p, Device, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if n := m.(backend.Sizer).HeldBytes(); n < 4096 || n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}
