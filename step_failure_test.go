package loris

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// After each way that a Step can fail the variables are what they were, also if their initial values
// are pending, and the same Step can be tried again.
func TestFailedStepCanBeTriedAgain(t *testing.T) {
	fail := errors.New("fail")
	for name, broken := range map[string]func(s *Session, fn func() error) error{
		"the function fails": func(s *Session, fn func() error) error {
			return s.Step(t.Context(), func() error { _ = fn(); return fail })
		},
		"before it has begun": func(s *Session, fn func() error) error { return s.Step(t.Context(), func() error { return fail }) },
		"the context has ended": func(s *Session, fn func() error) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return s.Step(ctx, fn)
		},
		"it panics": func(s *Session, fn func() error) (err error) {
			defer func() { err, _ = recover().(error) }()
			return s.Step(t.Context(), func() error { _ = fn(); panic(fail) })
		},
		"a graph is at fault": func(s *Session, fn func() error) error {
			return s.Step(t.Context(), func() error {
				leaked(t, s).Keep()
				return fn()
			})
		},
	} {
		for _, pending := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, pending=%v", name, pending), func(t *testing.T) {
				s := newSession(t)
				v := NewVariable(s.With().Ones(1).Add(s.With().Rand(1).Mul(0)))
				if !pending {
					if err := s.MarkStep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				noise := func() error { v.Assign(v.Value().Add(1).Add(s.With().Rand(1).Mul(0))); return nil }
				for range 3 {
					if err := broken(s, noise); err == nil {
						t.Fatal("the Step did not fail")
					}
				}
				before := s.Report().Compiles
				if err := s.Step(t.Context(), noise); err != nil {
					t.Fatal(err)
				}
				if err := broken(s, noise); err == nil {
					t.Fatal("the Step did not fail")
				}
				wantFloats(t, v.Value(), 2)
				if n := s.Report().Compiles - before; n > 1 {
					t.Errorf("%d compilations of one Step", n)
				}
			})
		}
	}
}

// leaked returns a tensor whose graph can never be compiled.
func leaked(t *testing.T, s *Session) *Tensor {
	t.Helper()
	var out *Tensor
	f := Compile(func(in ...*Tensor) []*Tensor { out = in[0].Neg(); return in })
	if _, err := f.Call(t.Context(), s.With().Ones(1)); err != nil {
		t.Fatal(err)
	}
	return out.Exp()
}

// A graph that cannot be compiled fails one MarkStep, and none after it.
func TestFaultyGraphFailsOneStep(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		record func(s *Session, v *Variable)
		want   float32 // of the variable, which the step would make 2
	}{
		"a tensor":           {func(s *Session, v *Variable) { leaked(t, s) }, 2},
		"a kept tensor":      {func(s *Session, v *Variable) { leaked(t, s).Keep().Neg() }, 2},
		"an assigned value":  {func(s *Session, v *Variable) { v.Assign(leaked(t, s)) }, 1},
		"an initial value":   {func(s *Session, v *Variable) { NewVariable(leaked(t, s)) }, 1},
		"another variable's": {func(s *Session, v *Variable) { NewVariable(s.With().Ones(1)).Assign(leaked(t, s)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			v := NewVariable(s.With().Ones(1))
			if err := s.MarkStep(ctx); err != nil {
				t.Fatal(err)
			}
			good := v.Value().Add(1)
			v.Assign(good)
			c.record(s, v)
			if err := s.MarkStep(ctx); err == nil {
				t.Error("the faulty graph was compiled")
			}
			if err := s.MarkStep(ctx); err != nil {
				t.Errorf("the next step: %v", err)
			}
			wantFloats(t, v.Value(), c.want)
			wantFloats(t, good, 2)
			if err := s.Step(ctx, func() error { v.Assign(v.Value().Mul(10)); return nil }); err != nil {
				t.Errorf("a Step after it: %v", err)
			}
			wantFloats(t, v.Value(), 10*c.want)
		})
	}
}

// A value that was assigned and has failed at a read takes the step's assignments along.
func TestAssignedValueThatHasFailed(t *testing.T) {
	ctx := t.Context()
	for _, scoped := range []bool{false, true} {
		s := newSession(t)
		v, w := NewVariable(s.With().Ones(1)), NewVariable(s.With().Ones(1))
		record := func() error {
			w.Assign(w.Value().Add(1))
			y := v.Value().IndexSelect(0, s.With().FromSlice([]int64{7}))
			v.Assign(y)
			if _, err := y.Float32s(ctx); !errors.Is(err, ErrIndex) {
				t.Errorf("read: %v", err)
			}
			return nil
		}
		var err error
		if scoped {
			err = s.Step(ctx, record)
		} else if err = record(); err == nil {
			err = s.MarkStep(ctx)
		}
		if !errors.Is(err, ErrIndex) {
			t.Errorf("the step: %v", err)
		}
		if err := s.MarkStep(ctx); err != nil {
			t.Errorf("the next step: %v", err)
		}
		wantFloats(t, v.Value(), 1)
		wantFloats(t, w.Value(), 1)
	}
}

// Two goroutines that end steps of one session would lose assignments: one of them is told.
func TestStepsOfOneSessionFromSeveralGoroutines(t *testing.T) {
	ctx := t.Context()
	f, dev := newFaulty(t)
	s := newSession(t)
	v := NewVariable(s.With(On(dev)).Ones(1))
	first := v.Value().Add(1)
	v.Assign(first)
	gate := make(chan struct{})
	f.gate.Store(&gate)
	if err := s.MarkStep(ctx); err != nil { // its work holds the device
		t.Fatal(err)
	}
	v.Assign(v.Value().Add(1))
	second := make(chan error)
	go func() { second <- s.MarkStep(ctx) }()
	const told = "another goroutine is in MarkStep or Step of this session; use Fork"
	for { // until the other goroutine waits for the device
		err := Try(func() { v.Assign(v.Value().Add(0)) })
		if err != nil {
			if !strings.Contains(err.Error(), told) {
				t.Errorf("assign: %v", err)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	for name, err := range map[string]error{
		"MarkStep": s.MarkStep(ctx),
		"Step":     s.Step(ctx, func() error { return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Fork().MarkStep(ctx); err != nil {
		t.Errorf("a fork: %v", err)
	}
	close(gate)
	if err := <-second; err != nil {
		t.Error(err)
	}
	wantFloats(t, v.Value(), 3)
	err := s.Step(ctx, func() error {
		nested := make(chan error)
		go func() { nested <- s.Step(ctx, func() error { return nil }) }()
		return <-nested
	})
	if err == nil || !strings.Contains(err.Error(), "another goroutine is in Step, use Fork") {
		t.Errorf("Step inside another goroutine's: %v", err)
	}
}
