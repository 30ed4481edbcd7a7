package plan

// Pad makes the result of a constant_pad_nd: it has the result filled with the value and the operand
// computed in its part of it, or copied there.
func (c *Call) Pad() {
	fill := c.b.Computed(c.Instr.Args[1])
	c.b.emitter.CopyTo(c.Instr, c.Result(), fill.Expand(c.Shapes[0].Dims()))
	s := c.Args.In[0].Shape()
	if inner, part := c.padPart(DenseValue(s, -1)); inner.Shape == s {
		c.Place(c.Instr.Args[0], part)
	}
	c.Compute()
	inner, part := c.padPart(c.Operands[0])
	c.WritePart(part, inner)
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
