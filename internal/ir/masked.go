package ir

// Elements that a mask chooses, in the order in which they lie.

func init() {
	register("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with the elements of source, one after another, where mask (bool) is true; self and mask broadcast. Too few " +
			"elements are an error at run time. ATen's masked_scatter.",
		Decompose: decomposeMaskedScatter,
	})
	register("masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes) -> Tensor", Spec{
		Category: Indexing, Unlisted: true,
		Doc: "The gradient of masked_scatter by its source of the given sizes: the elements of grad_output where mask is true, " +
			"then zeros. ATen's masked_scatter_backward.",
		Decompose: func(b *Builder, a Args) []Value {
			size := a.Ints("sizes")
			mask := b.flatten(b.ExpandAs(a.In[1], a.In[0]))
			n := a.In[0].Shape().WithDims(size...).Numel()
			got := b.front(mask, b.flatten(a.In[0]), n, b.Const(0, a.In[0].DType()))
			return []Value{b.Call1(opReshape, []any{got, size})}
		},
		NoGrad: "it is a gradient, of which ATen takes none",
	})
	register("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", Spec{
		Category: Indexing,
		Doc: "The places of the first size elements of self that are not zero, i64[size, rank] in row-major order, with " +
			"fill_value in the rows that are left. ATen's nonzero_static.",
		Decompose: decomposeNonzeroStatic,
		NoGrad:    "the result is an index",
	})
	register("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with slice i of source taken into slice index[i] along dim by prod, mean, amax or amin, together with self's " +
			"own values if include_self. ATen's index_reduce.",
		Decompose: decomposeIndexReduce,
	})
}

// front records a vector of n elements: those of x where mask holds, in order, and fill behind
// them. x and mask are vectors.
func (b *Builder) front(mask, x Value, n int, fill Value) Value {
	rest := b.Const(n, I64)
	at := b.Sub(b.Cumsum(b.Cast(mask, I64), 0), b.Const(1, I64))
	at = b.minimum(b.Where(mask, at, rest), rest)
	return b.Slice(b.Scatter(b.Expand(fill, n+1), 0, at, x), 0, 0, n, 1)
}

func decomposeMaskedScatter(b *Builder, a Args) []Value {
	self, mask := a.In[0], a.In[1]
	requireSameDType(a, "source")
	if mask.DType() != Bool {
		a.Fail(ErrDType, "masked_scatter_ only supports boolean masks, but got mask with dtype %v", mask.DType())
	}
	s, ok := BroadcastDims(self.Shape(), mask.Shape())
	if !ok {
		a.Fail(ErrShape, "the mask of shape %v does not broadcast with self", mask.Shape().Dims())
	}
	dims := s.Dims()
	mask = b.flatten(b.Call1(opExpand, []any{mask, dims}))
	self = b.flatten(b.Call1(opExpand, []any{self, dims}))
	// Element 0 is for places that the mask leaves, so that a source without elements has one.
	source := b.Cat([]Value{b.Full([]int{1}, 0, self.DType()), b.flatten(a.In[2])}, 0)
	at := b.Where(mask, b.Cumsum(b.Cast(mask, I64), 0), b.Const(0, I64))
	out := b.Where(mask, b.IndexSelect(source, 0, at), self)
	return []Value{b.Call1(opReshape, []any{out, dims})}
}

func decomposeNonzeroStatic(b *Builder, a Args) []Value {
	x, size, fill := a.In[0], a.Int("size"), a.Int("fill_value")
	if size < 0 {
		a.Fail(ErrArg, "nonzero_static: 'size' must be an non-negative integer, not %d", size)
	}
	dims := x.Shape().Dims()
	if len(dims) == 0 || x.Shape().Numel() == 0 {
		return []Value{b.Full([]int{size, len(dims)}, fill, I64)}
	}
	mask := b.flatten(x)
	if mask.DType() != Bool {
		mask = b.ne(mask, b.Const(0, mask.DType()))
	}
	rest := b.front(mask, b.Iota(mask.Dim(0), I64), size, b.Const(-1, I64))
	none := b.lt(rest, b.Const(0, I64))
	cols := make([]Value, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		n := b.Const(dims[d], I64)
		cols[d] = b.Unsqueeze(b.Where(none, b.Const(fill, I64), b.remainder(rest, n)), 1)
		rest = b.truncDivide(rest, n)
	}
	return []Value{b.Cat(cols, 1)}
}

// decomposeIndexReduce scatters whole slices.
func decomposeIndexReduce(b *Builder, a Args) []Value {
	self, index, source := a.In[0], a.In[1], a.In[2]
	inferIndexAdd(a)
	reduce := a.Str("reduce")
	switch reduce {
	case "prod", "mean", "amax", "amin":
	default:
		a.Fail(ErrArg, "reduce argument must be either prod, mean, amax or amin, got %s.", reduce)
	}
	if source.Rank() != self.Rank() {
		source = b.Call1(opReshape, []any{source, self.Shape().Dims()})
	}
	dim := a.Dim("dim", self.Rank())
	dims := make([]int, source.Rank())
	for d := range dims {
		dims[d] = 1
	}
	if len(dims) > 0 {
		dims[dim] = index.Shape().Numel()
	}
	index = b.ExpandAs(b.Call1(opReshape, []any{index, dims}), source)
	return b.Call(opScatterReduce, []any{self, dim, index, source, reduce}, A("include_self", a.Bool("include_self")))
}
