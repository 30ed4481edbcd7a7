package ir

// padDim records a padding of one dimension with a constant; negative sizes crop.
func (b *Builder) padDim(x Value, dim, before, after int, value float64) Value {
	if before == 0 && after == 0 {
		return x
	}
	i := 2 * (x.Rank() - 1 - dim)
	pad := make([]int, i+2)
	pad[i], pad[i+1] = before, after
	return b.PadConst(x, pad, b.Const(value, x.DType()))
}

func inversePermutation(perm []int) []int {
	inv := make([]int, len(perm))
	for i, p := range perm {
		inv[p] = i
	}
	return inv
}

func vjpPermute(b *Builder, a Args, out, grad []Value) []Value {
	return []Value{b.Permute(grad[0], inversePermutation(PermuteDims(a))...)}
}

// vjpSlice puts zeros between the elements for a step (in a view of rank 3, so
// that any rank will do) and then around them.
func vjpSlice(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0].Shape()
	dim, start, count, step := SliceBounds(a)
	g := grad[0]
	switch {
	case count == 0:
		return []Value{b.FullLike(a.In[0], 0)}
	case step < 0:
		g, start, step = b.Flip(g, dim), start+(count-1)*step, -step
	}
	n := self.Dim(dim)
	if count == 1 || step == 1 {
		return []Value{b.padDim(g, dim, start, n-start-count, 0)}
	}
	outer, inner := 1, 1
	for i := range self.Rank() {
		if i < dim {
			outer *= self.Dim(i)
		} else if i > dim {
			inner *= self.Dim(i)
		}
	}
	g = b.padDim(b.Reshape(g, outer*count, 1, inner), 1, 0, step-1, 0)
	g = b.padDim(b.Reshape(g, outer, count*step, inner), 1, start, n-start-count*step, 0)
	return []Value{b.Reshape(g, self.Dims()...)}
}

func vjpCat(b *Builder, a Args, out, grad []Value) []Value {
	dim := a.Dim("dim", out[0].Rank())
	gs := make([]Value, len(a.In))
	at := 0
	for i, v := range a.In {
		n := v.Dim(dim)
		gs[i] = b.Slice(grad[0], dim, at, at+n, 1)
		at += n
	}
	return gs
}

func vjpConstantPad(b *Builder, a Args, out, grad []Value) []Value {
	pad := a.Ints("pad")
	back := make([]int, len(pad))
	for i, p := range pad {
		back[i] = -p
	}
	g := grad[0]
	gs := []Value{b.PadConst(g, back, b.Const(0, g.DType())), {}}
	if v := a.In[1]; !v.Wrapped() && v.Node.Op() != OpFull {
		inside := b.PadConst(b.Full(a.In[0].Shape().Dims(), true, Bool), pad, b.Const(false, Bool))
		gs[1] = b.Sum(b.Where(inside, b.Const(0, g.DType()), g), nil, false)
	}
	return gs
}
