package executor

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// publish commits t's value, which is data, in place of what the variable's session has assigned;
// both locks are held.
func (v *Variable) publish(t *Tensor) {
	v.s.core.keepViews(t.s, v)
	v.drop(v.s)
	x := version{s: t.s}
	x.assign(v, t)
	v.commit(x)
	if t.s.viewed(v) != nil {
		delete(t.s.view.versions, v) // a session sees what it has assigned
	}
}

// Publish commits the values of tensors to variables, all at one moment. It syncs those that are
// pending and waits for them, so that variables keep their values where a computation fails. For
// variables whose session is in a Step it is Assign. Mistakes are errors that wrap ir.ErrArg or
// ir.ErrShape, and nothing is published then.
func (s *Session) Publish(ctx context.Context, vars []*Variable, ts []*Tensor) error {
	if err := s.tracedMisuse("publish", "variables are published"); err != nil {
		return err
	}
	if len(vars) != len(ts) {
		return fmt.Errorf("loris: publish: %w: %d variables and %d values", ir.ErrArg, len(vars), len(ts))
	}
	if err := s.Readable(ts...); err != nil {
		return err
	}
	if _, err := s.FetchTensors(ctx, ts...); err != nil {
		return err
	}
	c := s.core
	ts = s.localAll(ts)
	for _, v := range vars {
		if v != nil && v.s.core == c && v.s.inStep() {
			s.join(v.s) // it is assigned there
		}
	}
	s.lockWith(ts)
	c.mu.Lock()
	defer s.unlockBoth()
	for i, v := range vars {
		switch t := ts[i]; {
		case c.closed.Load():
			return ErrClosed
		case v == nil || v.s.core != c:
			return fmt.Errorf("loris: publish: variable %d: %w", i, ErrSession)
		case t.data == nil:
			return fmt.Errorf("loris: publish: value %d: %w", i, errNotSynced)
		case t.shape() != v.shape:
			return fmt.Errorf("loris: publish: variable %d is %v, its value %v: %w", i, v.shape, t.shape(), ir.ErrShape)
		}
	}
	for i, v := range vars {
		if v.s.inStep() && s.joined(v.s) {
			v.assignIn(v.s, ts[i])
		} else {
			v.publish(ts[i])
		}
	}
	return nil
}
