package executor

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/cache"
	"github.com/loris-ml/loris/devicelock"
	"github.com/loris-ml/loris/ir"
)

// Async is work in flight: one collection's computation.
type Async struct {
	// Device is where it runs.
	Device ir.Device
	// Indices are the positions, in the tensors synced, of those it computes.
	Indices []int
	// Hash is the graph hash.
	Hash ir.Hash

	session *Session
	params  []*Data
	donated []bool
	began   bool      // the computation may have overwritten what is donated
	ahead   []*flight // of parameters, that had not landed when it began
	outputs []*Data
	ready   chan struct{} // closed when the outputs are final
	done    chan struct{}
	err     error
}

// Wait blocks until the work is done and returns its error, or ctx's if that
// ends first.
func (a *Async) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the work is done.
func (a *Async) Done() <-chan struct{} { return a.done }

// PanicError is a panic in a computation, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names what was panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in a computation: %v", e.Value) }

// Unwrap returns the panicked value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// schedule starts the closure that runs the computation with the device's lock
// held; it owns the job's lock and computation from here on. A device that keeps
// the order of its work passes the lock on as soon as the computation is in its
// queue.
func (s *Session) schedule(a *Async, j *syncJob) {
	c := s.core
	held, ref, vars := j.held, j.ref, j.vars
	j.held, j.ref = nil, nil
	go func() {
		defer c.running.Done()
		start := time.Now()
		outs, p, err := a.start(c, ref.Value())
		if p != nil {
			a.fly(c, held, outs, p, vars, start, ref)
			return
		}
		a.over(c, vars, start, err)
		for i, d := range a.outputs {
			if d.err = err; err == nil {
				d.buf = outs[i]
			}
		}
		close(a.ready)
		retire(vars, err)
		ref.Release()
		a.end(err)
		if c.cfg.NoOp {
			err = nil
		}
		held.Unlock(err)
		close(a.done)
	}()
}

// fly gives the lock and the outputs of a computation in its device's queue to
// others and waits for it to land.
func (a *Async) fly(c *core, held *devicelock.Held, outs []backend.Buffer, p *container.Pending, vars []restore, start time.Time, ref *cache.Ref[*Computation]) {
	q := c.queue(a.Device)
	f := c.takeOff(q)
	for i, d := range a.outputs {
		d.buf, d.flight = outs[i], f
	}
	close(a.ready)
	held.Unlock(nil)
	err := f.await(p)
	inherited := a.inputErr()
	switch {
	case inherited != nil:
		err = inherited // whatever became of the garbage
	case err != nil:
		err = fmt.Errorf("loris: step on %v: %w", a.Device, err)
		c.lockers.Locker(a.Device).Fail(err)
	}
	a.over(c, vars, start, err)
	ref.Release()
	a.end(err)
	c.land(q, f, err)
	retire(vars, err)
	close(a.done)
}

// over restores variables and tells that the work is over, before anybody can see
// that: whoever has seen a result finds its run in the report.
func (a *Async) over(c *core, vars []restore, start time.Time, err error) {
	if err != nil && len(vars) > 0 {
		c.restore(a, vars)
	}
	c.observe(Observation{Stage: StageRun, Start: start, Device: a.Device, Hash: a.Hash, Err: err})
	c.stats.runs.Add(1)
}

// end keeps the error and lets go of what the work needed.
func (a *Async) end(err error) {
	a.err = err
	a.params, a.ahead, a.session = nil, nil, nil
}

// retire releases what a computation that worked has replaced.
func retire(vars []restore, err error) {
	if err != nil {
		return
	}
	for _, r := range vars {
		if r.dies {
			r.old.retire()
		}
	}
}

// start waits for the parameters, which come from other devices if they are not
// there yet, and executes. What goes on in the device's queue, for which it has
// taken a place, it returns as Pending.
func (a *Async) start(c *core, m *Computation) (outs []backend.Buffer, p *container.Pending, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("loris: step on %v: %w", a.Device, &PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	if c.cfg.NoOp {
		return nil, nil, ErrNoExecution
	}
	ctx := context.Background()
	queues := m.container != nil && m.container.Queues()
	wait := (*Data).Wait
	if queues {
		wait = (*Data).queued
	}
	in := make([]backend.Buffer, len(a.params))
	for i, x := range a.params {
		if in[i], err = wait(x, ctx); err != nil {
			return nil, nil, fmt.Errorf("loris: an input of the step on %v failed: %w", a.Device, err)
		}
	}
	switch {
	case queues:
		return a.enqueue(ctx, c, m, in)
	case m.plug != nil:
		a.began = true
		outs, err = m.plug.run(ctx, in, a.outputs, a.Device)
	default:
		a.began = true
		outs, err = m.container.Run(ctx, in, a.donated)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("loris: step on %v: %w", a.Device, err)
	}
	return outs, nil, nil
}

// enqueue takes a place in the device's queue, waiting for one, and starts the
// computation.
func (a *Async) enqueue(ctx context.Context, c *core, m *Computation, in []backend.Buffer) ([]backend.Buffer, *container.Pending, error) {
	q := c.queue(a.Device)
	_ = q.places.Acquire(context.Background(), 1) // cannot fail: every flight ends by itself
	a.follows()
	a.began = true
	p, err := m.container.Start(ctx, in, a.donated)
	if err != nil {
		q.places.Release(1)
		return nil, nil, fmt.Errorf("loris: step on %v: %w", a.Device, err)
	}
	return p.Outputs(), p, nil
}

// restore puts back the values of variables whose new ones failed, where the
// old data is still whole: it was not donated, or the computation has not begun.
func (c *core) restore(a *Async, vars []restore) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, was := range a.donated {
		if was && !a.began {
			a.params[i].donated = false
		}
	}
	for _, r := range vars {
		r.new.failed, r.new.prior = true, r.old
		old := r.old
		for old != nil && old.failed { // it was in flight when this began
			old = old.prior
		}
		if r.v.data == r.new && old != nil && !old.donated {
			r.v.set(old, r.v.pend)
		}
	}
}
