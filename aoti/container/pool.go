package container

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
)

// instance is one instance of the model. Its fields belong to whoever has taken
// it from the pool; in the pool they are guarded by Container.mu, and those of
// Container.solo by its own mu besides.
type instance struct {
	model     backend.Model
	constants backend.ConstantModel // nil if it has none
	async     backend.AsyncModel    // nil if runs are done when they return
	queue     backend.QueueModel    // nil if runs do not follow each other at once
	into      backend.IntoModel     // nil if it cannot

	// bound is the set whose values the model has, with one reference; nil at
	// first. With complete false the model lacks the folded ones, or the last
	// attempt to bind failed.
	bound    *set
	complete bool

	mu      sync.Mutex  // of Container.solo: held by whoever uses it
	running atomic.Bool // of Container.solo: its user runs it
}

// newInstance opens an instance.
func (c *Container) newInstance(ctx context.Context) (*instance, error) {
	var m backend.Model
	err := guard(func() (err error) {
		m, err = c.open(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	inst := &instance{model: m}
	inst.constants, _ = m.(backend.ConstantModel)
	inst.async, _ = m.(backend.AsyncModel)
	inst.queue, _ = m.(backend.QueueModel)
	inst.into, _ = m.(backend.IntoModel)
	return inst, nil
}

func (i *instance) lock(c *Container) {
	if i == c.solo {
		i.mu.Lock()
	}
}

func (i *instance) unlock(c *Container) {
	if i == c.solo {
		i.running.Store(false)
		i.mu.Unlock()
	}
}

// take returns an instance for the caller's exclusive use: a free one, one whose
// run has finished meanwhile, a new one, or, waiting in turn, the next that is
// put back. The caller counts as a user until he puts it.
func (c *Container) take(ctx context.Context) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.users++
	if len(c.free) == 0 {
		c.reclaimLocked()
	}
	if n := len(c.free) - 1; n >= 0 {
		inst := c.free[n]
		c.free = c.free[:n]
		c.mu.Unlock()
		inst.lock(c)
		return inst, nil
	}
	if c.made < c.max {
		c.made++ // the place is reserved while the instance is made
		c.mu.Unlock()
		return c.grow(ctx)
	}
	if c.closed { // since reclaiming, which may have let go of mu
		c.leaveLocked()
		c.mu.Unlock()
		return nil, ErrClosed
	}
	w := c.waiters.push()
	c.reapLocked()
	c.mu.Unlock()
	return c.wait(ctx, w)
}

func (c *Container) wait(ctx context.Context, w *waiter) (*instance, error) {
	select {
	case inst := <-w.got:
		waiterPool.Put(w)
		if inst == nil {
			c.leave()
			return nil, ErrClosed
		}
		inst.lock(c)
		return inst, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.waiters.remove(w) {
		c.leaveLocked()
		c.mu.Unlock()
		waiterPool.Put(w)
		return nil, ctx.Err()
	}
	c.mu.Unlock()
	// An instance was handed over at the same moment: the next gets it.
	inst := <-w.got
	waiterPool.Put(w)
	if inst == nil {
		c.leave()
		return nil, ErrClosed
	}
	inst.lock(c)
	c.put(inst)
	return nil, ctx.Err()
}

func (c *Container) grow(ctx context.Context) (*instance, error) {
	inst, err := c.newInstance(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.made--
		c.leaveLocked()
		return nil, fmt.Errorf("make a further instance: %w", err)
	}
	c.all = append(c.all, inst)
	return inst, nil
}

// put ends the use of an instance.
func (c *Container) put(inst *instance) {
	c.mu.Lock()
	c.putLocked(inst)
	c.leaveLocked()
	c.mu.Unlock()
}

// putLocked hands an instance to the first who waits, or to the pool. One that
// goes to the pool first lets go of a set that nobody else keeps, for which mu
// is unlocked meanwhile.
func (c *Container) putLocked(inst *instance) {
	for {
		if w := c.waiters.pop(); w != nil {
			inst.unlock(c)
			w.got <- inst
			return
		}
		if c.closed || inst.bound == nil || !inst.bound.retired.Load() {
			break
		}
		c.mu.Unlock()
		err := c.rebind(inst)
		c.mu.Lock()
		if err != nil {
			break // the next run tries again, and is told
		}
	}
	c.free = append(c.free, inst)
	inst.unlock(c)
}

// queue is a list of those who wait for an instance, first come, first served.
type queue struct {
	head, tail *waiter
	len        int
}

type waiter struct {
	got        chan *instance // of one element; nil says that the container is closed
	next, prev *waiter
	queued     bool
}

var waiterPool = sync.Pool{New: func() any { return &waiter{got: make(chan *instance, 1)} }}

func (q *queue) push() *waiter {
	w := waiterPool.Get().(*waiter)
	w.prev, w.next, w.queued = q.tail, nil, true
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
	return w
}

// pop removes and returns the first, or nil.
func (q *queue) pop() *waiter {
	w := q.head
	if w != nil {
		q.remove(w)
	}
	return w
}

// remove reports whether w was still in the queue.
func (q *queue) remove(w *waiter) bool {
	if !w.queued {
		return false
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.queued = nil, nil, false
	q.len--
	return true
}
