package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// History returns the value that a leaf's data was computed from, or an absent Value if the leaf has
// no history. Gradients flow from the leaf to that value.
type History func(leaf *ir.Node) ir.Value

// Grad records the reverse-mode gradients of outs with respect to the values wrt, and returns them in
// the order of wrt, each of its value's shape and dtype. Each output is weighted by its cotangent; an
// absent cotangent stands for ones. A value that outs do not depend on gets zeros. The gradients are
// ordinary nodes and can be differentiated again. Grad panics with an *ir.OpError for values that are
// not floating.
func Grad(b *ir.Builder, w *Walker, outs, cotangents, wrt []ir.Value) []ir.Value {
	return GradThrough(b, w, nil, outs, cotangents, wrt)
}

// GradThrough is Grad in a graph of which some parts were computed already and are leaves in the rest.
// Gradients pass through these leaves to the values that history returns for them.
func GradThrough(b *ir.Builder, w *Walker, history History, outs, cotangents, wrt []ir.Value) []ir.Value {
	for _, v := range append(append([]ir.Value(nil), outs...), wrt...) {
		if d := v.DType(); !d.IsFloat() && !d.IsComplex() {
			panic(ir.NewOpError("grad", ir.ErrDType, []ir.Value{v}, "only floating and complex tensors have gradients"))
		}
	}
	w.history = history
	defer func() { w.history = nil }()
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
	return b.Replay(gradientKey{}, in, shape, run)
}

// gradientKey is the key of gradients among the recordings of a Builder.
type gradientKey struct{}

// signature returns what decides the gradients of a walk's roots: all nodes, and a description of how
// they are connected. It returns false if the walk passed through leaves with a history, which the
// description leaves out. The slices are valid until the next call.
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
