package ir

// normGroups is what group_norm and its gradients compute with. A number of each group and one of each channel are fixed along
// the elements of a channel, so that what is normalised need not be kept beside the result: it is computed again of the input.
type normGroups struct {
	in         Value // [N, groups, channels of a group, elements of a channel]
	x          Value // the same in the dtype computed in
	mean, rstd Value // [N, groups, 1, 1]
	w          Value // [1, groups, channels of a group, 1], or absent
}

// groupsOf returns the groups of an input [N, C, …] without statistics; weight is [1, C, 1, …] or absent.
func groupsOf(b *Builder, x, weight Value, groups int) normGroups {
	dims := []int{x.Dim(0), groups, x.Dim(1) / groups, 1}
	for i := 2; i < x.Rank(); i++ {
		dims[3] *= x.Dim(i)
	}
	g := normGroups{in: b.Reshape(x, dims...)}
	g.x = b.widen(g.in)
	if !weight.IsNil() {
		g.w = g.perChannel(b, weight)
	}
	return g
}

// perChannel returns one number for each channel as broadcasts to x.
func (g *normGroups) perChannel(b *Builder, v Value) Value {
	return b.Reshape(b.Cast(v, g.x.DType()), 1, g.x.Dim(1), g.x.Dim(2), 1)
}

// perGroup returns one number for each group as broadcasts to x.
func (g *normGroups) perGroup(b *Builder, v Value) Value {
	return b.Reshape(b.Cast(v, g.x.DType()), g.x.Dim(0), g.x.Dim(1), 1, 1)
}

// standardize sets the statistics, and returns the normalised groups as rows.
func (g *normGroups) standardize(b *Builder, eps float64) (rows Value) {
	x := b.widen(b.Reshape(g.in, g.x.Dim(0), g.x.Dim(1), g.x.Dim(2)*g.x.Dim(3)))
	centred, rstd := b.standardize(x, []int{2}, eps)
	g.mean, g.rstd = g.perGroup(b, b.Mean(x, []int{2}, true)), g.perGroup(b, rstd)
	return b.Mul(centred, rstd)
}

// forward sets the statistics and returns what group_norm does, in the order of x.
func (g *normGroups) forward(b *Builder, bias Value, eps float64) Value {
	rows := g.standardize(b, eps)
	if !bias.IsNil() {
		bias = g.perChannel(b, bias)
	}
	if g.w.IsNil() && bias.IsNil() || g.x.Dim(2) == 1 || g.x.Dim(3) == 1 {
		along := func(v Value) Value {
			if v.IsNil() {
				return v
			}
			return b.Reshape(v, 1, g.x.Dim(1), g.x.Dim(2))
		}
		return b.affine(rows, along(g.w), along(bias))
	}
	y := b.Mul(b.affine(g.rstd, g.w, Value{}), b.Sub(g.x, g.mean))
	return b.affine(y, Value{}, bias)
}

// gradients returns those by x, by the weight and by the bias, the latter two of the dimensions of w, for the cotangent of the
// result. The sums along each channel are all that the others need of big tensors: with c = x - mean and the means over a
// group, the gradient by x is rstd·w·grad - rstd·mean(w·grad) - c·rstd³·mean(w·grad·c). Operands that are not large come first, so
// that they are known when the elements are gone through.
func (g *normGroups) gradients(b *Builder, grad Value) (x, weight, bias Value) {
	grad = b.Cast(b.Reshape(grad, g.x.Shape().Dims()...), g.x.DType())
	// The difference is written in other ways than for the result, and at the end: one node would be kept for all of them.
	centred := b.Add(b.Neg(g.mean), g.x)
	sums, products := b.Sum(grad, []int{3}, true), b.Sum(b.Mul(grad, centred), []int{3}, true)
	both := b.Sum(b.affine(b.callNamed("cat", []any{[]Value{sums, products}, 3}), g.w, Value{}), []int{2}, true)
	both = b.Div(both, b.Const(float64(g.x.Dim(2)*g.x.Dim(3)), g.x.DType()))
	shift := b.Mul(g.rstd, b.Slice(both, 3, 0, 1, 1))
	slope := b.Mul(b.Mul(b.Mul(g.rstd, g.rstd), g.rstd), b.Slice(both, 3, 1, 2, 1))
	x = b.Add(b.Sub(b.Mul(slope, b.Sub(g.mean, g.x)), shift), b.Mul(b.affine(g.rstd, g.w, Value{}), grad))
	return x, b.Sum(b.Mul(products, g.rstd), []int{0}, true), b.Sum(sums, []int{0}, true)
}

func groupNorm(b *Builder, a Args) []Value {
	g, bias := groupNormOf(b, a)
	y := g.forward(b, bias, a.float("eps"))
	return []Value{b.Reshape(b.Cast(y, a.In[0].DType()), a.In[0].Shape().Dims()...)}
}

// groupNormOf checks the operands of group_norm.
func groupNormOf(b *Builder, a Args) (g normGroups, bias Value) {
	requireChannels(a)
	x, n := a.In[0], a.Int("num_groups")
	if n < 1 || x.Dim(1)%n != 0 {
		a.Fail(ErrShape, "%d channels do not make %d groups", x.Dim(1), n)
	}
	weight, bias := perChannel(b, a, "weight", x), perChannel(b, a, "bias", x)
	return groupsOf(b, x, weight, n), bias
}

func vjpGroupNorm(b *Builder, a Args, out, grad []Value) []Value {
	g, _ := groupNormOf(b, a)
	g.standardize(b, a.float("eps"))
	x, weight, bias := g.gradients(b, grad[0])
	gs := []Value{b.Reshape(b.Cast(x, a.In[0].DType()), a.In[0].Shape().Dims()...)}
	if w := a.Tensor("weight"); !w.IsNil() {
		gs = append(gs, b.Cast(b.Reshape(weight, w.Dim(0)), w.DType()))
	}
	if v := a.Tensor("bias"); !v.IsNil() {
		gs = append(gs, b.Cast(b.Reshape(bias, v.Dim(0)), v.DType()))
	}
	return gs
}
