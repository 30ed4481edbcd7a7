package loris

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestDiscardAndKeep(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name                 string
		mark                 func(mid, end *Tensor)
		midPending, endReady bool
	}{
		{"default", func(mid, end *Tensor) {}, true, true},
		{"keep", func(mid, end *Tensor) { mid.Keep() }, false, true},
		{"discard", func(mid, end *Tensor) { end.Discard() }, true, false},
		{"the last mark counts", func(mid, end *Tensor) { mid.Discard().Keep(); end.Keep().Discard() }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			mid := s.With().Ones(2).Add(1)
			end := mid.Mul(2)
			c.mark(mid, end)
			if err := s.MarkStep(ctx); err != nil {
				t.Fatal(err)
			}
			if mid.Pending() != c.midPending || end.Pending() == c.endReady {
				t.Errorf("after the step: mid pending %v, want %v; end pending %v, want %v", mid.Pending(), c.midPending, end.Pending(), !c.endReady)
			}
			wantFloats(t, mid, 2, 2)
			wantFloats(t, end, 4, 4)
		})
	}
}

func TestCarriedAcrossSteps(t *testing.T) {
	s := newSession(t)
	mid := s.With().Ones(2).Add(1) // the line that is reported
	_ = mid.Mul(2)
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, mid.Add(1), 3, 3)
	r := s.Report()
	if r.CarriedAcrossSteps != 1 || len(r.CarriedLines) != 1 || !strings.Contains(r.CarriedLines[0].Line, "step_test.go:") {
		t.Errorf("carried %d at %v, want 1 at a line of this file", r.CarriedAcrossSteps, r.CarriedLines)
	}
}

func TestOneCompilePerGraph(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.FromSlice([]float32{1, 2}))
	rate := 0.5
	for step := range 6 {
		g := Grad(w.Value().Mul(w.Value()).Sum(), w)[0]
		w.Assign(w.Value().Sub(g.Mul(rate)))
		rate /= 2
		if step == 4 {
			rate = 1 // a value that a constant folder could treat apart
		}
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Report(); r.Compiles != 1 {
		t.Errorf("%d compiles, want 1: a learning rate must not recompile\n%v", r.Compiles, r)
	}
	for range 2 {
		if err := m.Full(3.5, 2).Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if err := m.Full(4.5, 2).Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Report(); r.Compiles != 2 {
		t.Errorf("%d compiles, want 2: Full must not hash its value", r.Compiles)
	}
}

func TestSameAndOtherOperand(t *testing.T) {
	m := newSession(t).With()
	x, y := m.FromSlice([]float32{1}), m.FromSlice([]float32{10})
	for range 2 {
		wantFloats(t, x.Add(x), 2)
		wantFloats(t, x.Add(y), 11)
		wantFloats(t, y.Add(x), 11)
		wantFloats(t, y.Add(y), 20)
		wantFloats(t, x.Add(y).Mul(x), 11)
		wantFloats(t, x.Add(y).Mul(y), 110)
	}
}

func TestVariableRestoredAfterFailure(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.FromSlice([]float32{1, 2, 3}))
	bad := m.FromSlice([]int64{7})
	picked := w.Value().IndexSelect(0, bad)
	w.Assign(w.Value().Add(picked.Sum()))
	if err := s.MarkStep(ctx); err != nil {
		t.Fatalf("the step is scheduled before it fails: %v", err)
	}
	if err := s.WaitDeviceOps(ctx); !errors.Is(err, ErrIndex) {
		t.Fatalf("got %v, want an error wrapping ErrIndex", err)
	}
	wantFloats(t, w.Value(), 1, 2, 3)
	w.Assign(w.Value().Add(1))
	if err := s.MarkStep(ctx); err != nil {
		t.Fatalf("the error was delivered already: %v", err)
	}
	wantFloats(t, w.Value(), 2, 3, 4)
}

// An error that nobody has read is told by the session's next step, once.
func TestErrorReachesTheNextStep(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	bad := func() *Tensor { return m.FromSlice([]float32{1, 2}).IndexSelect(0, m.FromSlice([]int64{-5})) }
	x := bad()
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Float32s(ctx); !errors.Is(err, ErrIndex) {
		t.Errorf("read: got %v, want an error wrapping ErrIndex", err)
	}
	bad()
	if err := s.MarkStep(ctx); err != nil {
		t.Errorf("next step: got %v, but the error was read", err)
	}
	y := m.Ones(1).Add(1)
	if err := s.MarkStep(ctx); !errors.Is(err, ErrIndex) {
		t.Errorf("next step: got %v, want the error of the one before", err)
	}
	if !y.Pending() {
		t.Error("a step that failed to start must leave its tensors pending")
	}
	if err := s.MarkStep(ctx); err != nil {
		t.Errorf("the step after: %v", err)
	}
	wantFloats(t, y, 2)
}

// An error belongs to the session that scheduled the work. Another one's work goes on, whether the
// error was read or not, and hears of it only if it takes part of the result.
func TestErrorBelongsToItsSession(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	table := s.With().FromSlice([]float32{1, 2, 3, 4}, 4, 1)
	bad, good := s.Fork(), s.Fork()
	gather := func(s *Session, i int64) *Tensor { return table.Gather(0, s.With().FromSlice([]int64{i}, 1, 1)) }
	request := func(f *Session, i int64) error {
		y := f.With().Zeros(1, 1).Add(gather(f, i))
		_, err := y.Float32s(ctx)
		return err
	}
	for range 3 {
		if err := request(bad, 99); !errors.Is(err, ErrIndex) {
			t.Fatalf("the bad request got %v", err)
		}
		if err := request(good, 3); err != nil {
			t.Fatalf("the good request after a bad one got %v", err)
		}
	}
	if err := bad.WaitDeviceOps(ctx); err != nil {
		t.Errorf("an error that was read is told again: %v", err)
	}
	y := bad.With().Zeros(1, 1).Add(gather(bad, 99)) // nobody reads it
	if err := bad.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if err := request(good, 2); err != nil {
		t.Errorf("an error that nobody has read reached another session: %v", err)
	}
	if _, err := good.With().Zeros(1, 1).Add(y).Float32s(ctx); !errors.Is(err, ErrIndex) {
		t.Errorf("work that takes the result got %v", err)
	}
	if err := good.MarkStep(ctx); err != nil {
		t.Errorf("it was read: %v", err)
	}
	bad.With().Zeros(1).Add(1)
	var async *AsyncError
	if err := bad.MarkStep(ctx); !errors.As(err, &async) || !errors.Is(err, ErrIndex) {
		t.Errorf("the session of the failure got %v", err)
	}
	if err := bad.MarkStep(ctx); err != nil {
		t.Errorf("it was told twice: %v", err)
	}
}

// A barrier asks about the device, so it returns what nobody was told, whoever's it is.
func TestBarrierTellsAllErrors(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	f := s.Fork()
	f.With().FromSlice([]float32{1, 2}).IndexSelect(0, f.With().FromSlice([]int64{-5}))
	if err := f.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitDeviceOps(ctx); !errors.Is(err, ErrIndex) {
		t.Errorf("got %v", err)
	}
	if err := f.MarkStep(ctx); err != nil {
		t.Errorf("it was told twice: %v", err)
	}
}

func TestCancelledContext(t *testing.T) {
	s := newSession(t)
	y := s.With().Ones(1).Add(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.MarkStep(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if !y.Pending() {
		t.Error("a cancelled step must leave its tensors pending")
	}
	wantFloats(t, y, 2) // which takes the device lock
	if err := s.WaitDeviceOps(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStepKillsTemporaries(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.Zeros(2))
	var temp, kept *Tensor
	for range 3 {
		err := s.Step(ctx, func() error {
			temp = w.Value().Add(1)
			kept = temp.Mul(10).Keep()
			w.Assign(temp)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantFloats(t, w.Value(), 3, 3)
	wantFloats(t, kept, 30, 30)
	if _, err := temp.Float32s(ctx); !errors.Is(err, ErrDead) {
		t.Errorf("got %v, want ErrDead", err)
	}
	if err := Try(func() { temp.Neg() }); !errors.Is(err, ErrDead) {
		t.Errorf("got %v, want ErrDead", err)
	}
	fail := errors.New("fail")
	if err := s.Step(ctx, func() error { w.Assign(w.Value().Mul(100)); return fail }); !errors.Is(err, fail) {
		t.Errorf("got %v, want the function's error", err)
	}
	wantFloats(t, w.Value(), 3, 3)
}

func TestSyncIsAtomic(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	good := m.Ones(1).Add(1)
	// A function that is compiled leaves a value without elements behind.
	var leaked *Tensor
	f := Compile(func(in ...*Tensor) []*Tensor { leaked = in[0].Add(1); return in })
	if _, err := f.Call(ctx, m.Ones(1)); err != nil {
		t.Fatal(err)
	}
	err := s.Sync(ctx, good, leaked)
	if err == nil || !strings.Contains(err.Error(), "being compiled") {
		t.Errorf("got %v", err)
	}
	if !good.Pending() {
		t.Error("the other tensor was synced")
	}
	wantFloats(t, good, 2)
}

func TestForgottenMarkStepIsTrimmed(t *testing.T) {
	s := newSession(t, WithTrimNodes(50))
	x := s.With().Zeros(1)
	for range 200 {
		x = x.Add(1)
	}
	r := s.Report()
	if r.Trims < 3 || len(r.TrimLines) == 0 || !strings.Contains(r.TrimLines[0].Line, "step_test.go:") {
		t.Errorf("%d trims at %v, want 3 or more at a line of this file", r.Trims, r.TrimLines)
	}
	if r.MaxNodes > 120 {
		t.Errorf("a graph of %d nodes, where 50 are allowed", r.MaxNodes)
	}
	wantFloats(t, x, 200)
}

func TestSmallComputationCache(t *testing.T) {
	ctx := t.Context()
	s := newSession(t, WithCacheBytes(-1), WithCacheEntries(1))
	m := s.With()
	x := m.FromSlice([]float32{1, 2})
	for range 3 {
		wantFloats(t, x.Add(x), 2, 4)
		wantFloats(t, x.Mul(x), 1, 4)
	}
	if r := s.Report(); r.Compiles < 5 {
		t.Errorf("%d compiles: two graphs in turn cannot both stay in a cache of one", r.Compiles)
	}
	before := s.Report().Compiles
	for range 3 {
		if err := x.Exp().Sync(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Report().Compiles - before; n != 1 {
		t.Errorf("%d compiles of one graph in a row, want 1", n)
	}
}

// ResetTrim lets a step that is known to be large go on.
func TestResetTrim(t *testing.T) {
	s := newSession(t, WithTrimNodes(50))
	x := s.With().Zeros(1)
	for i := range 200 {
		if i%20 == 0 {
			s.ResetTrim()
		}
		x = x.Add(1)
	}
	if r := s.Report(); r.Trims != 0 {
		t.Errorf("%d trims at %v, want none", r.Trims, r.TrimLines)
	}
	wantFloats(t, x, 200)
}

// A value that the step did not give out, since another op used it, is computed by its graph running
// again when it is read: the report says how often, and where to Keep it.
func TestRecomputedAfterItsStep(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	x := s.With().FromSlice([]float32{1, 2})
	for range 3 {
		mid, kept, lazy := x.Exp(), x.Log(), x.Sin().Discard() // the line that is reported
		mid.Add(kept.Keep()).Add(lazy)
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		for _, y := range []*Tensor{mid, kept, lazy} {
			if _, err := y.Float32s(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := s.Report()
	if r.Recomputed != 3 || len(r.RecomputedLines) != 1 || !strings.Contains(r.RecomputedLines[0].Line, "step_test.go:") {
		t.Errorf("%d recomputed at %v, want 3 at a line of this file", r.Recomputed, r.RecomputedLines)
	}
	if text := r.String(); !strings.Contains(text, "computed again 3 times") || !strings.Contains(text, "Keep it before MarkStep") {
		t.Errorf("the report says:\n%s", text)
	}
}
