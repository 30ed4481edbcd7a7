package executor

import (
	"slices"
	"weak"
)

// The values of other sessions' variables that a session records with are those of one moment: that
// of the first value that it takes. Its view lasts from then until it next syncs or reads something,
// so that a graph never mixes two steps of another session. A commit that replaces a value gives the
// old version to the sessions whose view has begun; those which have taken no value cost it nothing.
// Of its own variables a session always sees the last committed value: a program that waits for
// goroutines with forks, and then reads what they have trained, need not know of views.

// look begins the session's view, if the variable is another's and it has not begun; both locks are held.
func (s *Session) look(v *Variable) {
	if s == v.s || s.viewing {
		return
	}
	s.viewing = true
	if s.self == (weak.Pointer[Session]{}) {
		s.self = weak.Make(s)
	}
	s.core.viewers = append(s.core.viewers, s.self)
}

// endView lets the session see what is committed now; both locks are held.
func (s *Session) endView() {
	if !s.viewing {
		return
	}
	s.viewing, s.view = false, nil
	v := s.core.viewers
	i := slices.Index(v, s.self)
	v[i] = v[len(v)-1]
	s.core.viewers = v[:len(v)-1]
}

// keepViews gives the committed version of a variable, which session s is about to replace, to the
// sessions whose view has begun; core.mu is held. It comes before data may be donated.
func (v *Variable) keepViews(s *Session) {
	c := v.s.core
	if len(c.viewers) == 0 {
		return
	}
	x := &v.committed
	x.settle(v)
	old := *x
	if x.data == nil {
		if v.initial == nil {
			return // others have never seen a value
		}
		again := *v.initial // what the step computes of it may fail with the step
		old.pend = &again
	}
	c.viewers = slices.DeleteFunc(c.viewers, func(w weak.Pointer[Session]) bool {
		other := w.Value()
		if other == nil {
			return true
		}
		if other == s || other == v.s || other.view[v] != nil {
			return false
		}
		if x.data != nil {
			x.data.escape()
		}
		if other.view == nil {
			other.view = map[*Variable]*version{}
		}
		its := old
		other.view[v] = &its
		return false
	})
}
