// Package container holds pools of instances of compiled models, which run what
// Loris or another compiler made.
package container

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/loris-ml/loris/backend"
)

// Model is one instance of a compiled model: an alias of backend.Model.
type Model = backend.Model

// ErrClosed says that a container was used after Close.
var ErrClosed = errors.New("the container is closed")

// Container is a pool of instances of one model. A run takes an instance that is
// free, makes one if there may be more, or waits, in turn, for one; the instance
// always returns to the pool, also after an error or a panic.
type Container struct {
	spec backend.Spec
	more func(context.Context) (Model, error)
	free chan Model

	mu      sync.Mutex
	all     []Model // every instance there is; guarded by mu
	made    int     // those and the ones being made; guarded by mu
	max     int     // immutable
	closing chan struct{}
	closed  bool // guarded by mu
	runs    sync.WaitGroup
}

// NewContainer returns a container with a first instance that may grow to max
// by calls of more.
func NewContainer(first Model, more func(context.Context) (Model, error), max int) *Container {
	c := &Container{spec: first.Spec(), more: more, free: make(chan Model, max), all: []Model{first}, made: 1, max: max, closing: make(chan struct{})}
	c.free <- first
	return c
}

// Spec returns the model's inputs and outputs.
func (c *Container) Spec() backend.Spec { return c.spec }

// Instances returns how many instances there are now.
func (c *Container) Instances() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// Run computes the outputs on an instance of the pool, as Model.Run. It waits
// for one as long as ctx allows. A panic in the model is returned as an error.
func (c *Container) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) (out []backend.Buffer, err error) {
	m, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			cause, ok := r.(error)
			if !ok {
				cause = fmt.Errorf("%v", r)
			}
			out, err = nil, fmt.Errorf("panic in a model: %w\n%s", cause, debug.Stack())
		}
		c.free <- m
		c.runs.Done()
	}()
	return m.Run(ctx, inputs, donated)
}

func (c *Container) take(ctx context.Context) (Model, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.runs.Add(1)
	select {
	case m := <-c.free:
		c.mu.Unlock()
		return m, nil
	default:
	}
	grow := c.made < c.max
	if grow {
		c.made++ // the place is reserved while the instance is made
	}
	c.mu.Unlock()
	if grow {
		return c.grow(ctx)
	}
	select {
	case m := <-c.free:
		return m, nil
	case <-ctx.Done():
		c.runs.Done()
		return nil, ctx.Err()
	case <-c.closing:
		c.runs.Done()
		return nil, ErrClosed
	}
}

func (c *Container) grow(ctx context.Context) (Model, error) {
	m, err := c.more(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.made--
		c.runs.Done()
		return nil, fmt.Errorf("make a further instance: %w", err)
	}
	c.all = append(c.all, m)
	return m, nil
}

// Close refuses further runs, waits for those in flight and closes every
// instance. Calling it again does nothing.
func (c *Container) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.closing)
	c.mu.Unlock()
	c.runs.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, m := range c.all {
		errs = append(errs, m.Close())
	}
	c.all = nil
	return errors.Join(errs...)
}
