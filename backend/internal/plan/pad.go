package plan

// Pad makes the result of a constant_pad_nd: it has the result filled with the value and the operand
// computed in its part of it, or copied there.
func (c *Call) Pad() {
	fill, out := c.b.Computed(c.Instr.Args[1]), c.Result()
	s := c.Args.In[0].Shape()
	inner, part := c.padPart(DenseValue(s, -1))
	if edgesApart(out, part) {
		for _, e := range c.edges(part) {
			c.b.emitter.CopyTo(c.Instr, e, fill.Expand(e.Shape.Dims()))
		}
	} else {
		c.b.emitter.CopyTo(c.Instr, out, fill.Expand(c.Shapes[0].Dims()))
	}
	if inner.Shape == s {
		c.Place(c.Instr.Args[0], part)
	}
	c.Compute()
	inner, part = c.padPart(c.Operands[0])
	c.WritePart(part, inner)
}

const (
	// edgesFrom is the bytes of a padded result from which on its edges are filled alone: filling all of it would be
	// another pass over memory. One that is smaller is still in a cache when its middle is written.
	edgesFrom = 512 << 10
	// edgeRow is the least bytes of its rows then: in short ones most cache lines have a part of the edges.
	edgeRow = 512
)

// edgesApart reports whether the edges of a padded result are filled alone, without the part in the middle.
func edgesApart(out, part Value) bool {
	return out.Shape.Bytes() >= edgesFrom && out.Shape.Dim(-1)*out.Size() >= edgeRow && 4*part.Shape.Numel() >= 3*out.Shape.Numel()
}

// edges returns what of a padded result is not its part in the middle: along each dimension what is before and behind
// that part, of what is in the middle of the dimensions before.
func (c *Call) edges(part Value) (list []Value) {
	out, pad := c.Results[0], c.Ints("pad")
	rest := out.View
	for d := range rest.Rank {
		n, kept, before := rest.Dims[d], part.View.Dims[d], 0
		if i := 2 * (rest.Rank - 1 - d); i < len(pad) {
			before = max(pad[i], 0)
		}
		for _, e := range [][2]int{{0, before}, {before + kept, n}} {
			if e[0] < e[1] {
				v := rest.Slice(d, e[0], e[1]-e[0], 1)
				list = append(list, out.As(out.Shape.WithDims(v.Dims[:v.Rank]...), v))
			}
		}
		rest = rest.Slice(d, before, kept, 1)
	}
	return list
}

// WritePart has a value copied into its part of a result unless it is there.
func (c *Call) WritePart(part, v Value) {
	if v.Buf != part.Buf && v.Shape.Numel() > 0 {
		c.b.emitter.CopyTo(c.Instr, part, v)
	}
}

// padPart crops the operand of a pad where the padding is negative and returns
// where the rest belongs.
func (c *Call) padPart(v Value) (inner, part Value) {
	inner, part = v, c.Results[0].As(v.Shape, c.Results[0].View)
	dims := c.Shapes[0].Dims()
	pad := c.Ints("pad")
	for i := 0; i < len(pad); i += 2 {
		d := len(dims) - 1 - i/2
		before, after := pad[i], pad[i+1]
		lo, hi := max(-before, 0), inner.View.Dims[d]-max(-after, 0)
		hi = max(hi, lo)
		inner.View.Offset += lo * inner.View.Strides[d]
		inner.View.Dims[d] = hi - lo
		part.View.Offset += max(before, 0) * part.View.Strides[d]
	}
	kept := make([]int, len(dims))
	for d := range kept {
		kept[d] = inner.View.Dims[d]
		part.View.Dims[d] = kept[d]
	}
	inner.Shape = inner.Shape.WithDims(kept...)
	part.Shape = inner.Shape
	return inner, part
}
