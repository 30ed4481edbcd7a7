package ir

// Tape is one reverse pass over nodes in post-order, which records gradients.
type Tape struct {
	Builder *Builder
	Order   []*Node
	// Position returns where a node is in Order; false if it is not there.
	Position func(*Node) (int, bool)
	// Inputs returns the values to which a node passes its cotangents: its operands, or the history
	// of a leaf.
	Inputs func(*Node) []Value

	adj   [][]Value // by position, by output
	needs []bool
}

// Run returns the gradients of outs, weighted by the cotangents (an absent one
// means ones), with respect to the values wrt; zeros for one that outs do not
// depend on. Mistakes panic with an *OpError.
func (t *Tape) Run(outs, cotangents, wrt []Value) []Value {
	t.adj = make([][]Value, len(t.Order))
	t.mark(wrt)
	for i, o := range outs {
		var g Value
		if i < len(cotangents) {
			g = cotangents[i]
		}
		if g.IsNil() {
			if o.DType().IsComplex() {
				panic(NewOpError("grad", ErrDType, []Value{o}, "a cotangent is made only for real outputs; give one for %v", o.DType()))
			}
			g = t.Builder.fullLike(o, 1)
		} else if g.Shape() != o.Shape() {
			panic(NewOpError("grad", ErrShape, []Value{o, g}, "the cotangent must have the output's shape and dtype"))
		}
		t.add(o, g)
	}
	for i := len(t.Order) - 1; i >= 0; i-- {
		n := t.Order[i]
		switch {
		case !t.needs[i] || t.adj[i] == nil:
		case !n.IsLeaf():
			t.back(n, t.adj[i])
		default:
			for _, v := range t.Inputs(n) {
				t.add(v, t.adj[i][0])
			}
		}
	}
	t.Builder.Line = 0
	grads := make([]Value, len(wrt))
	for i, v := range wrt {
		if p, ok := t.Position(v.Node); ok && t.adj[p] != nil {
			grads[i] = t.adj[p][v.Index]
		}
		if grads[i].IsNil() {
			grads[i] = t.Builder.fullLike(v, 0)
		}
	}
	return grads
}

// mark finds the nodes through which a wrt value is reached.
func (t *Tape) mark(wrt []Value) {
	t.needs = make([]bool, len(t.Order))
	for _, v := range wrt {
		if p, ok := t.Position(v.Node); ok {
			t.needs[p] = true
		}
	}
	for i, n := range t.Order {
		for _, v := range t.Inputs(n) {
			if t.needs[i] {
				break
			}
			if p, ok := t.Position(v.Node); ok && t.needs[p] {
				t.needs[i] = true
			}
		}
	}
}

func (t *Tape) add(v, g Value) {
	p, ok := t.Position(v.Node)
	if !ok || !t.needs[p] || g.IsNil() {
		return
	}
	if t.adj[p] == nil {
		t.adj[p] = make([]Value, v.Node.NumOutputs())
	}
	if old := t.adj[p][v.Index]; !old.IsNil() {
		g = t.Builder.sum(old, g)
	}
	t.adj[p][v.Index] = g
}

// back sends the cotangents of one node to its inputs.
func (t *Tape) back(n *Node, grad []Value) {
	sp := n.spec()
	t.Builder.Line = n.Line()
	var in []Value
	a := n.Args()
	decompose := a.Decomposition()
	switch {
	case decompose != nil && sp.NoGrad == "" && (sp.VJP == nil || a.HasComplex() && !sp.ComplexKernels):
		// The forward nodes recorded again here meet the op's own when the graph is
		// compiled.
		in = t.Builder.pullBack(decompose(t.Builder, a), grad, n.Inputs())
	case sp.VJP != nil:
		in = sp.VJP(t.Builder, a, n.outs(), grad)
	case sp.GradFails:
		panic(NewOpError(sp.Name, ErrArg, n.Inputs(), "no gradient flows through the op: %s", sp.NoGrad))
	default:
		return
	}
	for i, g := range in {
		x := n.Inputs()[i]
		if g.IsNil() || !x.DType().HasGradient() {
			continue
		}
		if g.Shape() != x.Shape() {
			panic(NewOpError(sp.Name, ErrShape, []Value{x, g}, "the gradient of operand %d does not have its shape; please report this", i))
		}
		t.add(x, g)
	}
}

// pullBack records the gradients of outs, weighted by the cotangents, with respect to the inputs. It
// returns an absent Value for an input that has no influence, and for the second of two equal inputs:
// the first gets the gradient of both.
func (b *Builder) pullBack(outs, grad, inputs []Value) []Value {
	order, pos := between(inputs, outs)
	t := Tape{Builder: b, Order: order, Position: func(n *Node) (int, bool) { p, ok := pos[n]; return p, ok }}
	first := 0
	for _, v := range inputs {
		first = max(first, pos[v.Node]+1)
	}
	return t.runUpTo(first, outs, grad, inputs)
}

// between returns the nodes of the inputs and the nodes that compute outs from them, in post-order,
// and the position of each.
func between(inputs, outs []Value) (order []*Node, pos map[*Node]int) {
	pos = map[*Node]int{}
	add := func(n *Node) {
		pos[n] = len(order)
		order = append(order, n)
	}
	for _, v := range inputs {
		if _, ok := pos[v.Node]; !ok {
			add(v.Node)
		}
	}
	var visit func(*Node)
	visit = func(n *Node) {
		if _, ok := pos[n]; ok || n.IsLeaf() {
			return
		}
		for _, v := range n.Inputs() {
			visit(v.Node)
		}
		add(n)
	}
	for _, o := range outs {
		visit(o.Node)
	}
	return order, pos
}

// pullBackOf records the gradients of a composite by its decomposition. It differentiates on leaves
// that stand for the operands, so that a value which is two operands gets two gradients. An operand
// without influence gets an absent Value.
func (b *Builder) pullBackOf(a Args, grad []Value) []Value {
	return b.pullBackFrom(a.In, len(a.In), grad, func(scratch *Builder, in []Value) []Value {
		on := a
		on.In = in
		return on.Spec.Decompose(scratch, on)
	})
}

// pullBackFrom writes the gradients of what record makes of stand-ins for the operands in,
// with respect to the first n of them. The nodes of the results that the gradients do not
// need are not recorded in b.
func (b *Builder) pullBackFrom(in []Value, n int, grad []Value, record func(scratch *Builder, in []Value) []Value) []Value {
	scratch := Builder{Lines: LinesOff}
	made := map[*Node][]Value{}
	standFor := func(vs []Value) []Value {
		out := make([]Value, len(vs))
		for i, v := range vs {
			out[i] = NewLeaf(nil, v.Shape(), v.Node.device).Out(0)
			made[out[i].Node] = []Value{v}
		}
		return out
	}
	operands, cotangents := standFor(in), standFor(grad)
	results := scratch.pullBack(record(&scratch, operands)[:len(grad)], cotangents, operands[:n])
	out := make([]Value, len(results))
	for i, v := range results {
		if !v.IsNil() {
			out[i] = b.copyFrom(v, made)
		}
	}
	return out
}

// copyFrom records the nodes of a value that another Builder recorded. made has the outputs of nodes
// that are recorded already.
func (b *Builder) copyFrom(v Value, made map[*Node][]Value) Value {
	n := v.Node
	if made[n] == nil {
		in := make([]Value, len(n.Inputs()))
		for i, x := range n.Inputs() {
			in[i] = b.copyFrom(x, made)
		}
		made[n] = b.Emit(n.Op(), n.Attr(), in...)
	}
	return made[n][v.Index]
}

// runUpTo is Run for a part of a graph: gradients stop at the first nodes of the order, which are the
// part's inputs.
func (t *Tape) runUpTo(inputs int, outs, grad, wrt []Value) []Value {
	t.adj = make([][]Value, len(t.Order))
	t.needs = make([]bool, len(t.Order))
	for i, n := range t.Order {
		if i < inputs {
			t.needs[i] = true
			continue
		}
		for _, v := range n.Inputs() {
			if p, ok := t.Position(v.Node); ok && t.needs[p] {
				t.needs[i] = true
			}
		}
	}
	for i, o := range outs {
		t.add(o, grad[i])
	}
	for i := len(t.Order) - 1; i >= inputs; i-- {
		if n := t.Order[i]; t.needs[i] && t.adj[i] != nil {
			t.back(n, t.adj[i])
		}
	}
	// An input that stands for several operands has one adjoint: the first
	// operand takes it, or it would be counted twice.
	grads := make([]Value, len(wrt))
	seen := map[Value]bool{}
	for i, v := range wrt {
		if p, ok := t.Position(v.Node); ok && t.adj[p] != nil && !seen[v] {
			grads[i] = t.adj[p][v.Index]
			seen[v] = true
		}
	}
	return grads
}
