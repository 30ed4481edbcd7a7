package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	errAbandoned = errors.New("cache: nobody waits for this build any more")
	errGoexit    = errors.New("cache: the build called runtime.Goexit")
)

// PanicError is the error of a build that panicked.
type PanicError struct {
	// Key is what was being built.
	Key Key
	// Value is what the build panicked with.
	Value any
	// Stack is the stack of the panic, as [debug.Stack] formats it.
	Stack []byte
}

// Error returns the value panicked with and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("cache: build of %v panicked: %v\n\n%s", e.Key, e.Value, e.Stack)
}

// Unwrap returns the value panicked with if it is an error, or nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// flight is one build and the callers that wait for it. It differs from x/sync/singleflight: a
// caller can leave, the last one to leave cancels the build, and each caller gets a reference of
// its own, counted before any of them can release.
type flight[T any] struct {
	cancel context.CancelCauseFunc

	// Guarded by Computations.mu until done is closed, constant after.
	waiters   int
	abandoned bool // cancelled because all waiters had left
	ref       *Ref[T]
	err       error

	done chan struct{} // closed under Computations.mu
}

// join returns a reference if there is a computation by now, or else the flight that builds it,
// which this call has joined or begun.
func (c *Computations[T]) join(ctx context.Context, key Key, build BuildFunc[T]) (*Ref[T], *flight[T], Source, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, SourceNone, ErrClosed
	}
	if r := c.getStrong(key); r != nil {
		return r, nil, SourceStrong, nil
	}
	if f := c.flights[key]; f != nil {
		f.waiters++
		c.shared.Add(1)
		return nil, f, SourceShared, nil
	}
	// A flight may have finished since the caller looked in the store.
	if r := c.store.get(key); r != nil {
		c.hits.Add(1)
		return r, nil, SourceCache, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, SourceNone, err
	}
	f := &flight[T]{waiters: 1, done: make(chan struct{})}
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.flights[key] = f
	c.builds.Add(1)
	c.builders.Add(1)
	go c.run(ctx, key, f, build)
	return nil, f, SourceBuilt, nil
}

// leave removes a waiter from the flight and cancels the build if no other is left. It returns
// false if the flight has finished already; then the waiter owns a reference, unless the build
// failed.
func (c *Computations[T]) leave(f *flight[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-f.done:
		return false
	default:
	}
	if f.waiters--; f.waiters == 0 {
		f.abandoned = true
		f.cancel(errAbandoned)
	}
	return true
}

// run builds, offers the result to the tiers, and finishes the flight.
func (c *Computations[T]) run(ctx context.Context, key Key, f *flight[T], build BuildFunc[T]) {
	defer c.builders.Done()
	var r *Ref[T]
	err := errGoexit
	defer func() {
		if r != nil {
			c.keep(r)
		}
		c.finish(key, f, r, err)
	}()
	r, err = c.build(ctx, key, build)
}

// build runs the user's function and turns a panic into an error.
func (c *Computations[T]) build(ctx context.Context, key Key, build BuildFunc[T]) (r *Ref[T], err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, &PanicError{Key: key, Value: p, Stack: debug.Stack()}
		}
	}()
	value, cost, err := build(ctx)
	if err != nil {
		return nil, fmt.Errorf("cache: build %v: %w", key, err)
	}
	return c.owner.newRef(key, value, cost), nil
}

// keep puts r into the main tier or, if that refuses it, into the strong tier, and releases what
// leaves in its place.
func (c *Computations[T]) keep(r *Ref[T]) {
	kept := c.store.offer(r)
	c.store.drain()
	if kept {
		return
	}
	c.refusals.Add(1)
	r.Retain()
	c.mu.Lock()
	out, displaced := c.strong.put(r.key, r)
	c.mu.Unlock()
	if !displaced {
		return
	}
	if out != r {
		c.strongEvictions.Add(1)
		if c.store.onEvict != nil {
			c.store.onEvict(out.key, out.value)
		}
	}
	out.Release()
}

// finish ends the flight and gives every waiter its reference or the error. The
// builder's own reference goes to one of them, so that none is left over when
// they have released theirs.
func (c *Computations[T]) finish(key Key, f *flight[T], r *Ref[T], err error) {
	f.cancel(nil)
	c.mu.Lock()
	if r == nil {
		c.failures.Add(1)
		if c.closed {
			err = fmt.Errorf("%w: %w", ErrClosed, err)
		}
	} else {
		for range f.waiters - 1 {
			r.Retain()
		}
	}
	unused := r != nil && f.waiters == 0
	f.ref, f.err = r, err
	delete(c.flights, key)
	close(f.done)
	c.mu.Unlock()
	if unused {
		r.Release()
	}
}
