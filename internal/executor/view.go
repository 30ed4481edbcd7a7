package executor

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// The values of other sessions' variables that a session records with are those of one moment: that
// of the first value that it takes. Its view lasts from then until it next syncs or reads something,
// so that a graph never mixes two steps of another session. A commit that replaces a value gives the
// old version to the sessions whose view has begun; those which have taken no value cost it nothing.
// Of its own variables a session always sees the last committed value: a program that waits for
// goroutines with forks, and then reads what they have trained, need not know of views.

//
// A session enters the viewers with the variable held from which it takes its first value, and what
// replaces values looks for viewers with all its variables held. So a view that does not get an old
// value from a commit begins after it, for all that the commit changes. Commits that have no variable in
// common may be in one order for one view and in the other for another.

// viewers are the sessions whose view has begun; weak, since a session may be dropped.
type viewers struct {
	some  atomic.Uint64 // a bit for each part that has sessions
	parts [64]viewersPart
}

type viewersPart struct {
	mu   sync.Mutex // guards list, and the views of the sessions in it
	list []weak.Pointer[Session]
	_    [32]byte // another processor's part is in another line of the cache
}

// set makes the list that of part i, which is locked.
func (vs *viewers) set(i int, list []weak.Pointer[Session]) {
	before, now := len(vs.parts[i].list) > 0, len(list) > 0
	vs.parts[i].list = list
	switch {
	case now && !before:
		vs.some.Or(1 << i)
	case before && !now:
		vs.some.And(^uint64(1 << i))
	}
}

// of returns the part of a session, and which it is.
func (vs *viewers) of(s *Session) (*viewersPart, int) {
	i := int(s.id % uint64(len(vs.parts)))
	return &vs.parts[i], i
}

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
	part, i := s.core.viewers.of(s)
	part.mu.Lock()
	s.core.viewers.set(i, append(part.list, s.self))
	part.mu.Unlock()
}

// viewed returns the version that a commit has given to the session's view, or nil; the session is
// locked.
func (s *Session) viewed(v *Variable) *version {
	part, _ := s.core.viewers.of(s)
	part.mu.Lock()
	defer part.mu.Unlock()
	return s.view[v]
}

// endView lets the session see what is committed now; the session is locked.
func (s *Session) endView() {
	if !s.viewing {
		return
	}
	s.viewing = false
	part, i := s.core.viewers.of(s)
	part.mu.Lock()
	defer part.mu.Unlock()
	if len(s.view) <= 64 {
		clear(s.view) // so that a commit need not make it anew
	} else {
		s.view = nil
	}
	its, last := slices.Index(part.list, s.self), len(part.list)-1
	part.list[its] = part.list[last]
	s.core.viewers.set(i, part.list[:last])
}

// keepViews gives the committed versions of variables, which session s is about to replace, to the
// sessions whose view has begun; core.mu is held. It comes before data may be donated.
func (c *core) keepViews(s *Session, vars ...*Variable) {
	some := c.viewers.some.Load()
	if some == 0 || len(vars) == 0 {
		return
	}
	olds := make([]*version, len(vars))
	for i, v := range vars {
		olds[i] = v.kept()
	}
	for ; some != 0; some &= some - 1 {
		i := bits.TrailingZeros64(some)
		p := &c.viewers.parts[i]
		p.mu.Lock()
		c.viewers.set(i, slices.DeleteFunc(p.list, func(w weak.Pointer[Session]) bool { return !keepView(w.Value(), s, vars, olds) }))
		p.mu.Unlock()
	}
}

// kept returns a version for views in place of the committed one, or nil if others have never seen that;
// core.mu is held.
func (v *Variable) kept() *version {
	x := &v.committed
	x.settle(v)
	old := *x
	if x.data == nil {
		if v.initial == nil {
			return nil
		}
		again := *v.initial // what the step computes of it may fail with the step
		old.pend = &again
	}
	return &old
}

// keepView gives a session the view of which has begun those versions of variables that it has none of, unless it is that of
// session s, and reports whether there still is such a session; its part of the viewers is locked.
func keepView(viewer, s *Session, vars []*Variable, olds []*version) bool {
	if viewer == nil {
		return false
	}
	for i, v := range vars {
		if viewer == s || viewer == v.s || olds[i] == nil || viewer.view[v] != nil {
			continue
		}
		if d := olds[i].data; d != nil {
			d.escape()
		}
		if viewer.view == nil {
			viewer.view = map[*Variable]*version{}
		}
		viewer.view[v] = olds[i]
	}
	return true
}
