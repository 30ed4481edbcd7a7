package container

import (
	"context"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// RunVersion is Run with the set that was saved under a name instead of the
// active one, which stays as it is: to try weights before they are activated,
// beside those that are, or to know which a run computed with. A name that is not
// saved is a *VersionError wrapping ErrNoVersion. The name is looked up when
// RunVersion is called; a run that has begun, or waits for its instance, computes
// with that set although its version is dropped meanwhile. The instance is bound
// to the set for the run, and to the active one by the next plain run that gets
// it, so what a model writes into its buffers begins anew each time.
func (c *Container) RunVersion(ctx context.Context, name string, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := ir.CheckContext("container.RunVersion", ctx); err != nil {
		return nil, err
	}
	if err := c.check(inputs, donated); err != nil {
		return nil, err
	}
	s, inst, err := c.takeVersion(ctx, name)
	if err != nil {
		return nil, err
	}
	defer c.doneVersion(s)
	return c.runTaken(ctx, inst, s, inputs, donated)
}

// RunVersionInto is RunVersion as RunInto is Run.
func (c *Container) RunVersionInto(ctx context.Context, name string, inputs []backend.Buffer, donated []bool, outputs []backend.Buffer) error {
	if err := ir.CheckContext("container.RunVersionInto", ctx); err != nil {
		return err
	}
	if err := c.checkInto(inputs, donated, outputs); err != nil {
		return err
	}
	s, inst, err := c.takeVersion(ctx, name)
	if err != nil {
		return err
	}
	defer c.doneVersion(s)
	return c.runTakenInto(ctx, inst, s, inputs, donated, outputs)
}

// takeVersion returns a saved set with a reference and an instance for it. The
// caller counts as a user of the container until doneVersion, so that Close frees
// no buffers and unloads no model before the reference is gone.
func (c *Container) takeVersion(ctx context.Context, name string) (*set, *instance, error) {
	if err := c.enter(); err != nil {
		return nil, nil, err
	}
	s, err := c.retainVersion(name)
	if err != nil {
		c.leave()
		return nil, nil, err
	}
	inst, err := c.take(ctx)
	if err != nil {
		c.doneVersion(s)
		return nil, nil, err
	}
	return s, inst, nil
}

func (c *Container) doneVersion(s *set) {
	s.release()
	c.leave()
}

// retainVersion returns a saved set with a reference, for those who do not hold
// admin.
func (c *Container) retainVersion(name string) (*set, error) {
	if c.first == nil {
		return nil, ErrNoConstants
	}
	c.setsMu.Lock()
	defer c.setsMu.Unlock()
	s, err := c.version(name)
	if err != nil {
		return nil, err
	}
	s.refs.Add(1) // its place has one: Drop removes the name under setsMu first
	return s, nil
}
