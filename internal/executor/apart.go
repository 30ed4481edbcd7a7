package executor

import (
	"slices"
	"weak"

	"github.com/loris-ml/loris/internal/ir"
)

// localAll is local for several tensors.
func (s *Session) localAll(ts []*Tensor) []*Tensor {
	if s.apart(ts) == nil {
		return ts
	}
	ts = slices.Clone(ts)
	for i, t := range ts {
		ts[i] = s.local(t)
	}
	return ts
}

// local returns a handle of the session's own for a tensor of a session with another lock. A tensor
// that is pending, or of the session, or cannot be used, is returned as it is: the sessions have one
// lock then, or are of two executors. No lock is held.
func (s *Session) local(t *Tensor) *Tensor {
	if s.apart([]*Tensor{t}) == nil {
		return t
	}
	own := t.s
	own.lock()
	d, leaf := t.data, t.ir
	if leaf != nil && !leaf.IsLeaf() && t.step != own.step {
		leaf = nil // IR that ops do not take any more
	}
	if d == nil || t.dead() || leaf != nil && !leaf.IsLeaf() {
		own.unlock()
		s.join(own)
		return t
	}
	d.escape()
	own.unlock()
	s.lock()
	defer s.unlock()
	return &Tensor{s: s, data: d, ir: d.leafFor(s.group.root(), leaf)}
}

// leafFor returns the leaf of the data for sessions of a group, which is locked, in place of a leaf of
// another group or, if that is nil, of the data's own.
func (d *Data) leafFor(g *lockGroup, leaf *ir.Node) *ir.Node {
	if leaf != nil {
		if l, ok := leaf.Leaf().(*variableLeaf); ok {
			return g.leaves.of(l.id, leaf.CloneLeaf)
		}
	}
	return g.leaves.of(d.info.TensorID, func() *ir.Node { return ir.NewLeaf(d, d.shape, d.device) })
}

// leavesApart are the leaves of one group of sessions for what has a leaf of another group, since
// groups mark nodes at the same time. They are held weakly, by the number of the data or of the
// variable's leaf: graphs and handles keep those that are in use. The zero value is empty.
type leavesApart struct {
	nodes   map[uint64]weak.Pointer[ir.Node]
	sweepAt int // when nodes has this size, those that are gone are dropped
}

// of returns the leaf for what has a number, which create makes if there is none.
func (l *leavesApart) of(id uint64, create func() *ir.Node) *ir.Node {
	if n := l.nodes[id].Value(); n != nil {
		return n
	}
	if len(l.nodes) >= l.sweepAt {
		for k, w := range l.nodes {
			if w.Value() == nil {
				delete(l.nodes, k)
			}
		}
		l.sweepAt = max(8, 2*len(l.nodes))
	}
	if l.nodes == nil {
		l.nodes = map[uint64]weak.Pointer[ir.Node]{}
	}
	n := create()
	l.nodes[id] = weak.Make(n)
	return n
}

// oneLeaf replaces values that are leaves of the same thing by the first of them, and returns what does
// so for nodes: sessions that were apart have leaves of their own, and may have joined since.
func oneLeaf(vals []ir.Value) func(n *ir.Node) ir.Value {
	var of map[ir.Leaf]ir.Value
	for i, v := range vals {
		switch l := v.Node.Leaf().(type) {
		case *Data, *variableLeaf:
			if of == nil {
				of = make(map[ir.Leaf]ir.Value, len(vals))
			}
			if first, again := of[l]; again {
				vals[i] = first
			} else {
				of[l] = v
			}
		}
	}
	return func(n *ir.Node) ir.Value {
		if of == nil || !n.IsLeaf() {
			return ir.Value{}
		}
		if v := of[n.Leaf()]; v.Node != n {
			return v
		}
		return ir.Value{}
	}
}

// shared is Value where session s sees data, or what it has assigned itself, for which it takes
// core.mu for reading only: with the variable's stripe for reading, if nothing has to be changed, or, if
// changes is set, for writing. Otherwise it returns false.
func (v *Variable) shared(s *Session, dst *Tensor, changes bool) bool {
	c := v.s.core
	if s.core != c || c.closed.Load() {
		return false
	}
	s.lock()
	defer s.unlock()
	if s.tracing != nil {
		return false
	}
	take := c.reading
	if changes {
		take = c.changing
	}
	defer take(v.stripe()).release()
	return v.giveSeen(s, dst, changes)
}

// giveSeen is shared with the session locked, and core.mu and the variable's stripe held.
func (v *Variable) giveSeen(s *Session, dst *Tensor, changes bool) bool {
	x := v.choose(s)
	switch {
	case v.initial != nil:
		return false
	case x.hasLeaf():
	case !changes || s.using != nil:
		return false
	case x.pend != nil && (x.pend.s != s || x.pend.dead()) || x.pend == nil && x.data == nil:
		return false
	default:
		x.settle(v)
	}
	if x == &v.committed {
		s.look(v)
	}
	x.give(v, s, dst)
	return true
}

// hasLeaf reports whether give changes nothing of the version; core.mu is held for reading, and the
// variable's stripe.
func (x *version) hasLeaf() bool {
	return x.pend == nil && x.data != nil && x.leaf != nil && !x.until.ended() && x.leaf.Leaf().(*variableLeaf).group != nil
}
