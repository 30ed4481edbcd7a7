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
	here := &Tensor{s: s, data: d}
	s.core.mu.Lock()
	here.ir = d.leafFor(s.group.root(), leaf)
	s.core.mu.Unlock()
	return here
}

// leafFor returns the leaf of the data for sessions of a group, in place of a leaf of another group or,
// if that is nil, of the data's own; core.mu is held.
func (d *Data) leafFor(g *lockGroup, leaf *ir.Node) *ir.Node {
	if leaf != nil {
		if l, ok := leaf.Leaf().(*variableLeaf); ok {
			return l.apart.of(g, leaf.CloneLeaf)
		}
	}
	return d.apart.of(g, func() *ir.Node { return ir.NewLeaf(d, d.shape, d.device) })
}

// leavesApart are further leaves of what one leaf stands for, one for each group of sessions that
// uses it, since groups mark nodes at the same time. They are held weakly: graphs and handles keep
// those that are in use. core.mu guards it; the zero value is empty.
type leavesApart struct {
	nodes   map[*lockGroup]weak.Pointer[ir.Node]
	sweepAt int // when nodes has this size, those that are gone are dropped
}

// of returns the leaf of a group, which create makes if there is none.
func (l *leavesApart) of(g *lockGroup, create func() *ir.Node) *ir.Node {
	if n := l.nodes[g].Value(); n != nil {
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
		l.nodes = map[*lockGroup]weak.Pointer[ir.Node]{}
	}
	n := create()
	l.nodes[g] = weak.Make(n)
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

// leafOf returns the leaf that nodeFor returns for session s, or nil if that has to be made; the session is
// locked, and core.mu held, if only for reading.
func (x *version) leafOf(s *Session) *ir.Node {
	g := s.group.root()
	switch l := x.leaf.Leaf().(*variableLeaf); {
	case l.group == nil:
		return nil
	case l.group.root() == g:
		return x.leaf
	default:
		return l.apart.nodes[g].Value()
	}
}

// shared is Value where session s sees data that has a leaf for the session already, so that
// nothing has to be changed: it holds core.mu for reading. Otherwise it returns false.
func (v *Variable) shared(s *Session, dst *Tensor) bool {
	c := v.s.core
	if s.core != c || c.closed.Load() {
		return false
	}
	s.lock()
	defer s.unlock()
	if s.tracing != nil {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	x := v.choose(s)
	if x.data == nil || v.initial != nil || x.leaf == nil || x.until.ended() {
		return false
	}
	n := x.leafOf(s)
	if n == nil {
		return false
	}
	if x == &v.committed {
		s.look(v)
	}
	dst.s, dst.step, dst.bits, dst.gen = s, s.step, s.scopes(), s.gen
	dst.data = x.data
	dst.setNode(n.Out(0))
	if !s.inStep() || s != v.s {
		dst.data.escape()
	}
	return true
}
