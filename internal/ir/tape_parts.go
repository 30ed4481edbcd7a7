package ir

// Gradients of slices are zeros around what they slice. Where such parts lie one behind the other, as those of the
// pieces of a tensor that is cut up, their sum is the parts one behind the other, with zeros around all of them.

// part is a value with zeros before and behind it along one dimension.
type part struct {
	of                 Value
	dim, before, after int
}

// partOf returns what a value is with zeros around it; not ok if it is no such value.
func partOf(v Value) (p part, ok bool) {
	n := v.Node
	if n.IsLeaf() || n.Op() != opConstantPadNd {
		return p, false
	}
	a := n.Args()
	if fill := a.In[1].Node; fill.IsLeaf() || fill.Op() != opFull || fill.Args().Get("fill_value") != 0.0 {
		return p, false
	}
	p.of = a.In[0]
	pad := a.Ints("pad")
	for i := 0; i+1 < len(pad); i += 2 {
		if pad[i] == 0 && pad[i+1] == 0 {
			continue
		}
		if ok || pad[i] < 0 || pad[i+1] < 0 {
			return p, false
		}
		p.dim, p.before, p.after, ok = v.Rank()-1-i/2, pad[i], pad[i+1], true
	}
	return p, ok
}

// sum adds two gradients of a value. A part may also go on where one of those ends that were added before: an element
// is in one of them only, so the order of the additions is of no account.
func (b *Builder) sum(x, y Value) Value {
	if joined := b.join(x, y); !joined.IsNil() {
		return joined
	}
	if u, v, ok := addends(x); ok {
		if joined := b.join(u, y); !joined.IsNil() {
			return b.sum(v, joined)
		}
		if joined := b.join(v, y); !joined.IsNil() {
			return b.sum(u, joined)
		}
	}
	return b.Add(x, y)
}

// join returns the sum of parts that lie one behind the other; absent for other values.
func (b *Builder) join(x, y Value) (joined Value) {
	p, ok := partOf(x)
	q, and := partOf(y)
	if !ok || !and || p.dim != q.dim || p.of.DType() != q.of.DType() {
		return joined
	}
	if q.before < p.before {
		p, q = q, p
	}
	if p.before+p.of.Dim(p.dim) != q.before {
		return joined
	}
	return b.padDim(b.Cat([]Value{p.of, q.of}, p.dim), p.dim, p.before, q.after, 0)
}
