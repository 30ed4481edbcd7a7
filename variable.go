package loris

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Variable is a value that lives across steps, such as a weight, a moment of an optimiser
// or a counter. Assign gives it a pending value, which the next MarkStep computes and
// commits; until then only the session that assigned it sees it. All methods are safe for
// concurrent use.
//
// What becomes of variables when a step ends:
//
//	the step                           its session sees         other sessions see
//	MarkStep or Step returns nil       the new values           all new values from one moment on
//	Step's function fails or panics    the values before it     the values before it
//	Step returns another error         the values before it     the values before it
//	MarkStep returns an error          what it has assigned     the values before it
//	a graph of MarkStep is at fault    the values before it     the values before it
//	the computation fails later        the values before it, or its error where the old
//	                                   values may be overwritten already
//
// MarkStep leaves the step open when it fails, for another call: its context ended, the error is
// of earlier work (AsyncError), or memory, a file or a device was short. A graph is at fault
// when it cannot be compiled at all, or a value that was assigned has failed before. The
// values before a Step are those that its session saw when it began, which may be pending
// themselves.
type Variable executor.Variable

func (v *Variable) ex() *executor.Variable { return (*executor.Variable)(v) }

// NewVariable returns a variable of t's session that holds t's value: its data, or if t is
// pending what the next MarkStep or read computes.
func NewVariable(t *Tensor) *Variable {
	return (*Variable)(t.session("variable").NewVariable(t.ex()))
}

// Value returns the value that the variable's session sees, see ValueIn.
func (v *Variable) Value() *Tensor { return v.ValueIn(v.Session()) }

// ValueIn returns the value that s sees, the variable's session or a fork of it: what s has
// assigned in this step, or the value in the Snapshot that s uses, or the committed value.
// Committed values of other sessions' variables are those of one moment for all that s
// records between two syncs of its own (MarkStep, Sync, a read, a call of a Function), so
// that no graph mixes two steps of another session. A variable without a committed value, which another session is making in
// a Step, panics with an *OpError wrapping ErrUncommitted.
func (v *Variable) ValueIn(s *Session) *Tensor {
	out := new(executor.Tensor)
	v.ex().Value(s.ex(), out)
	return (*Tensor)(out)
}

// Assign makes t's value the variable's from here on, for t's session. It records and does
// not block; the next MarkStep of t's session computes the value and commits it, together with all
// others that the session has assigned. Of sessions that assign one variable the one whose
// step ends last wins; nothing is added up. A computed t that belongs to another session
// than the variable is committed at once, unless one of both sessions is in a Step. Another
// shape or dtype panics with an *OpError.
func (v *Variable) Assign(t *Tensor) {
	t.session("assign")
	v.ex().Assign(t.ex())
}

// Publish gives variables new values that all sessions see from one moment on, in place of
// what the variables' session has assigned: weights that were read from a file, say. It
// waits for values that are pending, and if the computation of one fails nothing changes. Inside a
// Step of the variables' session it is Assign. Numbers of variables and values that differ wrap
// ErrArg, shapes that differ ErrShape, and nothing changes.
func Publish(ctx context.Context, vars []*Variable, values []*Tensor) error {
	if err := ir.CheckContext("publish", ctx); err != nil {
		return err
	}
	s, err := sessionOfAll(values)
	if err != nil || s == nil && len(vars) == 0 {
		return err
	}
	if s == nil {
		return fmt.Errorf("loris: publish: %w: %d variables and no values", ErrArg, len(vars))
	}
	return s.ex().Publish(ctx, variables(vars), handles(values))
}

func variables(vs []*Variable) []*executor.Variable {
	out := make([]*executor.Variable, len(vs))
	for i, v := range vs {
		out[i] = v.ex()
	}
	return out
}

// Session returns the session that the variable belongs to.
func (v *Variable) Session() *Session { return (*Session)(v.ex().Session()) }

// Shape returns the dtype and dimensions, which never change.
func (v *Variable) Shape() Shape { return v.ex().Shape() }
