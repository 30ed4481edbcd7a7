package executor

import (
	"errors"
	"slices"
	"weak"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// A value that is synced in the middle of a step (because it is read) goes on as
// a leaf. Its data remembers what it was computed as until the step ends, so
// that gradients pass through it: reading a value changes no gradient.

// ErrGraphDropped says that a gradient cannot be taken because a part of the
// step's graph was synced and dropped when it had grown too large.
var ErrGraphDropped = errors.New("a part of the step's graph was dropped because it had grown too large: call MarkStep once a step, or raise the limit of nodes")

// origin is what data was computed as; core.mu guards it.
type origin struct {
	val ir.Value
	cut bool // val was dropped before the end of its step
}

// remember notes what a tensor that gets its data now was computed as; core.mu
// is held. Values of earlier steps have no origin: IR never crosses a step.
func (s *Session) remember(t *Tensor, d *Data) {
	if t.step != t.s.step || d.origin != nil {
		return
	}
	d.origin = &origin{val: t.node()}
	owner := t.s
	if len(owner.origins) == cap(owner.origins) {
		owner.origins = slices.DeleteFunc(owner.origins, func(w weak.Pointer[Data]) bool { return w.Value() == nil })
	}
	owner.origins = append(owner.origins, weak.Make(d))
	owner.originBytes += d.shape.Bytes()
	if owner.stepNodes+owner.b.Count() > maxOriginNodes || owner.originBytes > maxOriginBytes {
		owner.forgetOrigins(&origin{cut: true})
	}
}

// Origins keep the step's graph and the data it was computed from alive. A
// program that never marks a step must not grow without end, so beyond these
// limits the origins of the step so far are dropped.
const (
	maxOriginNodes = 1 << 18
	maxOriginBytes = 1 << 30
)

// forgetOrigins puts o in place of the origins of the step so far: nil at its
// end. core.mu is held.
func (s *Session) forgetOrigins(o *origin) {
	for _, w := range s.origins {
		if d := w.Value(); d != nil {
			d.origin = o
		}
	}
	s.origins, s.originBytes, s.stepNodes = s.origins[:0], 0, 0
}

// originOf returns the origin of a leaf, nil for most; core.mu is held.
func originOf(n *ir.Node) *origin {
	if d, ok := n.Leaf().(*Data); ok {
		return d.origin
	}
	return nil
}

// grad records gradients with the executor's walker; core.mu is held.
func (s *Session) grad(outs, cotangents, wrt []ir.Value) []ir.Value {
	w := &s.core.walker
	defer w.Release()
	outs, wrt = atOrigin(outs), atOrigin(wrt)
	through := func(n *ir.Node) ir.Value {
		o := originOf(n)
		if o == nil {
			return ir.Value{}
		}
		if o.cut && !slices.Contains(wrt, n.Out(0)) {
			panic(ir.NewOpError("grad", ErrGraphDropped, []ir.Value{n.Out(0)}, "the gradient cannot pass"))
		}
		return o.val
	}
	return graph.GradThrough(s.b, w, through, outs, cotangents, wrt)
}

// atOrigin replaces leaves by what they were computed as in this step: what was
// recorded before the sync uses the one, what came later the other.
func atOrigin(vals []ir.Value) []ir.Value {
	out := slices.Clone(vals)
	for i, v := range out {
		if o := originOf(v.Node); o != nil && !o.val.IsNil() {
			out[i] = o.val
		}
	}
	return out
}

// letGo takes what a MarkStep will not sync out of the step's list: what has
// data, and what something consumes. So a program that reads and never marks a
// step holds no more of the past than its handles do. core.mu is held.
func (s *Session) letGo() {
	if len(s.pending) < s.letGoAt || s.scope&bitScoped != 0 || s.tracing != nil {
		return
	}
	s.pending = slices.DeleteFunc(s.pending, func(t *Tensor) bool {
		return t.data != nil || t.ir == nil || t.bits&bitKeep == 0 && t.consumed()
	})
	s.letGoAt = 2 * len(s.pending)
	if len(s.pending) == 0 {
		s.stepNodes += s.b.Count()
		s.b.Restart()
		s.trim.count = 0
	}
}

// consumed reports whether a node was recorded that uses t; core.mu is held.
func (t *Tensor) consumed() bool { return t.ir.Used>>min(t.out, 31)&1 != 0 }
