package executor

import (
	"errors"
	"slices"
	"weak"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// A value that is synced in the middle of a step (read, or trimmed) goes on as a
// leaf. Its data remembers what it was computed as until the step ends, so that
// gradients pass through it: reading a value changes no gradient.
//
// A variable is a leaf of its own, apart from the tensor that it was given and
// from other variables that were given the same: the gradient with respect to it
// counts what its value is used for, and no more. While that value is still IR,
// a view stands for the leaf. With the step the view becomes data of its own, and
// the variable's value a new leaf.

// origin is what a leaf stands for while the step lasts in which it was recorded.
// core.mu guards it.
type origin struct {
	val ir.Value // absent once the step has ended
	cut bool     // val was dropped before
}

// value returns what gradients pass on to; none is a nil origin's, too.
func (o *origin) value() ir.Value {
	if o == nil {
		return ir.Value{}
	}
	return o.val
}

// ended reports whether the step of an origin is over; not a nil origin's, which
// has none.
func (o *origin) ended() bool { return o != nil && o.val.IsNil() && !o.cut }

// held is the leaf of a variable's value.
type held struct {
	data  *Data
	alias *origin // the view that stood for it when it was IR
	from  *origin // the leaf of the tensor that was assigned
}

// LeafName names the data in dumps.
func (h *held) LeafName() string { return h.data.LeafName() }

// dataOf returns the data of a leaf, nil for other kinds of leaves.
func dataOf(l ir.Leaf) *Data {
	switch l := l.(type) {
	case *Data:
		return l
	case *held:
		return l.data
	}
	return nil
}

// ErrGraphDropped says that a gradient cannot be taken because a part of the
// step's graph was synced and dropped when it had grown too large.
var ErrGraphDropped = errors.New("a part of the step's graph was dropped because it had grown too large: call MarkStep once a step")

// Origins keep the step's graph and the data it was computed from alive. A
// program that never marks a step must not grow without end, so beyond these
// limits the origins of the step so far are dropped.
const (
	maxOriginNodes = 1 << 18
	maxOriginBytes = 1 << 30
)

// newOrigin returns the origin of a leaf that stands for a value of this step;
// core.mu is held.
func (s *Session) newOrigin(v ir.Value) *origin {
	o := &origin{val: v}
	if len(s.origins) == cap(s.origins) {
		s.origins = slices.DeleteFunc(s.origins, func(w weak.Pointer[origin]) bool { return w.Value() == nil })
	}
	s.origins = append(s.origins, weak.Make(o))
	s.originBytes += v.Shape().Bytes()
	if s.stepNodes+s.b.Count() > maxOriginNodes || s.originBytes > maxOriginBytes {
		for _, w := range s.origins {
			if o := w.Value(); o != nil {
				*o = origin{cut: true}
			}
		}
		s.originBytes, s.stepNodes = 0, -s.b.Count()
	}
	return o
}

// forgetOrigins ends the origins of the step; core.mu is held.
func (s *Session) forgetOrigins() {
	for _, w := range s.origins {
		if o := w.Value(); o != nil {
			*o = origin{}
		}
	}
	s.origins, s.originBytes, s.stepNodes = s.origins[:0], 0, 0
}

// grad records gradients with the executor's walker; core.mu is held.
func (s *Session) grad(outs, cotangents, wrt []ir.Value) []ir.Value {
	w := &s.core.walker
	defer w.Release()
	outs, wrt = resolve(outs), resolve(wrt)
	return graph.GradThrough(s.b, w, func(n *ir.Node) ir.Value {
		o := originOf(n)
		if o != nil && o.cut && !slices.Contains(wrt, n.Out(0)) {
			panic(ir.NewOpError("grad", ErrGraphDropped, []ir.Value{n.Out(0)}, "the gradient cannot pass"))
		}
		return o.value()
	}, outs, cotangents, wrt)
}

// originOf returns what gradients pass on to from a leaf.
func originOf(n *ir.Node) *origin {
	switch l := n.Leaf().(type) {
	case *Data:
		return l.origin
	case *held:
		switch {
		case l.alias != nil:
			return l.alias
		case l.from != nil:
			return l.from
		}
		return l.data.origin
	}
	return nil
}

// resolve replaces leaves by the values whose place they have taken in this
// step: what was recorded before uses the one, what came later the other.
func resolve(vals []ir.Value) []ir.Value {
	out := slices.Clone(vals)
	for i, v := range out {
		var o *origin
		switch l := v.Node.Leaf().(type) {
		case *Data:
			o = l.origin
		case *held:
			o = l.alias
		}
		if v = o.value(); !v.IsNil() {
			out[i] = v
		}
	}
	return out
}
