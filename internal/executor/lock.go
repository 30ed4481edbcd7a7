package executor

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Three kinds of locks guard an executor.
//
//   - The session's lock (Session.lock) guards what the session records: its Builder, its pending
//     tensors, their nodes, its walks and random state. Recording an op and reading a tensor's shape
//     take no other.
//   - core.mu guards what sessions share: variables with their versions and views, which data may be
//     donated, what runs put back after errors, plugs and queues. It is held for short work only, never
//     while a graph is walked.
//   - core.stripes guard variables among those who hold core.mu for reading: a stripe is held for
//     reading to look at a variable, and for writing to change it. Steps that change different
//     variables so end beside each other. Whoever changes several variables holds the stripes of all
//     at one time (core.changing), so that nobody sees some of them changed.
//
// Who holds core.mu for writing needs no stripe. He has it for what is rare, or concerns more than
// some variables and one session: initial values and snapshots, values that are committed outside of a
// step's end, errors, functions that are traced. What is done with stripes therefore looks at no
// session but the one that is locked, and at no tensor of another.
//
// The order is: the session's lock, core.mu, stripes from the lowest on, the locks of views and of
// live tensors. Whatever code reads with core.mu alone of a session or its tensors (step, gen,
// bodies, what tensors are that have bitValue) is written with the session's lock and core.mu, if only
// for reading, so the session's lock, or core.mu for writing, is enough to read it.
//
// Sessions are apart as long as their graphs are. A session that takes a pending tensor of another
// one has that one's nodes in its graph, so the two have one lock from then on: they are of one
// lockGroup. Data of another session joins nothing: it becomes a leaf of the taker's own, since a
// recorder and a walk mark the nodes that they meet (leavesApart).

// lockGroup is the sessions that have one lock.
type lockGroup struct {
	mu     fairMutex
	id     uint64                    // the order in which several are locked
	parent atomic.Pointer[lockGroup] // the group that this one has joined; written with both locked
	shared bool                      // another group has joined it; guarded by mu
	leaves leavesApart               // guarded by mu
}

// root returns the group whose lock counts.
func (g *lockGroup) root() *lockGroup {
	for {
		p := g.parent.Load()
		if p == nil {
			return g
		}
		if up := p.parent.Load(); up != nil {
			g.parent.Store(up) // a shorter way for those who come later
		}
		g = p
	}
}

// lock takes the session's lock.
func (s *Session) lock() {
	s.group.mu.Lock()
	if s.group.parent.Load() != nil {
		s.lockJoined()
	}
}

// lockJoined is lock for a session whose first group, which is locked, has joined another.
func (s *Session) lockJoined() {
	g := s.group
	for g.parent.Load() != nil {
		g.mu.Unlock()
		g = g.root()
		g.mu.Lock()
	}
}

// unlock gives the session's lock back. While it is held the group joins no other.
func (s *Session) unlock() { s.group.root().mu.Unlock() }

// lockBoth takes the session's lock and core.mu.
func (s *Session) lockBoth() {
	s.lock()
	s.core.mu.Lock()
}

// unlockBoth gives back what lockBoth has taken.
func (s *Session) unlockBoth() {
	s.core.mu.Unlock()
	s.unlock()
}

// lockedSession is the session that is locked of those whose tensors are looked at one by one, or nil.
type lockedSession struct{ s *Session }

// be unlocks the session that was locked and locks another, unless that is nil or the same one.
func (l *lockedSession) be(s *Session) {
	if l.s == s {
		return
	}
	if l.s != nil {
		l.s.unlock()
	}
	if l.s = s; s != nil {
		s.lock()
	}
}

// joined reports whether two sessions have one lock.
func (s *Session) joined(other *Session) bool {
	return s == other || s.group.root() == other.group.root()
}

// join gives two sessions one lock; none is held.
func (s *Session) join(other *Session) {
	for {
		a, b := s.group.root(), other.group.root()
		if a == b {
			return
		}
		if b.id < a.id {
			a, b = b, a
		}
		a.mu.Lock()
		b.mu.Lock()
		roots := a.parent.Load() == nil && b.parent.Load() == nil
		if roots {
			b.parent.Store(a)
			a.shared = true
		}
		b.mu.Unlock()
		a.mu.Unlock()
		if roots {
			return
		}
	}
}

// apart returns the session of the first tensor whose lock is not the session's, or nil. Tensors of
// other executors are left to checks that follow.
func (s *Session) apart(ts []*Tensor) *Session {
	for _, t := range ts {
		if t != nil && t.s != s && t.s != nil && t.s.core == s.core && !s.joined(t.s) {
			return t.s
		}
	}
	return nil
}

// lockWith takes the session's lock, after the sessions of all the tensors have joined.
func (s *Session) lockWith(ts []*Tensor) {
	s.lock()
	for other := s.apart(ts); other != nil; other = s.apart(ts) {
		s.unlock()
		s.join(other)
		s.lock()
	}
}

// stripes are the locks of variables among those who hold core.mu for reading. The variables of one
// session have the same, and those of the first session, which forks read most, one of their own.
type stripes [64]struct {
	sync.RWMutex
	_ [40]byte // another processor's stripe is in another line of the cache
}

// stripeSet is a set of stripes, as bits.
type stripeSet uint64

// stripe returns the variable's stripe; no lock is needed.
func (v *Variable) stripe() stripeSet {
	if v.s.id == 0 {
		return 1
	}
	return 2 << (v.s.id % uint64(len(stripes{})-1))
}

// stripesOf returns the stripes of several variables.
func stripesOf(vars []*Variable) (set stripeSet) {
	for _, v := range vars {
		set |= v.stripe()
	}
	return set
}

// each calls f with the stripes of a set, from the lowest on.
func (all *stripes) each(set stripeSet, f func(*sync.RWMutex)) {
	for ; set != 0; set &= set - 1 {
		f(&all[bits.TrailingZeros64(uint64(set))].RWMutex)
	}
}

// hold is what a goroutine has of core.mu and the stripes, to give it back.
type hold struct {
	c       *core
	set     stripeSet
	changes bool // the stripes are held for writing; if there are none, core.mu is
}

// reading takes core.mu and stripes for reading.
func (c *core) reading(set stripeSet) hold {
	c.mu.RLock()
	c.stripes.each(set, (*sync.RWMutex).RLock)
	return hold{c, set, false}
}

// changing takes core.mu for reading and stripes for writing.
func (c *core) changing(set stripeSet) hold {
	c.mu.RLock()
	c.stripes.each(set, (*sync.RWMutex).Lock)
	return hold{c, set, set != 0}
}

// alone takes core.mu for writing.
func (c *core) alone() hold {
	c.mu.Lock()
	return hold{c, 0, true}
}

// release gives back what is held.
func (h hold) release() {
	switch {
	case !h.changes:
		h.c.stripes.each(h.set, (*sync.RWMutex).RUnlock)
	case h.set == 0:
		h.c.mu.Unlock()
		return
	default:
		h.c.stripes.each(h.set, (*sync.RWMutex).Unlock)
	}
	h.c.mu.RUnlock()
}
