package executor

import (
	"errors"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// A value that is synced in the middle of a step, because it is read or the step is trimmed,
// becomes a leaf of the step's graph. Until the step ends its data keeps the value that it was
// computed from, its gradient history, so that gradients pass through the leaf: reading a value
// changes no gradient.
//
// Each variable has a leaf of its own, apart from the tensor that was assigned and from other
// variables with the same value: the gradient with respect to a variable counts the uses of its
// value only. While that value is still IR, a view node stands for the leaf. When the step ends,
// the view becomes data of its own and the variable's value gets a new leaf.

// history is what a leaf stands for during the step that recorded it. The session's lock guards it, but for
// over. A nil history is that of a leaf which stands for nothing.
type history struct {
	group   *lockGroup // never changes
	val     ir.Value   // nil once the step has ended or the history was dropped
	dropped bool       // the history was dropped before the step's end
	over    atomic.Bool
}

// value returns the value to which gradients pass on, or a nil Value; the history's session is locked.
func (h *history) value() ir.Value {
	if h == nil {
		return ir.Value{}
	}
	return h.val
}

// in returns the history if it is of session s or one that has joined it, otherwise nil: a graph has
// no nodes of sessions that are apart, so gradients of it do not pass on to them.
func (h *history) in(s *Session) *history {
	if h != nil && h.group.root() != s.group.root() {
		return nil
	}
	return h
}

// ended reports whether there was a history and its step has ended.
func (h *history) ended() bool { return h != nil && h.over.Load() }

// variableLeaf is the leaf of a variable's value.
type variableLeaf struct {
	data  *Data
	alias *history // the view that stood for it while it was IR
	from  *history // the leaf of the tensor that was assigned

	id    uint64     // a number that no other leaf and no data of the executor has
	group *lockGroup // the sessions that have the version's own leaf; guarded as the variable is

	leaf ir.LeafNode // the version's own
}

// LeafName names the data in dumps.
func (l *variableLeaf) LeafName() string { return l.data.LeafName() }

// dataOf returns the data of a leaf; nil for other kinds of leaves.
func dataOf(l ir.Leaf) *Data {
	switch l := l.(type) {
	case *Data:
		return l
	case *variableLeaf:
		return l.data
	}
	return nil
}

// ErrGraphDropped says that a gradient cannot be taken because a part of the
// step's graph was synced and dropped when it had grown too large.
var ErrGraphDropped = errors.New("a part of the step's graph was dropped because it had grown too large: call MarkStep once a step")

// Histories keep the step's graph and its inputs alive. Beyond these limits they are dropped, so
// that the memory of a program that never marks a step stays bounded.
const (
	maxHistoryNodes = 1 << 18
	maxHistoryBytes = 1 << 30
)

// newHistory returns the history of a leaf that stands for a value of this step; both locks are
// held.
func (s *Session) newHistory(v ir.Value) *history {
	h := &history{group: s.group, val: v}
	if len(s.histories) == cap(s.histories) {
		s.histories = slices.DeleteFunc(s.histories, func(w weak.Pointer[history]) bool { return w.Value() == nil })
	}
	s.histories = append(s.histories, weak.Make(h))
	s.historyBytes += v.Shape().Bytes()
	if s.stepNodes+s.b.Count() > maxHistoryNodes || s.historyBytes > maxHistoryBytes {
		for _, w := range s.histories {
			if h := w.Value(); h != nil {
				h.val, h.dropped = ir.Value{}, true
			}
		}
		s.historyBytes, s.stepNodes = 0, -s.b.Count()
	}
	return h
}

// endHistories ends the histories of the step; both locks are held.
func (s *Session) endHistories() {
	for _, w := range s.histories {
		if h := w.Value(); h != nil {
			h.val, h.dropped = ir.Value{}, false
			h.over.Store(true)
		}
	}
	s.histories, s.historyBytes, s.stepNodes = s.histories[:0], 0, 0
}

// Grad records the gradients of outs with respect to wrt, weighted by the
// cotangents (nil or nil entries: ones), as graph.Grad.
func (s *Session) Grad(newTensor func() *Tensor, outs, cotangents, wrt []*Tensor) []*Tensor {
	weights := slices.DeleteFunc(slices.Clone(cotangents), func(t *Tensor) bool { return t == nil })
	s.lockTensors("grad", slices.Concat(outs, wrt, weights)...)
	defer s.unlock()
	values := func(ts []*Tensor) []ir.Value {
		vals := make([]ir.Value, len(ts))
		for i, t := range ts {
			if t != nil {
				vals[i] = t.value()
			}
		}
		return vals
	}
	w := &s.walker
	defer w.Release()
	o, ct, leaves := s.resolve(values(outs)), values(cotangents), s.resolve(values(wrt))
	same := oneLeaf(leaves)
	grads := graph.GradThrough(s.b, w, func(n *ir.Node) ir.Value {
		if v := same(n); !v.IsNil() {
			return v
		}
		h := historyOf(n).in(s)
		if h != nil && h.dropped && !slices.Contains(leaves, n.Out(0)) {
			panic(ir.NewOpError("grad", ErrGraphDropped, []ir.Value{n.Out(0)}, "the gradient cannot pass"))
		}
		return h.value()
	}, o, ct, leaves)
	return s.handles(newTensor, grads)
}

// historyOf returns the history of a leaf, or nil.
func historyOf(n *ir.Node) *history {
	switch l := n.Leaf().(type) {
	case *Data:
		return l.history
	case *variableLeaf:
		switch {
		case l.alias != nil:
			return l.alias
		case l.from != nil:
			return l.from
		}
		return l.data.history
	}
	return nil
}

// resolve replaces leaves by the values of this step for which they stand: ops recorded before
// the sync use the value, later ones the leaf.
func (s *Session) resolve(vals []ir.Value) []ir.Value {
	out := slices.Clone(vals)
	for i, v := range out {
		var h *history
		switch l := v.Node.Leaf().(type) {
		case *Data:
			h = l.history
		case *variableLeaf:
			h = l.alias
		}
		if v = h.in(s).value(); !v.IsNil() {
			out[i] = v
		}
	}
	return out
}
