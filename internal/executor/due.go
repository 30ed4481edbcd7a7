package executor

import (
	"runtime"
	"slices"
	"weak"
)

// due is a variable that its session has to compute or commit at the end of the step. One that has
// nothing but its initial value is held weakly: where nothing refers to the variable any more,
// nobody can see that value, and it is not computed. Both pointers may be of one variable, in two
// entries.
type due struct {
	v       *Variable
	initial weak.Pointer[Variable]
}

// variable returns the variable, or nil if it is gone.
func (d due) variable() *Variable {
	if d.v != nil {
		return d.v
	}
	return d.initial.Value()
}

// dueVariables returns the variables that the step has to compute or commit, and forgets those that
// are gone; core.mu is held.
func (s *Session) dueVariables() []*Variable {
	vars := make([]*Variable, 0, len(s.assigned))
	s.assigned = slices.DeleteFunc(s.assigned, func(d due) bool {
		v := d.variable()
		if v != nil {
			vars = append(vars, v)
		}
		return v == nil
	})
	return vars
}

// deleteDue forgets the variables that del says, and those that are gone; core.mu is held.
func (s *Session) deleteDue(del func(*Variable) bool) {
	s.assigned = slices.DeleteFunc(s.assigned, func(d due) bool {
		v := d.variable()
		return v == nil || del(v)
	})
}

// addInitial has the session compute a variable's initial value, if the variable still is there at
// the end of the step; core.mu is held. Whenever the entries have doubled it drops those of variables
// that are gone or have been computed, for sessions that never mark a step.
func (s *Session) addInitial(v *Variable) {
	if len(s.assigned) >= s.sweepAssignedAt {
		s.deleteDue(func(w *Variable) bool {
			x := w.due(s)
			return x == nil || x.pend != nil && x.pend.data != nil && x.s == nil
		})
		s.sweepAssignedAt = max(64, 2*len(s.assigned))
	}
	s.assigned = append(s.assigned, due{initial: weak.Make(v)})
	s.initialBytes.Add(int64(v.shape.Bytes()))
}

// manyInitialBytes is how much initial values take that are worth a garbage collection before they
// are computed. They are only recorded until then, so that variables that were dropped give the
// collector no reason to run by itself.
const manyInitialBytes = 32 << 20

// findDropped has the garbage collector find variables that were dropped, where the initial values to
// be computed are large. It is called before a step ends, without core.mu.
func (s *Session) findDropped() {
	if s.initialBytes.Load() >= manyInitialBytes {
		s.initialBytes.Store(0)
		runtime.GC()
	}
}
