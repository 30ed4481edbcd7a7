package container_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
)

// queueDouble is a double whose runs may follow each other at once; each ends when
// the test says so.
type queueDouble struct {
	asyncDouble
	runs []*asyncDouble // one for each run
}

func (d *queueDouble) Start(ctx context.Context, in []backend.Buffer, donated []bool) ([]backend.Buffer, backend.Run, error) {
	out, err := d.asyncDouble.Run(ctx, in, donated)
	if err != nil {
		return nil, nil, err
	}
	d.asyncDouble.end(nil) // what the instance says of itself is of no interest
	r := &asyncDouble{done: make(chan struct{})}
	d.runs = append(d.runs, r)
	return out, r, nil
}

// queueOf returns a container of one instance, and that.
func queueOf(t *testing.T) (*asyncMaker, *container.Container, *queueDouble) {
	t.Helper()
	m := newAsync()
	m.t = t
	d := &queueDouble{asyncDouble: asyncDouble{double: double{m: &m.maker}}}
	c, err := container.New(ctx, func(context.Context) (backend.Model, error) { return d, nil }, container.Config{Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m, c, d
}

// TestQueue checks that an instance is given one run after another before they are
// done, that each has the error of its own work, in whatever order they are asked,
// and that constants can be exchanged in between.
func TestQueue(t *testing.T) {
	m, c, d := queueOf(t)
	if !c.Queues() {
		t.Error("the container does not know that its model is a queue")
	}
	p, q := start(t, c), start(t, c)
	if err := m.update(c, 2, container.Inactive); err != nil {
		t.Fatal(err)
	}
	if err := c.Swap(ctx); err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	if n := c.Instances(); n != 1 {
		t.Errorf("%d instances", n)
	}
	d.runs[1].end(errKernel)
	if err := q.Wait(ctx); !errors.Is(err, errKernel) {
		t.Errorf("the second run: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := p.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the first run, which is not done: %v", err)
	}
	d.runs[0].end(nil)
	d.runs[2].end(nil)
	for _, run := range []*container.Pending{p, r} {
		if err := run.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	if before, after := look(t, p.Outputs()), look(t, r.Outputs()); before.w != 1 || after.w != 2 {
		t.Errorf("constants %v before the swap, %v after", before.w, after.w)
	}
	look(t, q.Outputs())
	m.close(t, c)
}

// TestQueueClose checks that Close waits for runs that nobody waits for.
func TestQueueClose(t *testing.T) {
	m, c, d := queueOf(t)
	p := start(t, c)
	closed := make(chan struct{})
	go func() { m.close(t, c); close(closed) }()
	select {
	case <-closed:
		t.Error("Close did not wait")
	case <-time.After(2 * time.Millisecond):
	}
	look(t, p.Outputs())
	d.runs[0].end(nil)
	<-closed
	<-p.Done()
}

// TestQueueFailsToStart checks that a run that does not start leaves the instance
// to others.
func TestQueueFailsToStart(t *testing.T) {
	m, c, d := queueOf(t)
	m.run = func(context.Context, *double) error { return errKernel }
	if _, err := c.Start(ctx, x, nil); !errors.Is(err, errKernel) {
		t.Errorf("a run that does not start: %v", err)
	}
	m.run = nil
	p := start(t, c)
	d.runs[0].end(nil)
	if err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
	look(t, p.Outputs())
	m.close(t, c)
}
