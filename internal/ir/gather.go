package ir

// Ops that read or write elements and slices at places given by index tensors (i64 or i32). An index
// out of range is an error at run time; a negative one is, too, unless its row says that it counts
// from the end.

func init() {
	register("gather(Tensor self, int dim, Tensor index) -> Tensor", Spec{
		Category: Indexing,
		Doc: "out[i][j] = self[index[i][j]][j] for dim 0 and likewise for others; of index's shape, which must not exceed " +
			"self's but along dim. Rank 0 counts as [1]. Any dtype, index i64 or i32. ATen's gather.",
		Infer: inferGather,
		VJP:   vjpGather,
	})
	register("index_select(Tensor self, int dim, Tensor index) -> Tensor", Spec{
		Category: Indexing,
		Doc: "The slices of self along dim that index, of rank 1 or 0, names: dimension dim gets the length of index. " +
			"Any dtype, index i64 or i32. ATen's index_select.",
		Infer: inferIndexSelect,
		VJP:   vjpIndexSelect,
	})
	register("index_add(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Indexing,
		Doc: "self with slice i of source added to slice index[i] along dim, in order; source has self's dtype and shape but " +
			"along dim, where it has the length of index. ATen's index_add.",
		Infer:   inferIndexAdd,
		VJP:     vjpIndexAdd,
		Complex: complexIndexAdd,
	})
	register("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with slice i of source in the place of slice index[i] along dim; where an index repeats, the later one " +
			"wins. ATen's index_copy.",
		Decompose: decomposeIndexCopy,
	})
	register("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", Spec{
		Category: Indexing,
		Doc: "gather with the dimensions other than dim broadcast against each other, and negative indices counting from the " +
			"end; without dim both are flattened, and no index may be negative. ATen's take_along_dim.",
		Decompose: decomposeTakeAlongDim,
	})
	register("take(Tensor self, Tensor index) -> Tensor", Spec{
		Category: Indexing,
		Doc:      "The elements of the flattened self at index, whose shape the result has; negative ones count from the end. ATen's take.",
		Decompose: func(b *Builder, a Args) []Value {
			requireIndex(a, a.In[1])
			n := a.In[0].Shape().Numel()
			x := b.callNamed("_take_elements", []any{b.Reshape(a.In[0], n), b.Reshape(a.In[1], a.In[1].Shape().Numel())})
			return []Value{b.Reshape(x, a.In[1].Shape().Dims()...)}
		},
	})
	register("_take_elements(Tensor self, Tensor index) -> Tensor", Spec{
		Doc:      "The elements of the vector self at those of the vector index, negative ones counting from the end.",
		Category: Indexing, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			requireIndexVector(a, a.In[1])
			return []Value{b.IndexSelect(a.In[0], 0, b.wrapIndex(a.In[1], a.In[0].Shape().Numel()))}
		},
	})
}

// AtLeast1D returns s, or shape [1] for a scalar: the indexing ops take a
// tensor of rank 0 for one of rank 1.
func AtLeast1D(s Shape) Shape {
	if s.Rank() == 0 {
		return s.WithDims(1)
	}
	return s
}

func requireIndex(a Args, v Value) {
	if d := v.DType(); d != I64 && d != I32 {
		a.Fail(ErrDType, "index is %v, must be i64 or i32", d)
	}
}

func requireSameDType(a Args, name string) {
	if s, o := a.In[0].DType(), a.Tensor(name).DType(); s != o {
		a.Fail(ErrDType, "self is %v and %s is %v, they must be equal", s, name, o)
	}
}

// indexFits fails unless index has self's rank and, but along dim, at most its
// sizes. An index without elements names no place and needs only the rank.
func indexFits(a Args, dim int, self, index Shape) {
	self, index = AtLeast1D(self), AtLeast1D(index)
	if self.Rank() != index.Rank() {
		a.Fail(ErrShape, "index has rank %d, self has rank %d", index.Rank(), self.Rank())
	}
	if index.Numel() == 0 {
		return
	}
	for i := range index.Rank() {
		if i != dim && index.Dim(i) > self.Dim(i) {
			a.Fail(ErrShape, "index has size %d in dimension %d, self only %d", index.Dim(i), i, self.Dim(i))
		}
	}
}

func inferGather(a Args) []Shape {
	self, index := a.In[0].Shape(), a.In[1].Shape()
	requireIndex(a, a.In[1])
	indexFits(a, a.Dim("dim", self.Rank()), self, index)
	return []Shape{index.WithDType(self.DType())}
}

func vjpGather(b *Builder, a Args, out, grad []Value) []Value {
	return []Value{b.ScatterReduce(b.fullLike(a.In[0], 0), a.Int("dim"), a.In[1], grad[0], "sum"), {}}
}

// requireIndexVector fails unless index is a vector or a scalar of integers; it
// returns its length.
func requireIndexVector(a Args, index Value) int {
	requireIndex(a, index)
	if index.Rank() > 1 {
		a.Fail(ErrShape, "index has rank %d, must be 1 or 0", index.Rank())
	}
	return index.Shape().Numel()
}

func inferIndexSelect(a Args) []Shape {
	self := a.In[0].Shape()
	n := requireIndexVector(a, a.In[1])
	dim := a.Dim("dim", self.Rank())
	if self.Rank() == 0 {
		if n != 1 {
			a.Fail(ErrShape, "an index into a scalar has one element, not %d", n)
		}
		return []Shape{self}
	}
	dims := self.Dims()
	dims[dim] = n
	return inferDims(a, self.DType(), dims)
}

func vjpIndexSelect(b *Builder, a Args, out, grad []Value) []Value {
	return []Value{b.IndexAdd(b.fullLike(a.In[0], 0), a.Int("dim"), a.In[1], grad[0]), {}}
}

func inferIndexAdd(a Args) []Shape {
	self, source := a.In[0].Shape(), a.In[2].Shape()
	requireArithmetic(a, self.DType())
	requireSameDType(a, "source")
	n := requireIndexVector(a, a.In[1])
	dim := a.Dim("dim", self.Rank())
	s, o := AtLeast1D(self), AtLeast1D(source)
	if s.Rank() != o.Rank() {
		a.Fail(ErrShape, "source has rank %d, self has rank %d", source.Rank(), self.Rank())
	}
	for i := range s.Rank() {
		switch {
		case i == dim && o.Dim(i) != n:
			a.Fail(ErrShape, "source has size %d in dimension %d, index has %d elements", o.Dim(i), i, n)
		case i != dim && o.Dim(i) != s.Dim(i):
			a.Fail(ErrShape, "source has size %d in dimension %d, self has %d", o.Dim(i), i, s.Dim(i))
		}
	}
	return []Shape{self}
}

func vjpIndexAdd(b *Builder, a Args, out, grad []Value) []Value {
	g := b.IndexSelect(grad[0], a.Int("dim"), a.In[1])
	return []Value{grad[0], {}, b.Reshape(g, a.In[2].Shape().Dims()...)}
}

// wrapIndex records index as i64, with n added where it is negative.
func (b *Builder) wrapIndex(index Value, n int) Value {
	index = b.Cast(index, I64)
	return b.Where(b.lt(index, b.Const(0, I64)), b.Add(index, b.Const(n, I64)), index)
}

// indexCopy scatters whole slices: the index vector is stretched over them.
func (b *Builder) indexCopy(x Value, dim int, index, source Value) Value {
	dims := make([]int, source.Rank())
	for i := range dims {
		dims[i] = 1
	}
	if source.Rank() > 0 {
		dims[dim] = index.Shape().Numel()
	}
	return b.Scatter(x, dim, b.ExpandAs(b.Reshape(index, dims...), source), source)
}

func decomposeIndexCopy(b *Builder, a Args) []Value {
	inferIndexAdd(a)
	self, source := a.In[0], a.In[2]
	if source.Rank() != self.Rank() {
		source = b.Reshape(source, self.Shape().Dims()...)
	}
	return []Value{b.indexCopy(self, a.Dim("dim", self.Rank()), a.In[1], source)}
}

func decomposeTakeAlongDim(b *Builder, a Args) []Value {
	x, index := a.In[0], a.In[1]
	requireIndex(a, index)
	if _, ok := a.OptInt("dim"); !ok {
		n := x.Shape().Numel()
		return []Value{b.Gather(b.Reshape(x, n), 0, b.Cast(b.Reshape(index, index.Shape().Numel()), I64))}
	}
	if x.Rank() != index.Rank() {
		a.Fail(ErrShape, "indices have rank %d, self has rank %d", index.Rank(), x.Rank())
	}
	dim := a.Dim("dim", x.Rank())
	xd, id := x.Shape().Dims(), index.Shape().Dims()
	for i := range xd {
		switch {
		case i == dim || xd[i] == id[i]:
		case xd[i] == 1:
			xd[i] = id[i]
		case id[i] == 1:
			id[i] = xd[i]
		default:
			a.Fail(ErrShape, "dimension %d of indices has size %d, of self %d", i, id[i], xd[i])
		}
	}
	index = b.wrapIndex(index, AtLeast1D(x.Shape()).Dim(dim))
	return []Value{b.Gather(b.Expand(x, xd...), dim, b.Expand(index, id...))}
}
