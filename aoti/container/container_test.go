package container_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

var errKernel = errors.New("kernel failed")

// double is a model whose runs do what run says.
type double struct {
	run    func(ctx context.Context) error
	busy   atomic.Int32
	closed atomic.Int32
}

func (d *double) Spec() backend.Spec {
	return backend.Spec{Outputs: []backend.Param{{Name: "out0"}}}
}

func (d *double) Run(ctx context.Context, _ []backend.Buffer, _ []bool) ([]backend.Buffer, error) {
	if d.busy.Add(1) != 1 {
		panic("two runs on one instance")
	}
	defer d.busy.Add(-1)
	if d.closed.Load() != 0 {
		panic("run after close")
	}
	return nil, d.run(ctx)
}

func (d *double) Close() error {
	d.closed.Add(1)
	return nil
}

func newPool(t *testing.T, max int, run func(context.Context) error) (*container.Container, *atomic.Int32) {
	t.Helper()
	var made atomic.Int32
	made.Store(1)
	c := container.NewContainer(&double{run: run}, func(context.Context) (container.Model, error) {
		made.Add(1)
		return &double{run: run}, nil
	}, max)
	return c, &made
}

// An instance returns to the pool after an error and after a panic.
func TestInstanceReturns(t *testing.T) {
	calls := 0
	c, _ := newPool(t, 1, func(context.Context) error {
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
		_, err := c.Run(context.Background(), nil, nil)
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

func TestPoolGrowsToItsBoundOnly(t *testing.T) {
	gate := make(chan struct{})
	c, made := newPool(t, 3, func(context.Context) error { <-gate; return nil })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := c.Run(context.Background(), nil, nil); err != nil {
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
	c, _ := newPool(t, 1, func(context.Context) error { close(started); <-gate; return nil })
	first := make(chan error, 1)
	go func() { _, err := c.Run(context.Background(), nil, nil); first <- err }()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Run(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	waiter := make(chan error, 1)
	go func() { _, err := c.Run(context.Background(), nil, nil); waiter <- err }()
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
	if err := errors.Join(<-first, <-closed, c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Run(context.Background(), nil, nil); !errors.Is(err, container.ErrClosed) {
		t.Errorf("a run after Close: %v", err)
	}
}

// A failing factory costs nothing: the next run tries again.
func TestFactoryFails(t *testing.T) {
	gate, started := make(chan struct{}), make(chan struct{}, 4)
	run := func(context.Context) error { started <- struct{}{}; <-gate; return nil }
	fail := true
	c := container.NewContainer(&double{run: run}, func(context.Context) (container.Model, error) {
		if fail {
			return nil, errKernel
		}
		return &double{run: run}, nil
	}, 2)
	done := make(chan error, 2)
	go func() { _, err := c.Run(context.Background(), nil, nil); done <- err }()
	<-started
	if _, err := c.Run(context.Background(), nil, nil); !errors.Is(err, errKernel) {
		t.Errorf("a run that needs a second instance: %v", err)
	}
	fail = false
	go func() { _, err := c.Run(context.Background(), nil, nil); done <- err }()
	<-started
	close(gate)
	if err := errors.Join(<-done, <-done, c.Close()); err != nil {
		t.Error(err)
	}
}
