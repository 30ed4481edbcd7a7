package graph

import (
	"slices"

	"github.com/loris-ml/loris/ir"
)

// Origin returns the value that a leaf's data was computed as, absent for other
// leaves. Gradients pass through the leaf to it.
type Origin func(leaf *ir.Node) ir.Value

// Grad records the reverse-mode gradients of outs, weighted by the cotangents
// (an absent one means ones), with respect to the values wrt, and returns them
// in order; a value that outs do not depend on gets zeros. The gradients are
// ordinary nodes, so they can be differentiated again. A value of a dtype that
// has no gradient panics with an *ir.OpError.
func Grad(b *ir.Builder, w *Walker, outs, cotangents, wrt []ir.Value) []ir.Value {
	return GradThrough(b, w, nil, outs, cotangents, wrt)
}

// GradThrough is Grad in a graph parts of which have been computed in the
// meantime and stand as leaves in the rest: origin, if not nil, leads from these
// on.
func GradThrough(b *ir.Builder, w *Walker, origin Origin, outs, cotangents, wrt []ir.Value) []ir.Value {
	for _, v := range append(append([]ir.Value(nil), outs...), wrt...) {
		if d := v.DType(); !d.IsFloat() && !d.IsComplex() {
			panic(ir.NewOpError("grad", ir.ErrDType, []ir.Value{v}, "only floating and complex tensors have gradients"))
		}
	}
	w.origin = origin
	defer func() { w.origin = nil }()
	po := w.Walk(outs)
	// The walk's order is shared scratch; the rules below record nodes but never
	// walk, so positions stay valid.
	t := ir.Tape{Builder: b, Order: po.Nodes, Inputs: w.inputs, Position: func(n *ir.Node) (int, bool) {
		if !po.Contains(n) {
			return 0, false
		}
		return po.Position(n), true
	}}
	run := func() []ir.Value { return t.Run(outs, cotangents, wrt) }
	in, shape, ok := w.signature(&po, outs, cotangents, wrt)
	if !ok {
		return run()
	}
	return b.Again(gradients{}, in, shape, run)
}

// gradients is what the recorder's memory calls them.
type gradients struct{}

// signature returns what the gradients of a walk's roots depend on: all nodes, and
// how they hang together. It returns false where the walk went through leaves, whose
// origins are not part of that. The slices are scratch.
func (w *Walker) signature(po *PostOrder, values ...[]ir.Value) (in []*ir.Node, shape []uint32, ok bool) {
	edges := 0
	for _, n := range po.Nodes {
		edges += len(n.Inputs())
	}
	if edges != len(po.Edges) {
		return nil, nil, false
	}
	in, shape = append(w.in[:0], po.Nodes...), append(w.shape[:0], po.Edges...)
	for _, list := range values {
		for _, v := range list {
			at := 0
			switch {
			case v.IsNil():
				at = -1
			case po.Contains(v.Node):
				at = po.Position(v.Node)
			default:
				if at = slices.Index(in[len(po.Nodes):], v.Node); at < 0 {
					at = len(in) - len(po.Nodes)
					in = append(in, v.Node)
				}
				at += len(po.Nodes)
			}
			shape = append(shape, uint32(at), uint32(v.Index))
		}
		shape = append(shape, uint32(len(list)))
	}
	w.in, w.shape = in, shape
	return in, shape, true
}
