package executor

import "sync/atomic"

// Two kinds of locks guard an executor.
//
//   - The session's lock (Session.lock) guards what the session records: its Builder, its pending
//     tensors, their nodes, its walks and random state. Recording an op and reading a tensor's shape
//     take no other.
//   - core.mu guards what sessions share: variables with their versions and views, which data may be
//     donated, what runs put back after errors, plugs and queues. It is held for short work only, never
//     while a graph is walked. It is held for reading where nothing changes but what is the session's
//     own (its view, the list of the variables that its step commits): values are taken, and syncs
//     begun, beside each other.
//
// The order is: the session's lock, core.mu, the locks of views and of live tensors. Whatever code
// reads with core.mu alone of a session or its tensors (step, gen, bodies, whether a history is over,
// what tensors are that have bitValue) is written with both locks held, so either is enough to read it.
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
