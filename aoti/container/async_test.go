package container_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// closeAll closes a container of asynchronous doubles and counts what is left.
func (m *asyncMaker) close(t *testing.T, c *container.Container) {
	t.Helper()
	if err := c.Close(); err != nil || m.live.Load() != 0 {
		t.Errorf("close: %v, %d bytes are left", err, m.live.Load())
	}
}

// capture notes which instance runs.
func (m *asyncMaker) capture() chan *double {
	ran := make(chan *double, 16)
	m.run = func(_ context.Context, d *double) error { ran <- d; return nil }
	return ran
}

func start(t *testing.T, c *container.Container) *container.Pending {
	t.Helper()
	p, err := c.Start(ctx, x, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAsyncFailureBelongsToItsRun(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 1})
	p := start(t, c)
	m.instances[0].end(errKernel)
	q := start(t, c) // takes over the instance that has finished
	m.instances[0].end(nil)
	if err := q.Wait(ctx); err != nil {
		t.Errorf("the second run has the error of the first: %v", err)
	}
	for range 2 {
		if err := p.Wait(ctx); !errors.Is(err, errKernel) {
			t.Errorf("the first run: %v", err)
		}
	}
	look(t, p.Outputs())
	look(t, q.Outputs())
	m.close(t, c)
}

// Instances that have finished are taken before one waits, or makes another.
func TestAsyncReclaimsBeforeWaiting(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 2, Max: 3})
	p, q := start(t, c), start(t, c)
	m.instances[0].end(nil)
	m.instances[1].end(nil)
	r := start(t, c)
	if n := c.Instances(); n != 2 {
		t.Errorf("%d instances, the two there were had finished", n)
	}
	for _, d := range m.instances {
		if ok, _ := d.Finished(); !ok {
			d.end(nil)
		}
	}
	for _, w := range []*container.Pending{p, q, r} {
		if err := w.Wait(ctx); err != nil {
			t.Error(err)
		}
		look(t, w.Outputs())
	}
	m.close(t, c)
}

// A caller waits for work that nobody else waits for.
func TestAsyncWaitsForWork(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 1})
	p := start(t, c)
	got := make(chan *container.Pending)
	go func() { got <- start(t, c) }()
	for c.Waiting() == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	m.instances[0].end(nil)
	q := <-got
	<-p.Done()
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := q.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that is given up: %v", err)
	}
	if err := q.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another: %v", err)
	}
	m.instances[0].end(errKernel)
	if err := q.Wait(ctx); !errors.Is(err, errKernel) {
		t.Errorf("the wait after it: %v", err)
	}
	look(t, p.Outputs())
	look(t, q.Outputs())
	m.close(t, c)
}

// Run waits for the work; when its context ends the instance follows the work.
func TestAsyncRun(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 1})
	ran := m.capture()
	end := func(err error) {
		<-ran
		for m.instances[0].idle() {
			time.Sleep(100 * time.Microsecond)
		}
		m.instances[0].end(err)
	}
	go end(nil)
	if s := mustRun(t, c); s.w != 1 {
		t.Errorf("%+v", s)
	}
	go end(errKernel)
	if _, err := run(t, c); !errors.Is(err, errKernel) {
		t.Errorf("a run whose work fails: %v", err)
	}
	go end(errKernel)
	if err := c.RunInto(ctx, x, nil, make([]backend.Buffer, outs)); !errors.Is(err, errKernel) {
		t.Errorf("a run whose work fails: %v", err)
	}
	go end(errKernel)
	if _, err := c.RunSingleThreaded(ctx, x, nil); !errors.Is(err, errKernel) {
		t.Errorf("a run whose work fails: %v", err)
	}
	for _, f := range []func(context.Context) error{
		func(ctx context.Context) error { return second(c.Run(ctx, x, nil)) },
		func(ctx context.Context) error { return second(c.RunSingleThreaded(ctx, x, nil)) },
	} {
		given, giveUp := context.WithCancel(ctx)
		m.run = func(_ context.Context, d *double) error { giveUp(); ran <- d; return nil }
		err := f(given)
		for errors.Is(err, container.ErrConcurrent) { // the work of the run before is being seen to
			err = f(given)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a run that is given up: %v", err)
		}
		end(nil)
	}
	go end(nil)
	mustRun(t, c)
	m.close(t, c)
}

// Sets that are freed do not wait for somebody to take the instance.
func TestAsyncLetsGoOfSets(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 2})
	p, q := start(t, c), start(t, c)
	look(t, p.Outputs())
	look(t, q.Outputs())
	m.instances[0].end(nil) // nobody asks for it
	if err := m.update(c, 2, container.Active); err != nil {
		t.Fatal(err)
	}
	if n := m.live.Load(); n != 2*oneSet-wideBytes-shared {
		t.Errorf("%d bytes while a run is in flight, want %d", n, 2*oneSet-wideBytes-shared)
	}
	m.instances[1].end(nil)
	<-q.Done()
	for deadline := time.Now().Add(time.Minute); m.live.Load() != oneSet-wideBytes; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held, want %d", m.live.Load(), oneSet-wideBytes)
		}
	}
	m.close(t, c)
}

// Close waits for work in flight.
func TestAsyncClose(t *testing.T) {
	m := newAsync()
	c := m.pool(t, container.Config{Instances: 1})
	p := start(t, c)
	look(t, p.Outputs())
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	if _, err := c.Start(ctx, x, nil); !errors.Is(err, container.ErrClosed) {
		t.Errorf("a start beside Close and a run in flight: %v", err)
	}
	select {
	case <-closed:
		t.Error("Close did not wait")
	default:
	}
	m.instances[0].end(errKernel)
	if err := <-closed; err != nil {
		t.Errorf("Close has the error of a run: %v", err)
	}
	if err := p.Wait(ctx); !errors.Is(err, errKernel) {
		t.Errorf("the run: %v", err)
	}
}
