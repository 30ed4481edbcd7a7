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
		if !v.DType().IsFloat() {
			panic(ir.NewOpError("grad", ir.ErrDType, []ir.Value{v}, "only floating tensors have gradients"))
		}
	}
	w.origin = origin
	defer func() { w.origin = nil }()
	po := w.Walk(outs)
	// The walk's order is shared scratch; the rules below record nodes but never
	// walk, so positions stay valid.
	t := tape{b: b, order: po.Nodes, inputs: w.inputs, pos: func(n *ir.Node) (int, bool) {
		if !po.Contains(n) {
			return 0, false
		}
		return po.Position(n), true
	}}
	run := func() []ir.Value { return t.run(outs, cotangents, wrt) }
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

// tape is one reverse pass over nodes in post-order.
type tape struct {
	b     *ir.Builder
	order []*ir.Node
	pos   func(*ir.Node) (int, bool)
	// inputs are what a node passes its cotangents to: its operands, or a leaf's
	// origin.
	inputs func(*ir.Node) []ir.Value
	adj    [][]ir.Value // by position, by output
	needs  []bool
}

func (t *tape) run(outs, cotangents, wrt []ir.Value) []ir.Value {
	t.adj = make([][]ir.Value, len(t.order))
	t.mark(wrt)
	for i, o := range outs {
		var g ir.Value
		if i < len(cotangents) {
			g = cotangents[i]
		}
		if g.IsNil() {
			g = t.b.FullLike(o, 1)
		} else if g.Shape() != o.Shape() {
			panic(ir.NewOpError("grad", ir.ErrShape, []ir.Value{o, g}, "the cotangent must have the output's shape and dtype"))
		}
		t.add(o, g)
	}
	for i := len(t.order) - 1; i >= 0; i-- {
		n := t.order[i]
		switch {
		case !t.needs[i] || t.adj[i] == nil:
		case !n.IsLeaf():
			t.back(n, t.adj[i])
		default:
			for _, v := range t.inputs(n) {
				t.add(v, t.adj[i][0])
			}
		}
	}
	t.b.Line = 0
	grads := make([]ir.Value, len(wrt))
	for i, v := range wrt {
		if p, ok := t.pos(v.Node); ok && t.adj[p] != nil {
			grads[i] = t.adj[p][v.Index]
		}
		if grads[i].IsNil() {
			grads[i] = t.b.FullLike(v, 0)
		}
	}
	return grads
}

// mark finds the nodes through which a wrt value is reached.
func (t *tape) mark(wrt []ir.Value) {
	t.needs = make([]bool, len(t.order))
	for _, v := range wrt {
		if p, ok := t.pos(v.Node); ok {
			t.needs[p] = true
		}
	}
	for i, n := range t.order {
		for _, v := range t.inputs(n) {
			if t.needs[i] {
				break
			}
			if p, ok := t.pos(v.Node); ok && t.needs[p] {
				t.needs[i] = true
			}
		}
	}
}

func (t *tape) add(v, g ir.Value) {
	p, ok := t.pos(v.Node)
	if !ok || !t.needs[p] || g.IsNil() {
		return
	}
	if t.adj[p] == nil {
		t.adj[p] = make([]ir.Value, v.Node.NumOutputs())
	}
	if old := t.adj[p][v.Index]; !old.IsNil() {
		g = t.b.Add(old, g)
	}
	t.adj[p][v.Index] = g
}

// back sends the cotangents of one node to its inputs.
func (t *tape) back(n *ir.Node, grad []ir.Value) {
	sp := n.Spec()
	t.b.Line = n.Line()
	var in []ir.Value
	switch {
	case sp.VJP != nil:
		in = sp.VJP(t.b, n.Args(), n.Outs(), grad)
	case sp.Decompose != nil && sp.NoGrad == "":
		in = t.through(n, grad)
	case sp.Category == ir.Foreign:
		panic(ir.NewOpError(sp.Name, ir.ErrArg, n.Inputs(), "no gradient flows through the op: %s", sp.NoGrad))
	default:
		return
	}
	for i, g := range in {
		x := n.Inputs()[i]
		if g.IsNil() || !x.DType().IsFloat() {
			continue
		}
		if g.Shape() != x.Shape() {
			panic(ir.NewOpError(sp.Name, ir.ErrShape, []ir.Value{x, g}, "the gradient of operand %d does not have its shape; please report this", i))
		}
		t.add(x, g)
	}
}

// through differentiates a composite by its decomposition. The forward nodes
// recorded again here meet the composite's own when the graph is compiled.
func (t *tape) through(n *ir.Node, grad []ir.Value) []ir.Value {
	outs := n.Spec().Decompose(t.b, n.Args())
	pos := map[*ir.Node]int{}
	var order []*ir.Node
	for _, v := range n.Inputs() {
		if _, ok := pos[v.Node]; !ok {
			pos[v.Node] = len(order)
			order = append(order, v.Node)
		}
	}
	inputs := len(order)
	var visit func(*ir.Node)
	visit = func(m *ir.Node) {
		if _, ok := pos[m]; ok || m.IsLeaf() {
			return
		}
		for _, v := range m.Inputs() {
			visit(v.Node)
		}
		pos[m] = len(order)
		order = append(order, m)
	}
	for _, o := range outs {
		visit(o.Node)
	}
	sub := tape{b: t.b, order: order, pos: func(m *ir.Node) (int, bool) { p, ok := pos[m]; return p, ok }}
	return sub.runUpTo(inputs, outs, grad, n.Inputs())
}

// runUpTo is run for a part of a graph: the first nodes of the order are its
// inputs and are not passed.
func (t *tape) runUpTo(inputs int, outs, grad, wrt []ir.Value) []ir.Value {
	t.adj = make([][]ir.Value, len(t.order))
	t.needs = make([]bool, len(t.order))
	for i, n := range t.order {
		if i < inputs {
			t.needs[i] = true
			continue
		}
		for _, v := range n.Inputs() {
			if p, ok := t.pos(v.Node); ok && t.needs[p] {
				t.needs[i] = true
			}
		}
	}
	for i, o := range outs {
		t.add(o, grad[i])
	}
	for i := len(t.order) - 1; i >= inputs; i-- {
		if n := t.order[i]; t.needs[i] && t.adj[i] != nil {
			t.back(n, t.adj[i])
		}
	}
	// An input that stands for several operands has one adjoint: the first
	// operand takes it, or it would be counted twice.
	grads := make([]ir.Value, len(wrt))
	seen := map[ir.Value]bool{}
	for i, v := range wrt {
		if p, ok := t.pos(v.Node); ok && t.adj[p] != nil && !seen[v] {
			grads[i] = t.adj[p][v.Index]
			seen[v] = true
		}
	}
	return grads
}
