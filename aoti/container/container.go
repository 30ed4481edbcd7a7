// Package container holds pools of instances of compiled models, which run what
// Loris or another compiler made, and the sets of their constants.
//
// A Container has three kinds of callers, and none of them has to know of the
// others. Runs take an instance that is free, or wait for one in turn. Updates,
// folds and extractions work on complete, immutable sets of constants. Swap and
// its kin choose which set is active. A run computes with the set that is active
// when it gets its instance, from the first instruction to the last, whatever is
// updated, folded, swapped or freed meanwhile. RunVersion computes with a saved
// set instead.
//
// # Memory
//
// There is an active set and at most one inactive one. A set is freed when it is
// in neither place, is not saved as a version, and no run in flight uses it:
// instances that idle are bound to the active set instead. An update builds the
// new set in the inactive place, so that there are never more than two sets and
// what the runs in flight and the saved versions hold; see Update. A run that
// begins holds two for a moment: its own, and the one that its instance was bound
// to before, until it is bound anew.
//
// # Buffers that a model writes
//
// A buffer that a model mutates, such as a running mean or a cache of keys, is
// state of each instance and begins from the value in the set. A model that
// needs one shared state runs with one instance.
package container

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Config sets the size of a container.
type Config struct {
	// Instances is how many are made at once, at least one.
	Instances int
	// Max is how many there may be: further ones are made when all are busy. Zero
	// means Instances.
	Max int
}

// Container is a pool of instances of one model and the sets of its constants.
// All of its methods are safe for concurrent use.
type Container struct {
	spec backend.Spec
	open func(context.Context) (backend.Model, error)
	max  int
	// solo is the instance if there can be but one. It has a lock of its own,
	// which is what RunSingleThreaded takes.
	solo *instance
	sets

	mu      sync.Mutex // guards the rest, and bound of instances in free and pending
	all     []*instance
	made    int // those in all and those being made
	free    []*instance
	waiters queue // empty whenever free is not
	pending []*Pending
	reaping bool // a goroutine waits for the oldest of pending
	users   int  // calls in flight
	closed  bool
	drained chan struct{} // closed when it is closed and there are no users
	shut    atomic.Bool   // closed, for those who do not take mu
	onClose []func()      // called by Close
}

// New returns a container of instances that open returns. It makes
// cfg.Instances of them; further ones are made during runs, up to cfg.Max. An
// error of open, or of reading the constants that the model came with, is
// returned, and instances made before are closed.
func New(ctx context.Context, open func(context.Context) (backend.Model, error), cfg Config) (*Container, error) {
	if err := ir.CheckContext("container.New", ctx); err != nil {
		return nil, err
	}
	if cfg.Max == 0 {
		cfg.Max = cfg.Instances
	}
	if cfg.Instances < 1 || cfg.Max < cfg.Instances {
		return nil, fmt.Errorf("%w: %d at first, %d at most", ErrInstances, cfg.Instances, cfg.Max)
	}
	c := &Container{open: open, max: cfg.Max, drained: make(chan struct{})}
	err := c.fill(ctx, cfg.Instances)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// fill makes the first instances and the first set.
func (c *Container) fill(ctx context.Context, n int) error {
	for range n {
		inst, err := c.newInstance(ctx)
		if err != nil {
			return err
		}
		c.made++
		c.all, c.free = append(c.all, inst), append(c.free, inst)
	}
	first := c.all[0]
	c.spec = first.model.Spec()
	if c.max == 1 {
		c.solo = first
	}
	return c.sets.init(ctx, first.constants)
}

// Spec returns the model's inputs and outputs.
func (c *Container) Spec() backend.Spec { return c.spec }

// NumInputs returns how many inputs a run takes.
func (c *Container) NumInputs() int { return len(c.spec.Inputs) }

// NumOutputs returns how many outputs a run returns.
func (c *Container) NumOutputs() int { return len(c.spec.Outputs) }

// InputNames returns the names of the inputs, in order.
func (c *Container) InputNames() []string { return names(c.spec.Inputs) }

// OutputNames returns the names of the outputs, in order.
func (c *Container) OutputNames() []string { return names(c.spec.Outputs) }

func names(ps []backend.Param) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Name
	}
	return out
}

// CallSpec returns how the flat inputs and outputs were nested in the program
// that was compiled, as the model says it (backend.CallSpecModel); empty strings
// if it does not.
func (c *Container) CallSpec() (in, out string) {
	if err := c.enter(); err != nil {
		return "", ""
	}
	defer c.leave()
	c.mu.Lock()
	first := c.all[0].model
	c.mu.Unlock()
	if m, ok := first.(backend.CallSpecModel); ok {
		return m.CallSpec()
	}
	return "", ""
}

// Place returns the device that the instances run on, if they say it
// (backend.PlacedModel).
func (c *Container) Place() ir.Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 { // it is closed
		return ir.Device{}
	}
	if m, ok := c.all[0].model.(backend.PlacedModel); ok {
		return m.Place()
	}
	return ir.Device{}
}

// Instances returns how many instances there are now.
func (c *Container) Instances() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// Waiting returns how many runs wait for an instance now.
func (c *Container) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiters.len
}

// enter counts a call that Close waits for.
func (c *Container) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.users++
	return nil
}

func (c *Container) leave() {
	c.mu.Lock()
	c.leaveLocked()
	c.mu.Unlock()
}

func (c *Container) leaveLocked() {
	c.users--
	if c.closed && c.users == 0 {
		close(c.drained)
	}
}

// Close refuses further calls, waits for those in flight, closes every instance
// and frees the sets. Runs that wait for an instance fail with ErrClosed. It
// returns the errors of closing, joined. Calling it again does nothing.
func (c *Container) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.shut.Store(true)
	for w := c.waiters.pop(); w != nil; w = c.waiters.pop() {
		w.got <- nil
	}
	c.reapLocked()
	if c.users == 0 {
		close(c.drained)
	}
	c.mu.Unlock()
	<-c.drained
	c.mu.Lock()
	all := c.all
	c.all, c.free = nil, nil
	c.mu.Unlock()
	var errs []error
	for _, inst := range all {
		inst.lock(c)
		errs = append(errs, guard(inst.model.Close))
		inst.forget()
		inst.unlock(c)
	}
	c.sets.free()
	c.mu.Lock()
	told := c.onClose
	c.onClose = nil
	c.mu.Unlock()
	for _, fn := range told {
		fn()
	}
	return errors.Join(errs...)
}

// OnClose has fn called when the container is closed, after its last run; at once
// if that was before.
func (c *Container) OnClose(fn func()) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.onClose = append(c.onClose, fn)
	}
	c.mu.Unlock()
	if closed {
		fn()
	}
}

// guard returns a panic of f as a *PanicError.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	return f()
}

// releaseAll drops one reference of each buffer that is there.
func releaseAll(bufs []backend.Buffer) {
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
}

// Constants describes the model's constants, in the model's order; none if they
// cannot be replaced.
func (c *Container) Constants() []backend.Constant { return slices.Clone(c.info) }
