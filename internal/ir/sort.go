package ir

// Ops that order elements along a dimension.

func init() {
	register("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "Elements in order along dim and the i64 index each came from, both of self's shape. Equal elements keep their " +
			"order; NaN counts as the largest. ATen's sort.stable.",
		Infer: inferWithIndices,
		VJP:   vjpSort,
	})
	register("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "The k largest (or smallest) elements along dim in order, and the i64 index of each; NaN counts as the largest, " +
			"of equal ones the first is taken. sorted changes nothing: the order is always that of sort. ATen's topk.",
		Decompose: decomposeTopK,
		VJP:       vjpSort,
	})
	register("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", Spec{
		Category: Indexing,
		Doc:      "The i64 indices that sort, stable, gives. ATen's argsort.stable.",
		Decompose: func(b *Builder, a Args) []Value {
			_, i := b.Sort(a.In[0], a.Int("dim"), a.Bool("descending"))
			return []Value{i}
		},
		NoGrad: "the result is an index",
	})
}

// inferWithIndices is for values along dim and the index of each.
func inferWithIndices(a Args) []Shape {
	s := a.In[0].Shape()
	requireArithmetic(a, s.DType())
	a.Dim("dim", s.Rank())
	return []Shape{s, s.WithDType(I64)}
}

func vjpSort(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if grad[0].IsNil() || self.Rank() == 0 {
		return []Value{grad[0]}
	}
	return []Value{b.Scatter(b.fullLike(self, 0), a.Int("dim"), out[1], grad[0])}
}

func decomposeTopK(b *Builder, a Args) []Value {
	x, k := a.In[0], a.Int("k")
	dim := a.Dim("dim", x.Rank())
	if n := AtLeast1D(x.Shape()).Dim(dim); k < 0 || k > n {
		a.Fail(ErrIndex, "k is %d for dimension %d of size %d", k, dim, n)
	}
	values, indices := b.Sort(x, dim, a.Bool("largest"))
	if x.Rank() == 0 {
		return []Value{values, indices}
	}
	return []Value{b.Slice(values, dim, 0, k, 1), b.Slice(indices, dim, 0, k, 1)}
}
