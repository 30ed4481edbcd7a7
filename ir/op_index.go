package ir

// Ops that read or write at places given by index tensors (i64 or i32). An
// index out of range, which negative ones are here, is an error at run time.

func init() {
	OpGather = register("gather(Tensor self, int dim, Tensor index) -> Tensor", Spec{
		Category: Indexing,
		Doc: "out[i][j] = self[index[i][j]][j] for dim 0 and likewise for others; of index's shape, which must not exceed " +
			"self's but along dim. Rank 0 counts as [1]. Any dtype, index i64 or i32. ATen's gather.",
		Infer: inferGather,
		VJP:   vjpGather,
	})
	OpScatter = register("scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with out[index[i][j]][j] = src[i][j] for dim 0 and likewise for others; where an index repeats, the later " +
			"write in index order wins. The part of src that index covers is used. ATen's scatter.src.",
		Infer: inferScatter,
		VJP:   vjpScatter,
	})
	OpScatterReduce = register("scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", Spec{
		Category: Indexing,
		Doc: "As scatter, with all values for one place reduced by sum, prod, mean, amax or amin, together with self's own " +
			"value if include_self. Places that no index names keep self's value. ATen's scatter_reduce.two.",
		Infer: inferScatterReduce,
		VJP:   vjpScatterReduce,
	})
	OpIndexSelect = register("index_select(Tensor self, int dim, Tensor index) -> Tensor", Spec{
		Category: Indexing,
		Doc: "The slices of self along dim that index, of rank 1 or 0, names: dimension dim gets the length of index. " +
			"Any dtype, index i64 or i32. ATen's index_select.",
		Infer: inferIndexSelect,
		VJP:   vjpIndexSelect,
	})
	OpIndexAdd = register("index_add(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", Spec{
		Category: Indexing,
		Doc: "self with slice i of source added to slice index[i] along dim, in order; source has self's dtype and shape but " +
			"along dim, where it has the length of index. ATen's index_add.",
		Infer: inferIndexAdd,
		VJP:   vjpIndexAdd,
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
