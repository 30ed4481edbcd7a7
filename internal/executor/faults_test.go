package executor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// failOnce fails the first call.
func failOnce(msg string) func(context.Context, *graph.Program, ir.Device) error {
	var calls atomic.Int64
	return func(context.Context, *graph.Program, ir.Device) error {
		if calls.Add(1) == 1 {
			return errors.New(msg)
		}
		return nil
	}
}

// blocking waits, in every call, until release is called; entered tells of each.
func blocking() (fn func(context.Context, *graph.Program, ir.Device) error, entered chan struct{}, release func()) {
	entered, gate := make(chan struct{}, 64), make(chan struct{})
	return func(context.Context, *graph.Program, ir.Device) error {
		entered <- struct{}{}
		<-gate
		return nil
	}, entered, sync.OnceFunc(func() { close(gate) })
}

func fakeSession(t *testing.T) (*fake, *executor.Session) {
	f := newFake(t)
	return f, newSession(t, executor.Config{Device: fakeDevice(0)})
}

// sum records x+x of a fresh x.
func sum(t testing.TB, s *executor.Session) *executor.Tensor {
	t.Helper()
	x := floatsOn(t, s, s.Device(), 1, 2)
	return binaryOp(s, aten.Add, x, x)
}

func TestKernelPanicIsAnError(t *testing.T) {
	f, s := fakeSession(t)
	cause := errors.New("kernel out of order")
	f.running = func(context.Context, *graph.Program, ir.Device) error { panic(cause) }
	y := sum(t, s)
	mark(t, s)
	if _, err := y.Fetch(ctx); !errors.Is(err, cause) {
		t.Errorf("the tensor of the step that panicked gives %v", err)
	}
	mark(t, s) // the error was read
	unread := sum(t, s)
	mark(t, s)
	until(func() bool { return unread.Data().Ready() })
	f.running = nil
	z := sum(t, s)
	var async *devicelock.AsyncError
	if err := s.MarkStep(ctx); !errors.As(err, &async) || !errors.Is(err, cause) {
		t.Errorf("the next locker got %v", err)
	}
	mark(t, s)
	want(t, z, 2, 4)
	want(t, sum(t, s), 2, 4)
}

func TestPanicOfACompilerIsAnError(t *testing.T) {
	f, s := fakeSession(t)
	f.compiling = func(context.Context, *graph.Program, ir.Device) error { panic("no such register") }
	y := sum(t, s)
	if err := s.MarkStep(ctx); err == nil || !strings.Contains(err.Error(), "no such register") {
		t.Errorf("MarkStep: %v", err)
	}
	f.compiling = nil
	want(t, y, 2, 4)
}

func TestFailedSyncLeavesTheGraph(t *testing.T) {
	cause := errors.New("refused")
	tests := map[string]func(f *fake){
		"compile": func(f *fake) {
			f.compiling = func(context.Context, *graph.Program, ir.Device) error { return cause }
		},
		"upload of a number": func(f *fake) {
			f.uploading = func(s ir.Shape, _ ir.Device) error {
				if s.Rank() == 0 {
					return cause
				}
				return nil
			}
		},
	}
	for name, breakIt := range tests {
		t.Run(name, func(t *testing.T) {
			f, s := fakeSession(t)
			v := s.NewVariable(floatsOn(t, s, fakeDevice(0), 3))
			y, next := newTensor(), newTensor()
			s.BinaryNumber(aten.Mul, y, value(s, v), 2.5, false)
			s.BinaryNumber(aten.Add, next, y, 1.5, false)
			s.Keep(y)
			v.Assign(next)
			breakIt(f)
			step := s.StepNumber()
			if err := s.MarkStep(ctx); !errors.Is(err, cause) {
				t.Fatalf("MarkStep: %v", err)
			}
			if !y.Pending() || !next.Pending() || s.StepNumber() != step || f.runs.Load() != 0 {
				t.Error("a sync that failed has changed something")
			}
			f.compiling, f.uploading = nil, nil
			mark(t, s) // nothing is locked
			want(t, y, 7.5)
			want(t, value(s, v), 9)
		})
	}
}

func TestEqualGraphsCompileOnce(t *testing.T) {
	const n = 8
	f := newFake(t)
	var err error
	compile, entered, release := blocking()
	f.compiling = compile
	var collected sync.WaitGroup
	collected.Add(n)
	s := newSession(t, executor.Config{Device: fakeDevice(0), Instances: 1, Hooks: executor.Hooks{
		RunPostOrder: func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder {
			collected.Done()
			return next(roots)
		},
	}})
	ys := make([]*executor.Tensor, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		g := s.Fork()
		ys[i] = sum(t, g)
		wg.Go(func() { errs[i] = g.MarkStep(ctx) })
	}
	collected.Wait()
	<-entered
	release()
	wg.Wait()
	if err = errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, y := range ys {
		want(t, y, 2, 4)
	}
	if c := f.compiles.Load(); c != 1 || s.Report().Compiles != 1 || s.Report().CachedHits != n-1 {
		t.Errorf("%d compilations, the report has %d and %d hits", c, s.Report().Compiles, s.Report().CachedHits)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	f, s := fakeSession(t)
	run, entered, release := blocking()
	defer release()
	f.running = run
	first := sum(t, s)
	mark(t, s)
	<-entered
	second := sum(t, s)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.MarkStep(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("MarkStep behind slow work: %v", err)
	}
	if !second.Pending() {
		t.Error("a tensor has lost its graph to a MarkStep that failed")
	}
	if _, err := first.Fetch(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Fetch of slow work: %v", err)
	}
	if err := s.WaitDeviceOps(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitDeviceOps: %v", err)
	}
	release()
	mark(t, s)
	want(t, first, 2, 4)
	want(t, second, 2, 4)
}

func TestCloseWaitsForWork(t *testing.T) {
	f, s := fakeSession(t)
	run, entered, release := blocking()
	defer release()
	f.running = run
	y := sum(t, s)
	mark(t, s)
	<-entered
	data := y.Data()
	fork := s.Fork()
	z := sum(t, fork)
	blocked := make(chan error, 1) // a sync that waits for the device when Close comes
	go func() { blocked <- fork.MarkStep(ctx) }()
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Close during slow work: %v", err)
	}
	mustPanic(t, executor.ErrClosed, func() { binaryOp(fork, aten.Add, z, z) })
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		t.Fatalf("a second Close did not wait: %v", err)
	case <-time.After(time.Millisecond):
	}
	release()
	if err := <-closed; err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := <-blocked; err != nil && !errors.Is(err, executor.ErrClosed) {
		t.Errorf("a MarkStep overtaken by Close: %v", err)
	}
	if _, err := data.Wait(ctx); err != nil {
		t.Errorf("the work in flight gave %v", err)
	}
	if err := fork.MarkStep(ctx); !errors.Is(err, executor.ErrClosed) {
		t.Errorf("MarkStep of a fork after Close: %v", err)
	}
}

// What Close interrupts while it compiles is ErrClosed, whatever the backend makes of it; a caller
// whose own context ends gets that.
func TestCloseInterruptsCompilations(t *testing.T) {
	for name, c := range map[string]struct {
		run       func(ctx context.Context, s *executor.Session) error
		cancelled bool
	}{
		"MarkStep": {run: func(ctx context.Context, s *executor.Session) error {
			sum(t, s)
			return s.MarkStep(ctx)
		}},
		"read": {run: func(ctx context.Context, s *executor.Session) error {
			_, err := sum(t, s).Fetch(ctx)
			return err
		}},
		"Trace": {run: func(ctx context.Context, s *executor.Session) error {
			_, err := s.Trace(ctx, []*executor.Tensor{floatsOn(t, s, fakeDevice(0), 1)}, newTensor, func(in []*executor.Tensor) ([]*executor.Tensor, error) {
				return []*executor.Tensor{binaryOp(s, aten.Add, in[0], in[0])}, nil
			}, false)
			return err
		}},
		"cancelled": {cancelled: true, run: func(ctx context.Context, s *executor.Session) error {
			sum(t, s)
			return s.MarkStep(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := fakeSession(t)
			entered := make(chan struct{})
			f.compiling = func(ctx context.Context, _ *graph.Program, _ ir.Device) error {
				close(entered)
				<-ctx.Done()
				return ctx.Err()
			}
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			got := make(chan error)
			go func() { got <- c.run(own, s) }()
			<-entered
			want := executor.ErrClosed
			if c.cancelled {
				want = context.Canceled
				cancel()
			} else if err := s.Close(ctx); err != nil {
				t.Fatal(err)
			}
			err := <-got
			if !errors.Is(err, want) || !c.cancelled && errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// A nil tensor is a mistake like others: it panics and holds no lock.
func TestNilOperands(t *testing.T) {
	_, s := fakeSession(t)
	x := sum(t, s)
	for name, fn := range map[string]func(){
		"unary":  func() { s.Unary(aten.Neg, newTensor(), nil) },
		"binary": func() { s.Binary(aten.Add, newTensor(), x, nil) },
		"number": func() { s.BinaryNumber(aten.Add, newTensor(), nil, 1, false) },
		"keep":   func() { s.Keep(nil) },
		"list":   func() { s.Call(aten.Cat, newTensor, []any{[]*executor.Tensor{x, nil}, 0}, nil) },
	} {
		t.Run(name, func(t *testing.T) { mustPanic(t, ir.ErrArg, fn) })
	}
	want(t, x, 2, 4)
}

// A step changes its variables all or not at all, also those whose values were computed before.
func TestFailureTakesTheWholeStepBack(t *testing.T) {
	f, s := fakeSession(t)
	v := s.NewVariable(floatsOn(t, s, fakeDevice(0), 1))
	y := binaryOp(s, aten.Add, value(s, v), value(s, v))
	v.Assign(y)
	want(t, y, 2) // computes the variable's new value
	other := sum(t, s)
	f.running = failOnce("the rest of the step")
	mark(t, s)
	if _, err := other.Fetch(ctx); err == nil {
		t.Error("the rest of the step did not fail")
	}
	want(t, value(s, v), 1)
}
