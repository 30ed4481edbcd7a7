package loris

import (
	"github.com/loris-ml/loris/internal/executor"
)

// Variable is a value that lives across steps, such as a weight, a moment of an optimiser
// or a counter. Assign gives it a pending value, which the next MarkStep computes. All
// methods are safe for concurrent use.
type Variable executor.Variable

func (v *Variable) ex() *executor.Variable { return (*executor.Variable)(v) }

// NewVariable returns a variable of t's session that holds t's value: its data, or if t is
// pending what the next MarkStep or read computes.
func NewVariable(t *Tensor) *Variable {
	return (*Variable)(t.session("variable").NewVariable(t.ex()))
}

// Value returns the present value, as a tensor of the variable's session.
func (v *Variable) Value() *Tensor { return v.ValueIn(v.Session()) }

// ValueIn returns the present value as a tensor of s, the variable's session or
// a fork of it.
func (v *Variable) ValueIn(s *Session) *Tensor {
	out := new(executor.Tensor)
	v.ex().Value(s.ex(), out)
	return (*Tensor)(out)
}

// Assign makes t's value the variable's from here on. It records and does not block; the
// next MarkStep computes the value. Another shape or dtype panics with an *OpError.
func (v *Variable) Assign(t *Tensor) {
	t.session("assign")
	v.ex().Assign(t.ex())
}

// Session returns the session that the variable belongs to.
func (v *Variable) Session() *Session { return (*Session)(v.ex().Session()) }

// Shape returns the dtype and dimensions, which never change.
func (v *Variable) Shape() Shape { return v.ex().Shape() }
