package executor

import (
	"slices"
	"sync"
	"weak"
)

// The values of other sessions' variables that a session records with are those of one moment: that
// of the first value that it takes. Its view lasts from then until it next syncs or reads something,
// so that a graph never mixes two steps of another session. A commit that replaces a value gives the
// old version to the sessions whose view has begun; those which have taken no value cost it nothing.
// Of its own variables a session always sees the last committed value: a program that waits for
// goroutines with forks, and then reads what they have trained, need not know of views.

// viewers are the sessions whose view has begun; weak, since a session may be dropped. Sessions enter
// and leave with core.mu held, if only for reading, and the lock of their part; what replaces values
// holds core.mu alone.
type viewers [16]viewersPart

type viewersPart struct {
	mu   sync.Mutex
	list []weak.Pointer[Session]
	_    [32]byte // another processor's part is in another line of the cache
}

// any reports whether there are any; core.mu is held.
func (vs *viewers) any() bool {
	for i := range vs {
		if len(vs[i].list) > 0 {
			return true
		}
	}
	return false
}

// of returns the part of a session.
func (vs *viewers) of(s *Session) *viewersPart { return &vs[s.id%uint64(len(vs))] }

// look begins the session's view, if the variable is another's and it has not begun; the
// session is locked, and core.mu held, if only for reading.
func (s *Session) look(v *Variable) {
	if s == v.s || s.viewing {
		return
	}
	s.viewing = true
	if s.self == (weak.Pointer[Session]{}) {
		s.self = weak.Make(s)
	}
	part := s.core.viewers.of(s)
	part.mu.Lock()
	part.list = append(part.list, s.self)
	part.mu.Unlock()
}

// endView lets the session see what is committed now; the session is locked, and core.mu held,
// if only for reading.
func (s *Session) endView() {
	if !s.viewing {
		return
	}
	s.viewing, s.view = false, nil
	part := s.core.viewers.of(s)
	part.mu.Lock()
	defer part.mu.Unlock()
	i, last := slices.Index(part.list, s.self), len(part.list)-1
	part.list[i] = part.list[last]
	part.list = part.list[:last]
}

// keepViews gives the committed version of a variable, which session s is about to replace, to the
// sessions whose view has begun; core.mu is held. It comes before data may be donated.
func (v *Variable) keepViews(s *Session) {
	c := v.s.core
	if !c.viewers.any() {
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
	for i := range c.viewers {
		p := &c.viewers[i]
		p.list = slices.DeleteFunc(p.list, func(w weak.Pointer[Session]) bool { return !v.keepView(w.Value(), s, &old) })
	}
}

// keepView gives session other, unless that is s, a version of the variable if it has none, and reports
// whether there still is such a session; core.mu is held.
func (v *Variable) keepView(other, s *Session, old *version) bool {
	if other == nil {
		return false
	}
	if other == s || other == v.s || other.view[v] != nil {
		return true
	}
	if old.data != nil {
		old.data.escape()
	}
	if other.view == nil {
		other.view = map[*Variable]*version{}
	}
	its := *old
	other.view[v] = &its
	return true
}
