package container

import (
	"context"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Pending is a run that has been started and may not be done.
type Pending struct {
	c    *Container
	inst *instance   // that the run holds; nil if it holds none
	run  backend.Run // nil if the run was done when it returned
	outs []backend.Buffer
	done chan struct{}
	err  error // set before done is closed

	claimed bool // somebody waits for the model; guarded by Container.mu
}

// lastRun is the last run of an instance, which is held by it.
type lastRun struct{ backend.AsyncModel }

// Start is Run without waiting for the work of an asynchronous model
// (backend.AsyncModel). The instance returns to the pool when the work is done,
// that of a backend.QueueModel at once; who needs one meanwhile takes it as soon as
// that is so. Failures of starting the work are returned; those of the work itself
// are Pending.Wait's.
func (c *Container) Start(ctx context.Context, inputs []backend.Buffer, donated []bool) (*Pending, error) {
	if err := ir.CheckContext("container.Start", ctx); err != nil {
		return nil, err
	}
	if err := c.check(inputs, donated); err != nil {
		return nil, err
	}
	inst, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	queued := false
	defer func() {
		if !queued {
			c.put(inst)
		}
	}()
	p := &Pending{c: c, done: make(chan struct{})}
	p.outs, p.run, err = c.launch(ctx, inst, inputs, donated)
	if p.run == nil || err != nil {
		if inst.async != nil { // what it has started before it failed
			queued, err = c.await(ctx, inst, err, (*Container).put)
		}
		close(p.done)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	c.mu.Lock()
	if inst.queue != nil {
		c.putLocked(inst)
	} else {
		p.inst = inst
	}
	c.pending = append(c.pending, p)
	c.reapLocked()
	c.mu.Unlock()
	queued = true
	return p, nil
}

// StartCall is Start as programs call it: see backend.AsyncCallable.
func (c *Container) StartCall(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, func(context.Context) error, error) {
	if err := ir.CheckContext("container.StartCall", ctx); err != nil {
		return nil, nil, err
	}
	p, err := c.Start(ctx, inputs, donated)
	switch {
	case err != nil:
		return nil, nil, err
	case p.run == nil:
		return p.outs, nil, nil
	}
	return p.outs, p.Wait, nil
}

// launch is invoke that returns the run, nil if that is done.
func (c *Container) launch(ctx context.Context, inst *instance, inputs []backend.Buffer, donated []bool) (outs []backend.Buffer, run backend.Run, err error) {
	start := inst.model.Run
	switch {
	case inst.queue != nil:
		start = func(ctx context.Context, inputs []backend.Buffer, donated []bool) (outs []backend.Buffer, err error) {
			outs, run, err = inst.queue.Start(ctx, inputs, donated)
			return outs, err
		}
	case inst.async != nil:
		run = lastRun{inst.async}
	}
	outs, err = c.invoke(ctx, inst, nil, start, inputs, donated)
	return outs, run, err
}

// Queues reports whether runs are started before those ahead of them are done, and
// kept in order by the device (backend.QueueModel).
func (c *Container) Queues() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && c.all[0].queue != nil
}

// Outputs returns the outputs; they are the caller's. Their contents are
// there when Wait has returned nil, or when the device gets to what is queued
// behind the run.
func (p *Pending) Outputs() []backend.Buffer { return p.outs }

// Done is closed when the run is known to be done, which takes somebody who
// asks: Wait, or another run that needs an instance.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for the work and returns its error, or ctx's if that ends first.
// The outputs stay the caller's to release in each case.
func (p *Pending) Wait(ctx context.Context) error {
	if err := ir.CheckContext("container.Wait", ctx); err != nil {
		return err
	}
	c := p.c
	c.mu.Lock()
	mine := !p.claimed && !p.isDone()
	p.claimed = true
	c.mu.Unlock()
	if !mine {
		select {
		case <-p.done:
			return p.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := guard(func() error { return p.run.Wait(ctx) })
	if ctx.Err() != nil {
		finished, late := finished(p.run)
		if !finished {
			go func() { p.settle(p.rest()) }()
			return ctx.Err()
		}
		err = late
	}
	p.settle(err)
	return err
}

func (p *Pending) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// settle ends a run that has been claimed by the caller and is finished.
func (p *Pending) settle(err error) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = slices.DeleteFunc(c.pending, func(q *Pending) bool { return q == p })
	p.endLocked(err)
}

// endLocked ends a run that is no longer among the pending.
func (p *Pending) endLocked(err error) {
	p.err = err
	close(p.done)
	if p.inst != nil {
		p.c.putLocked(p.inst)
	}
	p.c.leaveLocked()
}

// rest waits for the work, however long it takes.
func (p *Pending) rest() error {
	return guard(func() error { return p.run.Wait(context.Background()) })
}

// finished asks whether a run is done, without waiting. A model that panics is
// done, with that error.
func finished(r backend.Run) (done bool, err error) {
	if p := guard(func() error { done, err = r.Finished(); return nil }); p != nil {
		return true, p
	}
	return done, err
}

// await waits for the work of an instance's run, which returned err. If ctx ends
// first the instance lingers: done is called with it when the work is done.
func (c *Container) await(ctx context.Context, inst *instance, err error, done func(*Container, *instance)) (lingers bool, _ error) {
	over, late := finished(inst.async)
	if !over {
		late = guard(func() error { return inst.async.Wait(ctx) })
		if ctx.Err() != nil {
			if over, late = finished(inst.async); !over {
				go func() {
					// Its run has been told that it was given up.
					_ = guard(func() error { return inst.async.Wait(context.Background()) })
					done(c, inst)
				}()
				late = ctx.Err()
			}
		} else {
			over = true
		}
	}
	if err == nil {
		err = late
	}
	return !over, err
}

// reclaimLocked puts back the instances whose runs have finished. It may unlock
// mu meanwhile.
func (c *Container) reclaimLocked() {
	if len(c.pending) == 0 {
		return
	}
	var ended []*Pending
	c.pending = slices.DeleteFunc(c.pending, func(p *Pending) bool {
		if p.claimed {
			return false
		}
		done, err := finished(p.run)
		if done {
			p.claimed, p.err = true, err
			ended = append(ended, p)
		}
		return done
	})
	for _, p := range ended {
		p.endLocked(p.err)
	}
}

// reapLocked sees to it that somebody waits for pending runs when there is a
// reason to: a caller who wants an instance, a set that is to be freed, Close.
func (c *Container) reapLocked() {
	if !c.reaping && c.reapableLocked() != nil {
		c.reaping = true
		go c.reap()
	}
}

// reapableLocked returns the run to wait for next, or nil. As upstream does, it
// is the oldest.
func (c *Container) reapableLocked() *Pending {
	reason := c.closed || c.waiters.head != nil
	for _, p := range c.pending {
		if !p.claimed && (reason || p.inst != nil && p.inst.bound != nil && p.inst.bound.retired.Load()) {
			return p
		}
	}
	return nil
}

func (c *Container) reap() {
	for {
		c.mu.Lock()
		p := c.reapableLocked()
		if p == nil {
			c.reaping = false
			c.mu.Unlock()
			return
		}
		p.claimed = true
		c.mu.Unlock()
		p.settle(p.rest())
	}
}
