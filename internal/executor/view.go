package executor

import (
	"math"
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
//
// Commits take no lock of viewers, since one that waits for a processor would stop all others: they read
// lists that do not change, and push what a view gets onto a stack of its session.

// viewers are the sessions whose view has begun; weak, since a session may be dropped.
type viewers struct {
	some  atomic.Uint64 // a bit for each part that has sessions
	count atomic.Uint64 // numbers commits that found viewers, and views
	parts [64]viewersPart
}

type viewersPart struct {
	mu   sync.Mutex // held to replace list
	list atomic.Pointer[[]weak.Pointer[Session]]
	_    [48]byte // another processor's part is in another line of the cache
}

// sessionView is what a session sees in place of committed values. The session's lock guards what is not
// atomic.
type sessionView struct {
	begun bool
	// number tells the session's views apart. since is a number of viewers.count: commits with a smaller
	// one may be in the view, others are not, but for the session's own, the last of which it is from then
	// on. It is the largest number while the view begins.
	number, since atomic.Uint64
	given         atomic.Pointer[givenVersion] // by commits, the latest first
	versions      map[*Variable]*version       // those that viewed has taken from given
	alone         *[]weak.Pointer[Session]     // the session, for a part that has no other
}

// givenVersion is a version that a commit has given to a view.
type givenVersion struct {
	number uint64 // of the view
	v      *Variable
	x      *version
	next   *givenVersion
}

// replace makes the part's list that with or without a session.
func (vs *viewers) replace(s *Session, change func(list []weak.Pointer[Session]) []weak.Pointer[Session]) {
	i := int(s.id % uint64(len(vs.parts)))
	p := &vs.parts[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []weak.Pointer[Session]
	if old := p.list.Load(); old != nil {
		list = *old
	}
	if list = change(list); len(list) == 0 {
		p.list.Store(nil)
		vs.some.And(^uint64(1 << i))
		return
	}
	if len(list) == 1 && list[0] == (*s.view.alone)[0] {
		p.list.Store(s.view.alone)
	} else {
		p.list.Store(&list)
	}
	vs.some.Or(1 << i)
}

func dropped(w weak.Pointer[Session]) bool { return w.Value() == nil }

// look begins the session's view, if the variable is another's and it has not begun; the session is
// locked, and the variable held.
func (s *Session) look(v *Variable) {
	w := &s.view
	if s == v.s || w.begun {
		return
	}
	w.begun = true
	if w.alone == nil {
		w.alone = &[]weak.Pointer[Session]{weak.Make(s)}
	}
	w.since.Store(math.MaxUint64)
	w.number.Add(1)
	vs := &s.core.viewers
	vs.replace(s, func(list []weak.Pointer[Session]) []weak.Pointer[Session] {
		if len(list) == 0 {
			return *w.alone
		}
		return append(slices.DeleteFunc(slices.Clone(list), dropped), (*w.alone)[0])
	})
	w.since.Store(vs.count.Add(1))
}

// viewed returns the version that a commit has given to the session's view, or nil; the session is
// locked.
func (s *Session) viewed(v *Variable) *version {
	w := &s.view
	var first *givenVersion
	for g := w.given.Swap(nil); g != nil; { // the oldest first
		g, g.next, first = g.next, first, g
	}
	for g := first; g != nil; g = g.next {
		if g.number == w.number.Load() && w.versions[g.v] == nil {
			if w.versions == nil {
				w.versions = map[*Variable]*version{}
			}
			w.versions[g.v] = g.x
		}
	}
	return w.versions[v]
}

// endView lets the session see what is committed now; the session is locked.
func (s *Session) endView() {
	w := &s.view
	if !w.begun {
		return
	}
	w.begun, w.versions = false, nil
	s.core.viewers.replace(s, func(list []weak.Pointer[Session]) []weak.Pointer[Session] {
		if len(list) == 1 {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(list), func(other weak.Pointer[Session]) bool {
			return other == (*w.alone)[0] || dropped(other)
		})
	})
	w.number.Add(1) // what is given from now on is for no view
	w.given.Store(nil)
}

// keepViews gives the committed versions of variables, which session s is about to replace, to the
// sessions whose view has begun; core.mu is held. It comes before data may be donated.
func (c *core) keepViews(s *Session, vars ...*Variable) {
	vs := &c.viewers
	if vs.some.Load() == 0 || len(vars) == 0 {
		return
	}
	now := vs.count.Add(1) // before looking for viewers: those that are not found have a greater number
	var olds []*version
	own := false
	for some := vs.some.Load(); some != 0; some &= some - 1 {
		list := vs.parts[bits.TrailingZeros64(some)].list.Load()
		if list == nil {
			continue
		}
		for _, w := range *list {
			viewer := w.Value()
			if viewer == nil || viewer == s {
				own = own || viewer != nil
				continue
			}
			if olds == nil {
				olds = make([]*version, len(vars))
				for i, v := range vars {
					olds[i] = v.kept()
				}
			}
			viewer.view.give(viewer, vars, olds)
		}
	}
	if own {
		s.view.since.Store(now) // it has the new versions, and is given them when they are replaced
	}
	for i := range olds {
		if olds[i] != nil {
			vars[i].replaced = now
		}
	}
}

// give gives the view of a session those versions of variables that may be in it. A version that was
// committed by a commit with a greater number than the view's is none of them: the view has been given
// the one before.
func (w *sessionView) give(viewer *Session, vars []*Variable, olds []*version) {
	number, since := w.number.Load(), w.since.Load()
	for i, v := range vars {
		if viewer == v.s || olds[i] == nil || v.replaced > since {
			continue
		}
		if d := olds[i].data; d != nil {
			d.escape()
		}
		g := &givenVersion{number: number, v: v, x: olds[i]}
		for g.next = w.given.Load(); !w.given.CompareAndSwap(g.next, g); g.next = w.given.Load() {
		}
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
