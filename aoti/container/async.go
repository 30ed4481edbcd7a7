package container

import (
	"context"
	"slices"

	"github.com/loris-ml/loris/backend"
)

// Pending is a run that has been started and may not be done.
type Pending struct {
	c    *Container
	inst *instance // nil if the run was done when it returned
	outs []backend.Buffer
	done chan struct{}
	err  error // set before done is closed

	claimed bool // somebody waits for the model; guarded by Container.mu
}

// Start is Run without waiting for the work of an asynchronous model
// (backend.AsyncModel). The instance returns to the pool when the work is done;
// who needs one meanwhile takes it as soon as that is so. Failures of starting
// the work are returned; those of the work itself are Pending.Wait's.
func (c *Container) Start(ctx context.Context, inputs []backend.Buffer, donated []bool) (*Pending, error) {
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
	p := &Pending{c: c, inst: inst, done: make(chan struct{})}
	p.outs, err = c.invoke(ctx, inst, inputs, donated)
	if inst.async == nil || err != nil {
		if inst.async != nil { // what it has started before it failed
			queued, err = c.await(ctx, inst, err, (*Container).put)
		}
		close(p.done)
		p.inst = nil
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	c.mu.Lock()
	c.pending = append(c.pending, p)
	c.reapLocked()
	c.mu.Unlock()
	queued = true
	return p, nil
}

// StartCall is Start as programs call it: see backend.AsyncCallable.
func (c *Container) StartCall(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, func(context.Context) error, error) {
	p, err := c.Start(ctx, inputs, donated)
	switch {
	case err != nil:
		return nil, nil, err
	case p.inst == nil:
		return p.outs, nil, nil
	}
	return p.outs, p.Wait, nil
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
	err := guard(func() error { return p.inst.async.Wait(ctx) })
	if ctx.Err() != nil {
		finished, late := p.inst.finished()
		if !finished {
			go func() { p.settle(p.inst.wait()) }()
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
	p.c.putLocked(p.inst)
	p.c.leaveLocked()
}

// finished asks whether the last run is done, without waiting. A model that
// panics is done, with that error.
func (i *instance) finished() (done bool, err error) {
	if p := guard(func() error { done, err = i.async.Finished(); return nil }); p != nil {
		return true, p
	}
	return done, err
}

func (i *instance) wait() error {
	return guard(func() error { return i.async.Wait(context.Background()) })
}

// await waits for the work of an instance's run, which returned err. If ctx ends
// first the instance lingers: done is called with it when the work is done.
func (c *Container) await(ctx context.Context, inst *instance, err error, done func(*Container, *instance)) (lingers bool, _ error) {
	finished, late := inst.finished()
	if !finished {
		late = guard(func() error { return inst.async.Wait(ctx) })
		if ctx.Err() != nil {
			if finished, late = inst.finished(); !finished {
				go func() {
					_ = inst.wait() // its run has been told that it was given up
					done(c, inst)
				}()
				late = ctx.Err()
			}
		} else {
			finished = true
		}
	}
	if err == nil {
		err = late
	}
	return !finished, err
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
		done, err := p.inst.finished()
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
		if !p.claimed && (reason || p.inst.bound != nil && p.inst.bound.retired.Load()) {
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
		p.settle(p.inst.wait())
	}
}
