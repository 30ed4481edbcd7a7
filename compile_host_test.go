package loris

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// What a function does at its trace only fails the Call, even where the function drops the error.
func TestCompileRefusesWhatItCannotRepeat(t *testing.T) {
	s := newSession(t)
	m := s.With()
	ctx := context.Background()
	known := m.FromSlice([]float32{1, 2})
	v := NewVariable(m.Ones(2))
	counter, scale := 0, m.FromSlice([]float32{1, 1})
	for name, fn := range map[string]func(in []*Tensor) *Tensor{
		"read of a result": func(in []*Tensor) *Tensor {
			y := in[0].Add(1)
			_, _ = y.Float32s(ctx)
			return y
		},
		"read of a tensor from outside": func(in []*Tensor) *Tensor {
			f, _ := known.Float32s(ctx)
			if len(f) == 2 && f[0] == 1 {
				return in[0].Mul(2)
			}
			return in[0]
		},
		"read of a variable": func(in []*Tensor) *Tensor {
			_, _ = v.Value().Sum().Item(ctx)
			return in[0].Add(1)
		},
		"text": func(in []*Tensor) *Tensor {
			_, _ = known.Text(ctx)
			return in[0].Add(1)
		},
		"fetch": func(in []*Tensor) *Tensor {
			_, _ = Fetch(ctx, known)
			return in[0].Add(1)
		},
		"step": func(in []*Tensor) *Tensor {
			_ = s.MarkStep(ctx)
			return in[0].Add(1)
		},
		"Step": func(in []*Tensor) *Tensor {
			_ = s.Step(ctx, func() error { return nil })
			return in[0].Add(1)
		},
		"a step of a fork": func(in []*Tensor) *Tensor {
			_ = s.Fork().MarkStep(ctx)
			return in[0].Add(1)
		},
		"publish": func(in []*Tensor) *Tensor {
			_ = Publish(ctx, []*Variable{v}, []*Tensor{known})
			return in[0].Add(1)
		},
		"a variable": func(in []*Tensor) *Tensor {
			var w *Variable
			_ = Try(func() { w = NewVariable(m.Ones(2)) })
			_ = w
			return in[0].Add(1)
		},
		"seed":        func(in []*Tensor) *Tensor { s.SetSeed(3); return in[0].Add(m.Rand(2)) },
		"seed read":   func(in []*Tensor) *Tensor { return in[0].Add(float64(s.Seed() % 7)) },
		"step number": func(in []*Tensor) *Tensor { return in[0].Add(s.StepNumber()) },
		"a counter":   func(in []*Tensor) *Tensor { counter++; return in[0].Mul(counter) },
		"the time":    func(in []*Tensor) *Tensor { return in[0].Mul(float64(time.Now().UnixNano())) },
		"numbers of Go": func(in []*Tensor) *Tensor {
			return in[0].Add(m.FromSlice([]float32{rand.Float32(), 1}))
		},
		"a closure's tensor": func(in []*Tensor) *Tensor {
			y := in[0].Mul(scale)
			scale = m.FromSlice([]float32{2, 3})
			return y
		},
		"a choice": func(in []*Tensor) *Tensor {
			if counter++; counter%2 == 0 {
				return in[0].Relu()
			}
			return in[0].Exp()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{fn(in)} })
			_, err := f.Call(ctx, m.Ones(2))
			var oe *OpError
			if !errors.Is(err, ErrArg) || !errors.As(err, &oe) || !strings.Contains(oe.Line, "compile_host_test.go:") {
				t.Errorf("got %v, want an OpError of this file", err)
			}
		})
	}
	wantFloats(t, m.Ones(2).Add(1), 2, 2) // the session still records
}

// Host data that is the same each time is no mistake.
func TestCompileTakesConstantHostData(t *testing.T) {
	m := newSession(t).With()
	calls := 0
	f := Compile(func(in ...*Tensor) []*Tensor {
		calls++
		_ = in[0].String()
		return []*Tensor{in[0].Mul(m.FromSlice([]float32{2, 3})).Add(0.5)}
	})
	for range 3 {
		wantFloats(t, call1of(t, f, m.Ones(2)), 2.5, 3.5)
	}
	if calls != 2 {
		t.Errorf("%d calls of the function, want 2", calls)
	}
}

func TestScalarFunc(t *testing.T) {
	m := newSession(t).With()
	n, counted := 0.0, 0
	f := Compile(func(in ...*Tensor) []*Tensor {
		m.Session().OnCall(func() { counted++ }, func() {})
		return []*Tensor{in[0].Mul(m.ScalarFunc(func() float64 { return n })), m.With(As(F64)).ScalarFunc(func() float64 { return n + float64(counted) })}
	})
	for i := range 4 {
		n = float64(i) + 0.25
		out, err := f.Call(t.Context(), m.FromSlice([]float32{1, 2}))
		if err != nil {
			t.Fatal(err)
		}
		wantFloats(t, out[0], float32(n), 2*float32(n))
		if v, err := out[1].Item(t.Context()); err != nil || v != n+float64(i) {
			t.Errorf("call %d: %v %v", i, v, err)
		}
	}
	if counted != 4 {
		t.Errorf("%d calls counted, want 4", counted)
	}
	if m.Session().OnCall(func() { t.Error("called") }, func() {}) != 0 {
		t.Error("OnCall outside a function")
	}
	wantFloats(t, m.FromSlice([]float32{2}).Mul(m.ScalarFunc(func() float64 { return 3 })), 6)
	if n := m.Session().Report().Compiles; n > 2 {
		t.Errorf("%d compilations", n)
	}
}

func TestGuard(t *testing.T) {
	m := newSession(t).With()
	mode, traces := "double", 0
	f := Compile(func(in ...*Tensor) []*Tensor {
		traces++
		if Guard(func() string { return mode }) == "double" {
			return []*Tensor{in[0].Mul(2)}
		}
		return []*Tensor{in[0].Neg()}
	})
	x := m.FromSlice([]float32{3}).Keep()
	for range 3 {
		mode = "double"
		wantFloats(t, call1of(t, f, x), 6)
		if text, ok := f.Program(x); !ok || !strings.Contains(text, "mul") {
			t.Errorf("Program: %q %v", text, ok)
		}
		mode = "other"
		wantFloats(t, call1of(t, f, x), -3)
	}
	if traces != 3 {
		t.Errorf("%d recordings, want 2 of the first mode and 1 of the other", traces)
	}
	for i := range 100 { // the number of traces is bounded
		mode = strings.Repeat("x", i)
		wantFloats(t, call1of(t, f, x), -3)
	}
	for _, runs := range f.traces {
		if len(runs) > maxVariants {
			t.Errorf("%d traces are kept", len(runs))
		}
	}
}

// What users keep in closures: sums of gradients, averages of weights, counters.
func TestStateInClosures(t *testing.T) {
	m := newSession(t).With()
	w, sum, average, count := NewVariable(m.Ones(2)), NewVariable(m.Zeros(2)), NewVariable(m.Zeros(2)), NewVariable(m.With(As(I64)).Zeros())
	step := func(in ...*Tensor) []*Tensor {
		g := Grad(w.Value().Mul(in[0]).Square().Sum(), w)[0]
		sum.Assign(sum.Value().Add(g))
		count.Assign(count.Value().Add(1))
		last := count.Value().Remainder(2).Eq(0)
		w.Assign(Where(last, w.Value().Sub(sum.Value().Mul(0.01)), w.Value()))
		sum.Assign(Where(last, sum.Value().Mul(0), sum.Value()))
		average.Assign(average.Value().Mul(0.9).Add(w.Value().Mul(0.1)))
		return []*Tensor{w.Value(), average.Value()}
	}
	reset := func() {
		w.Assign(m.FromSlice([]float32{1, 1}))
		sum.Assign(m.FromSlice([]float32{0, 0}))
		average.Assign(m.FromSlice([]float32{0, 0}))
		count.Assign(m.FromSlice([]int64{0}).Reshape())
	}
	run := func(call func(x *Tensor) []*Tensor) (all []float32) {
		reset()
		for i := range 5 {
			for _, o := range call(m.FromSlice([]float32{float32(i), 2})) {
				all = append(all, floats(t, o)...)
			}
			if err := m.Session().MarkStep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	want := run(func(x *Tensor) []*Tensor { return step(x) })
	f := Compile(step)
	got := run(func(x *Tensor) []*Tensor {
		out, err := f.Call(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
	for i := range want {
		if d := want[i] - got[i]; d > 1e-6 || d < -1e-6 {
			t.Fatalf("number %d: compiled %v, recorded %v", i, got, want)
		}
	}
}

// Functions without inputs nest, too, and a fork's function assigns the variables of its parent.
func TestCompileWithoutInputs(t *testing.T) {
	s := newSession(t)
	v := NewVariable(s.With().FromSlice([]float32{1}))
	inner := Compile(func(...*Tensor) []*Tensor {
		v.Assign(v.Value().Add(1))
		return nil
	})
	outer := Compile(func(in ...*Tensor) []*Tensor {
		if _, err := inner.Call(context.Background(), in[0].Neg()); err != nil {
			t.Error(err)
		}
		if _, err := inner.Call(context.Background()); err != nil {
			t.Error(err)
		}
		return nil
	})
	for i := range 3 {
		if _, err := outer.Call(t.Context(), s.With().FromSlice([]float32{1})); err != nil {
			t.Fatal(err)
		}
		wantFloats(t, v.Value(), float32(2*i)+3)
	}
	fork := s.Fork()
	f := Compile(func(in ...*Tensor) []*Tensor {
		v.Assign(v.ValueIn(fork).Mul(in[0]))
		return nil
	})
	for i := range 3 {
		if _, err := f.Call(t.Context(), fork.With().FromSlice([]float32{2})); err != nil {
			t.Fatal(err)
		}
		if err := fork.WaitDeviceOps(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFloats(t, v.Value(), float32(int(7)<<(i+1)))
	}
}
