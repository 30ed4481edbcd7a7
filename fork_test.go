package loris

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/longtest"
)

// wantValue compares a variable's value as a session sees it.
func wantValue(t *testing.T, s *Session, v *Variable, want ...float32) {
	t.Helper()
	wantFloats(t, v.ValueIn(s), want...)
}

// What a session has assigned is its own until its step ends; then others see it.
func TestForkSeesCommittedValues(t *testing.T) {
	ctx := t.Context()
	for _, scoped := range []bool{false, true} {
		t.Run(fmt.Sprintf("Step=%v", scoped), func(t *testing.T) {
			s := newSession(t)
			f := s.Fork()
			v := NewVariable(s.With().FromSlice([]float32{1}))
			ready := NewVariable(s.With().FromSlice([]float32{10}))
			var seen *Tensor
			step := func() error {
				v.Assign(v.Value().Add(1))
				ready.Assign(s.With().FromSlice([]float32{20}))
				seen = v.ValueIn(f)
				wantValue(t, f, v, 1)
				wantValue(t, f, ready, 10)
				v.Assign(v.Value().Mul(3))
				if x, err := v.Value().Float32s(ctx); err != nil || x[0] != 6 {
					t.Errorf("the session itself sees %v, %v", x, err)
				}
				wantValue(t, s, ready, 20)
				wantValue(t, f, v, 1)
				return nil
			}
			var err error
			if scoped {
				err = s.Step(ctx, step)
			} else if err = step(); err == nil {
				err = s.MarkStep(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			wantValue(t, f, v, 6)
			wantValue(t, f, ready, 20)
			wantFloats(t, seen.Add(1), 2) // it did not die with the other session's step
		})
	}
}

// A fork computes what it records and nothing of the step that another session records.
func TestForkCompilesItsOwnGraphs(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	f := s.Fork()
	w := NewVariable(s.With().Ones(2)) // pending: whoever needs it first computes it
	serve := func() {
		t.Helper()
		if _, err := f.With().Ones(2).Mul(w.ValueIn(f)).Float32s(ctx); err != nil {
			t.Fatal(err)
		}
	}
	serve()
	before := s.Report().Compiles
	for i := range 4 {
		x := w.Value()
		for range i {
			x = x.Mul(2)
			w.Assign(x)
			serve()
		}
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		serve()
	}
	if n := s.Report().Compiles - before; n != 3 {
		t.Errorf("%d compilations for 3 different steps:\n%v", n, s.Report())
	}
}

// Each session sees what it has assigned; the step that ends last wins.
func TestForksThatAssignOneVariable(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	a, b := s.Fork(), s.Fork()
	v := NewVariable(s.With().FromSlice([]float32{1}))
	v.Assign(v.ValueIn(a).Add(1))
	v.Assign(v.ValueIn(b).Add(10))
	for who, want := range map[*Session]float32{a: 2, b: 11, s: 1} {
		wantValue(t, who, v, want)
	}
	for _, c := range []struct {
		ends *Session
		want float32
	}{{b, 11}, {a, 2}} {
		if err := c.ends.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		wantValue(t, s, v, c.want)
	}
	// A failed Step of one takes back what it has assigned, and nothing of the other.
	v.Assign(v.ValueIn(a).Add(1))
	fail := errors.New("fail")
	if err := b.Step(ctx, func() error { v.Assign(v.ValueIn(b).Mul(100)); return fail }); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	wantValue(t, a, v, 3)
	wantValue(t, b, v, 2)
	// A value of another session with data belongs to no step.
	v.Assign(b.With().FromSlice([]float32{7}))
	for _, who := range []*Session{s, b} {
		wantValue(t, who, v, 7)
	}
	wantValue(t, a, v, 3)
}

// twoCounters returns two variables that are zero, and a step that adds one to each.
func twoCounters(t *testing.T, s *Session) (a, b *Variable, step func()) {
	a, b = NewVariable(s.With().Zeros(1)), NewVariable(s.With().Zeros(1))
	return a, b, func() {
		t.Helper()
		if err := s.Step(t.Context(), func() error {
			a.Assign(a.Value().Add(1))
			b.Assign(b.Value().Add(1))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// What a fork records between two syncs has the values of one moment.
func TestViewOfAFork(t *testing.T) {
	s := newSession(t)
	f := s.Fork()
	a, b, step := twoCounters(t, s)
	step()
	x := a.ValueIn(f)
	step()
	step() // this may not overwrite what the fork still sees
	y := b.ValueIn(f)
	wantValue(t, s, b, 3)
	wantFloats(t, x.Sub(y), 0)
	wantFloats(t, y, 1)
	wantValue(t, f, a, 3)
	step()
	wantValue(t, f, b, 4) // the read ended the view
}

func TestSnapshot(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	f := s.Fork()
	a, b, step := twoCounters(t, s)
	step()
	a.Assign(a.Value().Add(100)) // pending, so in no snapshot
	snap := s.Snapshot(a)
	other := f.Snapshot(a, b)
	f.Use(other)
	for range 3 {
		step()
	}
	wantValue(t, s, a, 104)
	wantFloats(t, snap.Value(s, a), 1)
	for range 2 {
		wantValue(t, f, a, 1)
		wantValue(t, f, b, 1)
	}
	kept := other.Value(f, b)
	mistake := func(name string, want error, fn func()) {
		t.Helper()
		var op *OpError
		if err := Try(fn); !errors.As(err, &op) || !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mistake("assign", ErrArg, func() { a.Assign(a.ValueIn(f).Add(1)) })
	mistake("not in it", ErrArg, func() { snap.Value(s, b) })
	mistake("unrelated", ErrSession, func() { newSession(t).Use(snap) })
	other.Release()
	other.Release()
	wantValue(t, f, b, 4)
	wantFloats(t, kept, 1)
	mistake("released", ErrReleased, func() { other.Value(f, a) })
	mistake("use of a released one", ErrReleased, func() { f.Use(other) })
	f.Use(nil)
	a.Assign(a.ValueIn(f).Add(1))
	mistake("use after an assignment", ErrArg, func() { f.Use(snap) })
	mistake("made in a Step", ErrUncommitted, func() {
		_ = s.Step(ctx, func() error {
			f.Snapshot(NewVariable(s.With().Zeros(1).Add(1)))
			return nil
		})
	})
}

func TestPublish(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	f := s.Fork()
	a, b := NewVariable(s.With().Zeros(1)), NewVariable(s.With().Zeros(2))
	a.Assign(a.Value().Add(5))
	one, two := s.With().Ones(1), s.With().Full(2.0, 2).Mul(1)
	if err := Publish(ctx, []*Variable{a, b}, []*Tensor{one, two}); err != nil {
		t.Fatal(err)
	}
	for _, who := range []*Session{s, f} {
		wantValue(t, who, a, 1)
		wantValue(t, who, b, 2, 2)
	}
	for name, err := range map[string]error{
		"count": Publish(ctx, []*Variable{a, b}, []*Tensor{two}),
		"none":  Publish(ctx, []*Variable{a, b}, nil),
	} {
		if !errors.Is(err, ErrArg) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Publish(ctx, []*Variable{a, b}, []*Tensor{two, two}); !errors.Is(err, ErrShape) {
		t.Errorf("shape: %v", err)
	}
	wantValue(t, f, b, 2, 2)
	fail := errors.New("fail")
	if err := s.Step(ctx, func() error {
		if err := Publish(ctx, []*Variable{a}, []*Tensor{s.With().Full(9.0, 1)}); err != nil {
			return err
		}
		wantValue(t, s, a, 9)
		wantValue(t, f, a, 1)
		return fail
	}); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	wantValue(t, s, a, 1)
}

// A call of a compiled function commits all that it assigns; inside a Step the Step does.
func TestCallCommits(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	f := s.Fork()
	a, b := NewVariable(s.With().Zeros(1)), NewVariable(s.With().Zeros(1))
	grow := Compile(func(in ...*Tensor) []*Tensor {
		a.Assign(a.Value().Add(in[0]))
		b.Assign(b.Value().Add(in[0]))
		return nil
	})
	one := s.With().FromSlice([]float32{1})
	call := func() error {
		_, err := grow.Call(ctx, one)
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, f, a, 1)
	a.Assign(a.Value().Add(10))
	if err := call(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, f, a, 12)
	fail := errors.New("fail")
	if err := s.Step(ctx, func() error {
		if err := call(); err != nil {
			return err
		}
		wantValue(t, s, a, 13)
		wantValue(t, f, a, 12)
		return fail
	}); !errors.Is(err, fail) {
		t.Fatal(err)
	}
	wantValue(t, s, a, 12)
	if err := s.Step(ctx, call); err != nil {
		t.Fatal(err)
	}
	wantValue(t, f, a, 13)
	wantValue(t, f, b, 3)
}

// Servers read while another session trains in each of the three ways: nothing is torn, nothing
// fails, and servers compile their own graphs only.
func TestServingWhileTraining(t *testing.T) {
	long := 100 * time.Millisecond
	if longtest.Enabled() {
		long = 5 * time.Second
	}
	for _, way := range []string{"MarkStep", "Step", "Compile"} {
		t.Run(way, func(t *testing.T) { serveWhileTraining(t, way, long) })
	}
}

func serveWhileTraining(t *testing.T, way string, long time.Duration) {
	ctx := t.Context()
	s := newSession(t)
	vars := make([]*Variable, 20)
	for i := range vars {
		vars[i] = NewVariable(s.With().Zeros(4))
	}
	grow := func(...*Tensor) []*Tensor {
		for _, v := range vars {
			v.Assign(v.Value().Add(1))
		}
		return nil
	}
	compiled := Compile(grow)
	one := s.With().FromSlice([]float32{1})
	train := map[string]func() error{
		"MarkStep": func() error { grow(); return s.MarkStep(ctx) },
		"Step":     func() error { return s.Step(ctx, func() error { grow(); return nil }) },
		"Compile":  func() error { _, err := compiled.Call(ctx, one); return err },
	}[way]
	if err := train(); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var requests atomic.Int64
	var wg sync.WaitGroup
	serve := func(read func(f *Session) error) {
		f := s.Fork()
		wg.Go(func() {
			for !stop.Load() {
				if err := Try(func() {
					if err := read(f); err != nil {
						t.Error(err)
						stop.Store(true)
					}
				}); err != nil {
					t.Error(err)
					stop.Store(true)
				}
				requests.Add(1)
			}
		})
	}
	spread := func(f *Session) error {
		low, high := vars[0].ValueIn(f), vars[0].ValueIn(f)
		for _, v := range vars[1:] {
			low, high = low.Minimum(v.ValueIn(f)), high.Maximum(v.ValueIn(f))
		}
		d, err := high.Sub(low).Amax().Item(ctx)
		if err == nil && d != 0 {
			err = fmt.Errorf("a request has seen values that are %v steps apart", d)
		}
		return err
	}
	serve(spread)
	serve(func(f *Session) error {
		snap := f.Snapshot(vars...)
		defer snap.Release()
		f.Use(snap)
		defer f.Use(nil)
		first, err := vars[0].ValueIn(f).Add(0).Float32s(ctx)
		if err != nil {
			return err
		}
		last, err := vars[len(vars)-1].ValueIn(f).Add(0).Float32s(ctx)
		if err == nil && first[0] != last[0] {
			err = fmt.Errorf("a snapshot has values %v and %v", first, last)
		}
		return err
	})
	steps := 1
	for end := time.Now().Add(long); time.Now().Before(end) && !stop.Load(); steps++ {
		if err := train(); err != nil {
			t.Error(err)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	for _, v := range vars {
		wantValue(t, s, v, float32(steps), float32(steps), float32(steps), float32(steps))
	}
	if r := s.Report(); r.Compiles > 5 || requests.Load() == 0 {
		t.Errorf("%d compilations in %d steps and %d requests:\n%v", r.Compiles, steps, requests.Load(), r)
	}
}

func ExampleSession_Snapshot() {
	ctx := context.Background()
	s, err := New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	w, bias := NewVariable(s.With().Zeros(2)), NewVariable(s.With().Zeros(2))

	// One goroutine trains. Each step commits the new values of all variables at once.
	train := func() error {
		return s.Step(ctx, func() error {
			w.Assign(w.Value().Add(1))
			bias.Assign(bias.Value().Sub(1))
			return nil
		})
	}
	// Another serves, with a fork: what it records until it reads has the values of one step.
	fork := s.Fork()
	serve := func() ([]float32, error) { return w.ValueIn(fork).Add(bias.ValueIn(fork)).Float32s(ctx) }

	var wg sync.WaitGroup
	wg.Go(func() {
		for range 100 {
			if err := train(); err != nil {
				fmt.Println(err)
			}
		}
	})
	for range 100 {
		if y, err := serve(); err != nil || y[0] != 0 {
			fmt.Println("torn:", y, err)
		}
	}
	wg.Wait()

	// Requests that read several times use a snapshot, which no step changes.
	snap := fork.Snapshot(w, bias)
	fork.Use(snap)
	if err := train(); err != nil {
		fmt.Println(err)
	}
	before, _ := w.ValueIn(fork).Float32s(ctx)
	snap.Release()
	after, _ := w.ValueIn(fork).Float32s(ctx)
	fmt.Println(before, after)
	// Output: [100 100] [101 101]
}

// A step that commits while a fork computes an initial value gives the fork's view a copy of that
// value, which the fork computes, too.
func TestForkReadsInitialValueBesideCommit(t *testing.T) {
	ctx := t.Context()
	var train func()
	s := newSession(t, WithHooks(Hooks{TensorCollectionBarrier: func(*SyncTensorCollection) {
		if f := train; f != nil {
			train = nil
			f()
		}
	}}))
	w := NewVariable(s.With().Full(float32(7), 2))
	fork := s.Fork()
	train = func() {
		if err := s.Step(ctx, func() error { w.Assign(w.Value().Add(1)); return nil }); err != nil {
			t.Error(err)
		}
	}
	y := w.ValueIn(fork).Add(1)
	if y.Session() != fork {
		t.Fatal("what the fork records belongs to the session that trains")
	}
	got, err := y.Float32s(ctx)
	if err != nil || got[0] != 8 {
		t.Fatalf("the fork read %v (%v), want the initial value plus 1", got, err)
	}
}
