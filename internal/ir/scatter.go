package ir

// Ops that write elements at places given by an index tensor (i64 or i32). An index out of range,
// which a negative one is, is an error at run time.

func init() {
	register("scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with out[index[i][j]][j] = src[i][j] for dim 0 and likewise for others; where an index repeats, the later " +
			"write in index order wins. The part of src that index covers is used. ATen's scatter.src.",
		Infer: inferScatter,
		VJP:   vjpScatter,
	})
	register("scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Indexing,
		Doc: "As scatter, with all values for one place reduced by sum, prod, mean, amax or amin, together with self's own " +
			"value if include_self. Places that no index names keep self's value. ATen's scatter_reduce.two.",
		Infer:   inferScatterReduce,
		VJP:     vjpScatterReduce,
		Complex: complexScatterReduce,
	})
	register("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", Spec{
		Category: Indexing,
		Doc:      "self with src[i][j] added to place [index[i][j]][j] for dim 0 and likewise for others. ATen's scatter_add.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.ScatterReduce(a.In[0], a.Int("dim"), a.In[1], a.In[2], "sum")}
		},
	})
}

func inferScatter(a Args) []Shape {
	self, index, src := a.In[0].Shape(), a.In[1].Shape(), a.In[2].Shape()
	requireIndex(a, a.In[1])
	requireSameDType(a, "src")
	indexFits(a, a.Dim("dim", self.Rank()), self, index)
	index, src = AtLeast1D(index), AtLeast1D(src)
	if src.Rank() != index.Rank() {
		a.Fail(ErrShape, "src has rank %d, index has rank %d", src.Rank(), index.Rank())
	}
	for i := range index.Rank() {
		if index.Numel() != 0 && index.Dim(i) > src.Dim(i) {
			a.Fail(ErrShape, "index has size %d in dimension %d, src only %d", index.Dim(i), i, src.Dim(i))
		}
	}
	return []Shape{self}
}

func inferScatterReduce(a Args) []Shape {
	requireArithmetic(a, a.In[0].DType())
	switch r := a.Str("reduce"); r {
	case "sum", "prod", "mean", "amax", "amin":
	default:
		a.Fail(ErrArg, "reduce is %q, must be sum, prod, mean, amax or amin", r)
	}
	return inferScatter(a)
}

// covered returns the leading part of src that has index's dimensions. index must not be empty.
func (b *Builder) covered(src, index Value) Value {
	s, to := AtLeast1D(src.Shape()), AtLeast1D(index.Shape())
	v := b.Reshape(src, s.Dims()...)
	for d := range to.Rank() {
		if to.Dim(d) != s.Dim(d) {
			v = b.Slice(v, d, 0, to.Dim(d), 1)
		}
	}
	return b.Reshape(v, index.Shape().Dims()...)
}

// uncovered is the transpose of covered: it pads g with zeros to src's dimensions.
func (b *Builder) uncovered(g Value, src Shape) Value {
	s, from := AtLeast1D(src), AtLeast1D(g.Shape())
	g = b.Reshape(g, from.Dims()...)
	for d := range from.Rank() {
		g = b.padDim(g, d, 0, s.Dim(d)-from.Dim(d), 0)
	}
	return b.Reshape(g, src.Dims()...)
}

// clearIndexed returns x with zeros at the places that index names.
func (b *Builder) clearIndexed(x Value, dim int, index Value) Value {
	return b.Scatter(x, dim, index, b.Full(index.Shape().Dims(), 0, x.DType()))
}

func vjpScatter(b *Builder, a Args, out, grad []Value) []Value {
	dim, index, src, g := a.Int("dim"), a.In[1], a.In[2], grad[0]
	if index.Shape().Numel() == 0 {
		return []Value{g, {}, b.fullLike(src, 0)}
	}
	return []Value{b.clearIndexed(g, dim, index), {}, b.uncovered(b.Gather(g, dim, index), src.Shape())}
}

func vjpScatterReduce(b *Builder, a Args, out, grad []Value) []Value {
	self, index, src, g := a.In[0], a.In[1], a.In[2], grad[0]
	if index.Shape().Numel() == 0 {
		return []Value{g, {}, b.fullLike(src, 0)}
	}
	v := scatterVJP{b: b, self: self, index: index, src: b.covered(src, index), out: out[0], grad: g,
		dim: a.Int("dim"), include: a.Bool("include_self")}
	var gSelf, gSrc Value
	switch a.Str("reduce") {
	case "sum":
		gSelf, gSrc = g, b.Gather(g, v.dim, index)
	case "mean":
		gSelf, gSrc = v.mean()
	case "prod":
		gSelf, gSrc = v.prod()
	default:
		gSelf, gSrc = v.extremum()
	}
	if !v.include {
		gSelf = b.clearIndexed(gSelf, v.dim, index)
	}
	return []Value{gSelf, {}, b.uncovered(gSrc, src.Shape())}
}

// scatterVJP holds what the gradients of scatter_reduce share; src is cut to
// the part that index covers.
type scatterVJP struct {
	b                           *Builder
	self, index, src, out, grad Value
	dim                         int
	include                     bool
}

func (v *scatterVJP) gather(x Value) Value { return v.b.Gather(x, v.dim, v.index) }

func (v *scatterVJP) reduce(x, src Value, how string) Value {
	return v.b.ScatterReduce(x, v.dim, v.index, src, how)
}

func (v *scatterVJP) mean() (gSelf, gSrc Value) {
	b, own := v.b, 0
	if v.include {
		own = 1
	}
	n := v.reduce(b.fullLike(v.self, own), b.fullLike(v.src, 1), "sum")
	gSelf = b.Div(v.grad, b.maximum(n, b.Const(1, n.DType())))
	return gSelf, v.gather(gSelf)
}

// prod multiplies, for each element, the others that met in its place. Zeros
// are counted rather than divided by.
func (v *scatterVJP) prod() (gSelf, gSrc Value) {
	b, d := v.b, v.src.DType()
	one := b.fullLike(v.self, 1)
	gSelf = b.Mul(v.grad, v.reduce(one, v.src, "prod"))

	base := one
	if v.include {
		base = v.self
	}
	isZero := b.eq(v.src, b.Const(0, d))
	nonZero := b.Where(isZero, b.Const(1, d), v.src)
	zeros := v.gather(v.reduce(b.fullLike(v.self, 0), b.Cast(isZero, d), "sum"))
	others := b.Sub(zeros, b.Cast(isZero, d)) // zeros among the others
	product := b.Div(v.gather(v.reduce(base, nonZero, "prod")), nonZero)
	product = b.Where(b.eq(others, b.Const(0, d)), product, b.Const(0, d))
	return gSelf, b.Mul(v.gather(v.grad), product)
}

// extremum shares the gradient evenly among the elements equal to the result.
func (v *scatterVJP) extremum() (gSelf, gSrc Value) {
	b, d := v.b, v.self.DType()
	own := b.Cast(b.eq(v.self, v.out), d)
	if !v.include {
		own = b.clearIndexed(own, v.dim, v.index)
	}
	chosen := b.Cast(b.eq(v.src, v.gather(v.out)), d)
	share := b.Div(v.grad, v.reduce(own, chosen, "sum"))
	return b.Mul(own, share), b.Mul(chosen, v.gather(share))
}
