package container

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Call is Run: by it a container, and what embeds one, is a backend.Callable,
// which lazy programs call.
func (c *Container) Call(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	return c.Run(ctx, inputs, donated)
}

// Run computes the outputs on an instance of the pool, as backend.Model.Run. It
// waits for an instance as long as ctx allows, in turn, and for the work where
// that is asynchronous. Constants that folding computes are computed by the
// first run of their set. The instance returns to the pool whatever happens; a
// panic in the model is returned as a *PanicError. A wrong number of inputs, or
// of outputs from the model, is an error wrapping ir.ErrArg.
func (c *Container) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := ir.CheckContext("container.Run", ctx); err != nil {
		return nil, err
	}
	if err := c.check(inputs, donated); err != nil {
		return nil, err
	}
	inst, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	return c.runTaken(ctx, inst, nil, inputs, donated)
}

// runTaken is Run on an instance that has been taken, with the set s, or with the
// active one if s is nil.
func (c *Container) runTaken(ctx context.Context, inst *instance, s *set, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	lingers := false
	defer func() {
		if !lingers {
			c.put(inst)
		}
	}()
	outs, err := c.invoke(ctx, inst, s, inst.model.Run, inputs, donated)
	if inst.async != nil {
		lingers, err = c.await(ctx, inst, err, (*Container).put)
		if err != nil {
			releaseAll(outs)
			outs = nil
		}
	}
	return outs, err
}

// RunInto is Run, but sets outputs, which has one element for each of the
// model's. A buffer that is there is written to and stays the caller's, which
// needs a model that can (backend.IntoModel) or is an error wrapping
// backend.ErrUnsupported; nil is replaced by a new reference. On an error the
// contents of the buffers are unspecified and what was nil is nil.
func (c *Container) RunInto(ctx context.Context, inputs []backend.Buffer, donated []bool, outputs []backend.Buffer) error {
	if err := ir.CheckContext("container.RunInto", ctx); err != nil {
		return err
	}
	if err := c.checkInto(inputs, donated, outputs); err != nil {
		return err
	}
	inst, err := c.take(ctx)
	if err != nil {
		return err
	}
	return c.runTakenInto(ctx, inst, nil, inputs, donated, outputs)
}

// runTakenInto is runTaken for RunInto.
func (c *Container) runTakenInto(ctx context.Context, inst *instance, s *set, inputs []backend.Buffer, donated []bool, outputs []backend.Buffer) (err error) {
	lingers := false
	defer func() {
		if !lingers {
			c.put(inst)
		}
	}()
	if inst.async == nil {
		return c.invokeInto(ctx, inst, s, inputs, donated, outputs)
	}
	before := slices.Clone(outputs)
	err = c.invokeInto(ctx, inst, s, inputs, donated, outputs)
	if lingers, err = c.await(ctx, inst, err, (*Container).put); err != nil {
		for i, b := range before {
			if b == nil && outputs[i] != nil {
				outputs[i].Release()
			}
		}
		copy(outputs, before)
	}
	return err
}

// RunSingleThreaded is Run without the pool, for callers that run one at a time
// anyway. It is for containers of one instance at most: with more, or while
// another run is in flight, it returns an error wrapping ErrConcurrent. Updates,
// folds and swaps may happen at the same time.
func (c *Container) RunSingleThreaded(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := ir.CheckContext("container.RunSingleThreaded", ctx); err != nil {
		return nil, err
	}
	if err := c.check(inputs, donated); err != nil {
		return nil, err
	}
	inst := c.solo
	if inst == nil {
		return nil, fmt.Errorf("%w: the container may have %d instances", ErrConcurrent, c.max)
	}
	if !inst.mu.TryLock() {
		if inst.running.Load() {
			return nil, fmt.Errorf("%w: another run is in flight", ErrConcurrent)
		}
		inst.mu.Lock() // somebody folds or binds constants
	}
	lingers := false
	defer func() {
		if !lingers {
			c.soloDone(inst)
		}
	}()
	if c.shut.Load() {
		return nil, ErrClosed
	}
	outs, err := c.invoke(ctx, inst, nil, inst.model.Run, inputs, donated)
	if inst.async != nil {
		lingers, err = c.await(ctx, inst, err, (*Container).soloDone)
		if err != nil {
			releaseAll(outs)
			outs = nil
		}
	}
	return outs, err
}

// soloDone ends a use of the only instance by one who did not take it from the
// pool. A set that was retired meanwhile is let go of, be it here or by the one
// who retired it: he tries for the lock after he has marked the set.
func (c *Container) soloDone(inst *instance) {
	for {
		s := inst.bound
		if s != nil && s.retired.Load() && !c.shut.Load() {
			if c.rebind(inst) == nil {
				continue
			}
			inst.unlock(c) // the next run tries again, and is told
			return
		}
		inst.unlock(c)
		if s == nil || !s.retired.Load() || c.shut.Load() || !inst.mu.TryLock() {
			return
		}
	}
}

// check finds calls that no model can serve.
func (c *Container) check(inputs []backend.Buffer, donated []bool) error {
	if len(inputs) != len(c.spec.Inputs) {
		return fmt.Errorf("%w: %d inputs, the model takes %d", ir.ErrArg, len(inputs), len(c.spec.Inputs))
	}
	if donated != nil && len(donated) != len(inputs) {
		return fmt.Errorf("%w: %d donation marks for %d inputs", ir.ErrArg, len(donated), len(inputs))
	}
	for i, in := range inputs {
		if in == nil {
			return fmt.Errorf("%w: input %d (%s) is nil", ir.ErrArg, i, c.spec.Inputs[i].Name)
		}
	}
	return nil
}

// checkInto is check for RunInto.
func (c *Container) checkInto(inputs []backend.Buffer, donated []bool, outputs []backend.Buffer) error {
	if err := c.check(inputs, donated); err != nil {
		return err
	}
	if len(outputs) != len(c.spec.Outputs) {
		return fmt.Errorf("%w: %d outputs, the model has %d", ir.ErrArg, len(outputs), len(c.spec.Outputs))
	}
	return nil
}

// ready binds the set s, or the active one if s is nil, to an instance that is
// about to run. The caller has a reference to s.
func (c *Container) ready(ctx context.Context, inst *instance, s *set) error {
	if inst == c.solo {
		inst.running.Store(true)
	}
	if s != nil {
		if inst.complete && inst.bound == s {
			return nil
		}
		return c.bindSet(ctx, inst, s)
	}
	if inst.constants == nil || inst.complete && inst.bound == c.active.Load() {
		return nil
	}
	return c.bindActive(ctx, inst)
}

// starter is Run of a model, or what does as much and more.
type starter func(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error)

// invoke runs the model, by run, on an instance that the caller has, with the set
// s, or with the active one if s is nil.
func (c *Container) invoke(ctx context.Context, inst *instance, s *set, run starter, inputs []backend.Buffer, donated []bool) (outs []backend.Buffer, err error) {
	defer func() {
		if r := recover(); r != nil {
			outs, err = nil, &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	if err := c.ready(ctx, inst, s); err != nil {
		return nil, err
	}
	outs, err = run(ctx, inputs, donated)
	if err != nil {
		return nil, err
	}
	if len(outs) != len(c.spec.Outputs) {
		releaseAll(outs)
		return nil, fmt.Errorf("%w: the model returned %d outputs, not %d", ir.ErrArg, len(outs), len(c.spec.Outputs))
	}
	return outs, nil
}

// invokeInto is invoke for RunInto.
func (c *Container) invokeInto(ctx context.Context, inst *instance, s *set, inputs []backend.Buffer, donated []bool, outputs []backend.Buffer) (err error) {
	if inst.into == nil {
		for i, o := range outputs {
			if o != nil {
				return fmt.Errorf("%w: output %d (%s) is given, the model makes its own", backend.ErrUnsupported, i, c.spec.Outputs[i].Name)
			}
		}
		outs, err := c.invoke(ctx, inst, s, inst.model.Run, inputs, donated)
		copy(outputs, outs)
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	if err := c.ready(ctx, inst, s); err != nil {
		return err
	}
	return inst.into.RunInto(ctx, inputs, donated, outputs)
}
