package loris

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func call1of(t *testing.T, f *Function, in ...*Tensor) *Tensor {
	t.Helper()
	out, err := f.Call(t.Context(), in...)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestCompileTracesOncePerSignature(t *testing.T) {
	s := newSession(t)
	m := s.With()
	traces := 0
	f := Compile(func(in ...*Tensor) []*Tensor {
		traces++
		return []*Tensor{in[0].Mul(2).Add(in[1])}
	})
	a := m.FromSlice([]float32{1, 2})
	wantFloats(t, call1of(t, f, a, a), 3, 6)
	wantFloats(t, call1of(t, f, a, m.FromSlice([]float32{10, 20})), 12, 24)
	wantFloats(t, call1of(t, f, a.Add(1), a), 5, 8) // a pending input
	if traces != 2 {                                // the first trace compares two recordings
		t.Errorf("%d recordings of one signature, want 2", traces)
	}
	b := m.FromSlice([]float32{1, 2, 3})
	wantFloats(t, call1of(t, f, b, b), 3, 6, 9)
	if traces != 3 {
		t.Errorf("%d recordings of two signatures, want 3", traces)
	}
	if text, ok := f.Program(a, a); !ok || !strings.Contains(text, "mul") {
		t.Errorf("Program: %q %v", text, ok)
	}
	if _, ok := f.Program(a); ok {
		t.Error("Program of a signature that was never traced")
	}
}

func TestCompiledVariables(t *testing.T) {
	s := newSession(t)
	m := s.With()
	start := m.Ones(2).Add(1) // pending when the variables are made
	v, w := NewVariable(start), NewVariable(start)
	f := Compile(func(in ...*Tensor) []*Tensor {
		old := v.Value()
		v.Assign(v.Value().Add(in[0]))
		v.Assign(v.Value().Mul(2))
		return []*Tensor{old, v.Value(), w.Value()}
	})
	one := m.FromSlice([]float32{1, 1})
	for i, want := range [][]float32{{2, 6}, {6, 14}, {14, 30}} {
		out, err := f.Call(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		wantFloats(t, out[0], want[0], want[0])
		wantFloats(t, out[1], want[1], want[1])
		wantFloats(t, out[2], 2, 2)
		if i == 1 {
			wantFloats(t, v.Value(), 14, 14)
		}
	}
	v.Assign(m.FromSlice([]float32{0, 0}))
	wantFloats(t, call1of(t, f, one), 0, 0)
	wantFloats(t, w.Value(), 2, 2)
}

func TestCompiledRandomNumbers(t *testing.T) {
	numbers := func(seed uint64) [][]float32 {
		m := newSession(t, WithSeed(seed)).With()
		f := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{m.Rand(4)} })
		var out [][]float32
		for range 3 {
			out = append(out, floats(t, call1of(t, f, m.Zeros(1))))
		}
		return append(out, floats(t, m.Rand(4)))
	}
	a := numbers(1)
	for i := range a {
		for j := range i {
			if reflect.DeepEqual(a[i], a[j]) {
				t.Errorf("draws %d and %d are equal: %v", i, j, a[i])
			}
		}
	}
	if b := numbers(1); !reflect.DeepEqual(a, b) {
		t.Errorf("the same seed gave %v, then %v", a, b)
	}
}

func TestCompiledFunctionsNest(t *testing.T) {
	m := newSession(t).With()
	inner := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(3)} })
	outer := Compile(func(in ...*Tensor) []*Tensor {
		out, err := inner.Call(context.Background(), in[0].Add(1))
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
	wantFloats(t, call1of(t, outer, m.FromSlice([]float32{1, 2})), 6, 9)
}

func TestCompileErrors(t *testing.T) {
	m := newSession(t).With()
	x := m.Zeros(2, 3)
	calls := 0
	f := Compile(func(in ...*Tensor) []*Tensor {
		if calls++; calls == 1 {
			return []*Tensor{in[0].MatMul(in[0])}
		}
		return in
	})
	if _, err := f.Call(t.Context(), x); !errors.Is(err, ErrShape) {
		t.Errorf("got %v, want ErrShape", err)
	}
	if _, err := f.Call(t.Context(), x); err != nil {
		t.Errorf("a failed trace must not stick: %v", err)
	}
	for name, fn := range map[string]func(in ...*Tensor) []*Tensor{
		"nil output": func(in ...*Tensor) []*Tensor { return []*Tensor{nil} },
		"read": func(in ...*Tensor) []*Tensor {
			if _, err := in[0].Add(1).Float32s(context.Background()); err == nil {
				t.Error("a read inside a function that is compiled succeeded")
			}
			return []*Tensor{nil}
		},
		"step": func(in ...*Tensor) []*Tensor {
			if err := m.Session().MarkStep(context.Background()); err == nil {
				t.Error("a MarkStep inside a function that is compiled succeeded")
			}
			return []*Tensor{nil}
		},
	} {
		if _, err := Compile(fn).Call(t.Context(), x); !errors.Is(err, ErrArg) {
			t.Errorf("%s: got %v, want ErrArg", name, err)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = Compile(func(in ...*Tensor) []*Tensor { panic("other") }).Call(t.Context(), x)
		t.Error("a panic was swallowed")
	}()
	wantFloats(t, x.Sum(), 0) // the session still records
}

func TestConcurrentCalls(t *testing.T) {
	m := newSession(t, WithInstances(4)).With()
	var traces atomic.Int32
	f := Compile(func(in ...*Tensor) []*Tensor {
		traces.Add(1)
		return []*Tensor{in[0].Add(1)}
	})
	var wg sync.WaitGroup
	for g := range 8 {
		x := m.FromSlice([]float32{float32(g)})
		wg.Go(func() {
			for range 20 {
				out, err := f.Call(context.Background(), x)
				if err != nil {
					t.Error(err)
					return
				}
				v, err := out[0].Float32s(context.Background())
				if err != nil || v[0] != float32(g)+1 {
					t.Errorf("got %v, %v, want %v", v, err, g+1)
				}
			}
		})
	}
	wg.Wait()
	if n := traces.Load(); n != 2 {
		t.Errorf("%d recordings, want the two of one trace", n)
	}
}

// TestCompiledVariablesInPlace assigns variables in ways that must not meet in
// memory, over and over, without reading them in between.
func TestCompiledVariablesInPlace(t *testing.T) {
	s := newSession(t)
	m := s.With()
	const n = 1000
	v, w := NewVariable(m.Arange(0, n, 1).Cast(F32)), NewVariable(m.Ones(n).Mul(0.5))
	f := Compile(func(in ...*Tensor) []*Tensor {
		old := v.Value()
		v.Assign(w.Value())              // they change places,
		w.Assign(old.Add(in[0]).Flip(0)) // one of them turned round
		return []*Tensor{old}
	})
	x := m.Ones(n).Keep()
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := make([]float32, n), make([]float32, n)
	for i := range a {
		a[i], b[i] = float32(i), 0.5
	}
	var last *Tensor
	for range 9 {
		out, err := f.Call(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		last = out[0]
		wantFloats(t, last, a...)
		next := make([]float32, n)
		for i := range a {
			next[n-1-i] = a[i] + 1
		}
		a, b = b, next
	}
	wantFloats(t, v.Value(), a...)
	wantFloats(t, w.Value(), b...)
}
