package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

var errKernel = errors.New("kernel failed")

// plain is a model without constants whose runs do what run says.
type plain struct {
	run    func(ctx context.Context) error
	outs   []backend.Buffer
	busy   atomic.Int32
	closed atomic.Int32
	fail   error // of Close
}

func (d *plain) Spec() backend.Spec { return backend.Spec{} }

func (d *plain) Run(ctx context.Context, _ []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	if d.busy.Add(1) != 1 {
		panic("two runs on one instance")
	}
	defer d.busy.Add(-1)
	if d.closed.Load() != 0 {
		panic("run after close")
	}
	return d.outs, d.run(ctx)
}

func (d *plain) RunInto(ctx context.Context, _ []backend.Buffer, _ []bool, _ []backend.Buffer) error {
	return d.run(ctx)
}

func (d *plain) CallSpec() (in, out string) { return "[1]", "[2]" }

func (d *plain) Close() error {
	d.closed.Add(1)
	return d.fail
}

func newPlain(t testing.TB, cfg container.Config, run func(context.Context) error) (*container.Container, *atomic.Int32) {
	t.Helper()
	var made atomic.Int32
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		made.Add(1)
		return &plain{run: run}, nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, &made
}

func TestInstances(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for _, tt := range []struct {
		cfg   container.Config
		first int
	}{
		{container.Config{}, 0},
		{container.Config{Instances: -1}, 0},
		{container.Config{Max: 3}, 0},
		{container.Config{Instances: 3, Max: 2}, 0},
		{container.Config{Instances: 1}, 1},
		{container.Config{Instances: 3}, 3},
		{container.Config{Instances: 2, Max: 5}, 2},
	} {
		c, err := container.New(ctx, func(context.Context) (backend.Model, error) { return &plain{run: nothing}, nil }, tt.cfg)
		if tt.first == 0 {
			if !errors.Is(err, container.ErrInstances) {
				t.Errorf("%+v: %v", tt.cfg, err)
			}
			continue
		}
		if err != nil || c.Instances() != tt.first {
			t.Errorf("%+v: %d instances, %v", tt.cfg, c.Instances(), err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Instances made before one that fails are closed.
func TestNewFails(t *testing.T) {
	var models []*plain
	_, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		if len(models) == 2 {
			return nil, errKernel
		}
		models = append(models, &plain{fail: fmt.Errorf("close %d", len(models))})
		return models[len(models)-1], nil
	}, container.Config{Instances: 3})
	if !errors.Is(err, errKernel) || !strings.Contains(err.Error(), "close 0") || !strings.Contains(err.Error(), "close 1") {
		t.Errorf("%v does not say all", err)
	}
	for i, m := range models {
		if m.closed.Load() != 1 {
			t.Errorf("instance %d was closed %d times", i, m.closed.Load())
		}
	}
}

func TestDescription(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	if got := fmt.Sprint(c.NumInputs(), c.InputNames(), c.NumOutputs(), c.OutputNames()[:2]); got != "1 [x] 7 [out0 out1]" {
		t.Errorf("got %s", got)
	}
	if in, out := c.CallSpec(); in != "" || out != "" {
		t.Errorf("call spec %q, %q of a model that has none", in, out)
	}
	if got := c.Constants(); len(got) != cCount || got[cW] != info()[cW] {
		t.Errorf("constants %v", got)
	}
	p, _ := newPlain(t, container.Config{Instances: 1}, nil)
	if in, out := p.CallSpec(); in != "[1]" || out != "[2]" {
		t.Errorf("call spec %q, %q", in, out)
	}
	if err := p.Swap(ctx); !errors.Is(err, container.ErrNoConstants) {
		t.Errorf("swap without constants: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// An instance returns to the pool after an error and after a panic.
func TestInstanceReturns(t *testing.T) {
	calls := 0
	c, _ := newPlain(t, container.Config{Instances: 1}, func(context.Context) error {
		calls++
		switch calls {
		case 1:
			return errKernel
		case 2:
			panic(errKernel)
		case 3:
			panic("text")
		}
		return nil
	})
	for i, want := range []string{"kernel failed", "panic in a model: kernel failed", "panic in a model: text", ""} {
		_, err := c.Run(ctx, nil, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("run %d: %v, want %q", i, err, want)
		}
		if i < 2 && !errors.Is(err, errKernel) {
			t.Errorf("run %d: %v hides its cause", i, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestWrongCalls(t *testing.T) {
	m := &maker{}
	c := m.pool(t, container.Config{Instances: 1})
	into := make([]backend.Buffer, outs)
	for name, err := range map[string]error{
		"no inputs":    second(c.Run(ctx, nil, nil)),
		"nil input":    second(c.Run(ctx, []backend.Buffer{nil}, nil)),
		"two marks":    second(c.Run(ctx, x, make([]bool, 2))),
		"start":        second(c.Start(ctx, nil, nil)),
		"single":       second(c.RunSingleThreaded(ctx, nil, nil)),
		"into":         c.RunInto(ctx, nil, nil, into),
		"into outputs": c.RunInto(ctx, x, nil, into[1:]),
	} {
		if !errors.Is(err, ir.ErrArg) {
			t.Errorf("%s: %v", name, err)
		}
	}
	into[1] = x[0]
	if err := c.RunInto(ctx, x, nil, into); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("an output that the model cannot write to: %v", err)
	}
	into[1] = nil
	if err := c.RunInto(ctx, x, nil, into); err != nil {
		t.Error(err)
	}
	look(t, into)
	l := new(ledger)
	bad, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		return &plain{run: func(context.Context) error { return nil }, outs: []backend.Buffer{l.filled(1, 1)}}, nil
	}, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Run(ctx, nil, nil); !errors.Is(err, ir.ErrArg) || l.live.Load() != 0 {
		t.Errorf("a model that returns an output too many: %v, %d bytes are left", err, l.live.Load())
	}
	if err := bad.Close(); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPoolGrowsToItsBoundOnly(t *testing.T) {
	gate := make(chan struct{})
	c, made := newPlain(t, container.Config{Instances: 1, Max: 3}, func(context.Context) error { <-gate; return nil })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := c.Run(ctx, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for c.Instances() < 3 {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	wg.Wait()
	if n := made.Load(); n != 3 || c.Instances() != 3 {
		t.Errorf("%d instances made, %d there", n, c.Instances())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestWaitingHonoursContextAndClose(t *testing.T) {
	gate, started := make(chan struct{}), make(chan struct{})
	c, _ := newPlain(t, container.Config{Instances: 1}, func(context.Context) error { close(started); <-gate; return nil })
	firstRun := make(chan error, 1)
	go func() { firstRun <- second(c.Run(ctx, nil, nil)) }()
	<-started
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Run(ended, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a run with a context that has ended: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := c.Run(soon, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait longer than its context: %v", err)
	}
	waiter := make(chan error, 1)
	go func() { waiter <- second(c.Run(ctx, nil, nil)) }()
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	if err := <-waiter; !errors.Is(err, container.ErrClosed) {
		t.Errorf("a wait ended by Close: %v", err)
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the run in flight")
	default:
	}
	close(gate)
	if err := errors.Join(<-firstRun, <-closed, c.Close()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"run": second(c.Run(ctx, nil, nil)), "single": second(c.RunSingleThreaded(ctx, nil, nil)),
		"start": second(c.Start(ctx, nil, nil)), "swap": c.Swap(ctx),
	} {
		if !errors.Is(err, container.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// Those who wait for an instance get it in the order in which they came.
func TestFirstComeFirstServed(t *testing.T) {
	const n = 8
	var order []int
	gate, started := make(chan struct{}), make(chan struct{}, n+1)
	type key struct{}
	c, _ := newPlain(t, container.Config{Instances: 1}, func(ctx context.Context) error {
		started <- struct{}{}
		<-gate
		if i, ok := ctx.Value(key{}).(int); ok {
			order = append(order, i)
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.Run(ctx, nil, nil) })
	<-started
	for i := range n {
		wg.Go(func() { _, _ = c.Run(context.WithValue(ctx, key{}, i), nil, nil) })
		for c.Waiting() <= i {
			time.Sleep(100 * time.Microsecond)
		}
	}
	close(gate)
	wg.Wait()
	if got := fmt.Sprint(order); got != "[0 1 2 3 4 5 6 7]" {
		t.Errorf("served in the order %s", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Runs that give up while an instance is handed to them lose none.
func TestGivingUpLosesNoInstance(t *testing.T) {
	c, _ := newPlain(t, container.Config{Instances: 2}, func(context.Context) error { return nil })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 200 {
				short, cancel := context.WithTimeout(ctx, time.Duration(i%7)*time.Microsecond)
				_, err := c.Run(short, nil, nil)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var held sync.WaitGroup
	held.Add(2)
	for range 2 {
		wg.Go(func() { // both instances are there, or this hangs
			if _, err := c.Start(ctx, nil, nil); err != nil {
				t.Error(err)
			}
			held.Done()
		})
	}
	held.Wait()
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A failing factory costs nothing: the next run tries again.
func TestFactoryFails(t *testing.T) {
	gate, started := make(chan struct{}), make(chan struct{}, 4)
	run := func(context.Context) error { started <- struct{}{}; <-gate; return nil }
	calls := 0
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		calls++
		switch calls {
		case 2:
			return nil, errKernel
		case 3:
			panic(errKernel)
		}
		return &plain{run: run}, nil
	}, container.Config{Instances: 1, Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	go func() { done <- second(c.Run(ctx, nil, nil)) }()
	<-started
	for range 2 {
		if _, err := c.Run(ctx, nil, nil); !errors.Is(err, errKernel) {
			t.Errorf("a run that needs a second instance: %v", err)
		}
	}
	go func() { done <- second(c.Run(ctx, nil, nil)) }()
	<-started
	close(gate)
	if err := errors.Join(<-done, <-done, c.Close()); err != nil {
		t.Error(err)
	}
}

func TestCloseJoinsErrors(t *testing.T) {
	n := 0
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		n++
		return &plain{fail: fmt.Errorf("instance %d is stuck", n)}, nil
	}, container.Config{Instances: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err == nil || err.Error() != "instance 1 is stuck\ninstance 2 is stuck" {
		t.Errorf("got %v", err)
	}
}

// A run allocates nothing besides what the model does.
func TestRunAllocatesNothing(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	many, _ := newPlain(t, container.Config{Instances: 2}, nothing)
	one, _ := newPlain(t, container.Config{Instances: 1}, nothing)
	m := &maker{}
	folded := m.pool(t, container.Config{Instances: 1})
	mustRun(t, folded)
	for name, f := range map[string]func() error{
		"run":    func() error { return second(many.Run(ctx, nil, nil)) },
		"into":   func() error { return many.RunInto(ctx, nil, nil, nil) },
		"one":    func() error { return second(one.Run(ctx, nil, nil)) },
		"single": func() error { return second(one.RunSingleThreaded(ctx, nil, nil)) },
	} {
		n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	alone := testing.AllocsPerRun(100, func() {
		d := double{m: m, bound: []backend.Buffer{x[0], x[0], nil, nil, nil, x[0]}}
		out, err := d.Run(ctx, x, nil)
		if err != nil {
			t.Error(err)
		}
		for _, o := range out {
			o.Release()
		}
	})
	pooled := testing.AllocsPerRun(100, func() {
		out, err := folded.Run(ctx, x, nil)
		if err != nil {
			t.Error(err)
		}
		for _, o := range out {
			o.Release()
		}
	})
	if pooled > alone {
		t.Errorf("a run with constants: %v allocations, the model alone %v", pooled, alone)
	}
	if err := errors.Join(many.Close(), one.Close()); err != nil {
		t.Error(err)
	}
}

// BenchmarkRun is what the pool adds to a run.
func BenchmarkRun(b *testing.B) {
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) {
		return &plain{run: func(context.Context) error { return nil }}, nil
	}, container.Config{Instances: 4})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Run(ctx, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.Run(ctx, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}
