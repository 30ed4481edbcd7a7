package ir

// Counts of elements.

func init() {
	register("histc(Tensor self, int bins=100, float min=0, float max=0) -> Tensor", Spec{
		Category: Reduction,
		Doc: "How many elements of a floating tensor are in each of equal bins from min to max, both included, of self's dtype. " +
			"Where min is max the bins go from the least element to the largest. ATen's histc.",
		Decompose: decomposeHistc,
		NoGrad:    "counts do not change with the elements",
	})
	register("histogram(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)", Spec{
		Category: Reduction,
		Doc: "How many elements of self, or the sum of whose weights, are between each edge of the sorted vector bins and the next, the last edge " +
			"included; with density the part of all in a bin over its width. Of self's dtype, f32 or f64, with the edges behind it. ATen's histogram.bins_tensor.",
		Decompose: decomposeHistogram,
		NoGrad:    "counts do not change with the elements",
	})
	register("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", Spec{
		Category: Reduction,
		Doc: "How often each of the numbers below minlength is in the integer vector self, or the sum of the weights of its " +
			"places; i64, with weights f32 or f64. ATen's bincount, whose result is longer if numbers are larger: shapes do not " +
			"depend on data, so that is an error at run time.",
		Decompose: decomposeBincount,
		NoGrad:    "ATen has no gradient of it",
	})
}

func decomposeHistc(b *Builder, a Args) []Value {
	bins, lo, hi := a.Int("bins"), a.float("min"), a.float("max")
	d := a.In[0].DType()
	switch {
	case !d.IsFloat():
		a.Fail(ErrDType, "not defined for %v operands", d)
	case bins < 1 || bins > 1<<30:
		a.Fail(ErrArg, "bins must be > 0, but got %d", bins)
	case lo > hi:
		a.Fail(ErrArg, "max must be larger than min, but got %v and %v", hi, lo)
	}
	x := b.flatten(a.In[0])
	if d != F32 { // f32 is counted in its own arithmetic, which decides at the edges
		x = b.Cast(x, F64)
	}
	from, to, one := b.Const(lo, x.DType()), b.Const(hi, x.DType()), b.Const(1, x.DType())
	if lo == hi && x.Dim(0) > 0 {
		from, to = b.amin(x, []int{0}, false), b.Amax(x, []int{0}, false)
	}
	none := b.eq(from, to)
	from, to = b.Where(none, b.Sub(from, one), from), b.Where(none, b.Add(to, one), to)
	inside := b.logicalAnd(b.ge(x, from), b.le(x, to))
	at := b.Mul(b.Div(b.Sub(x, from), b.Sub(to, from)), b.Const(float64(bins), x.DType()))
	at = b.Cast(b.Where(inside, b.trunc(at), b.Const(0, x.DType())), I64)
	at = b.minimum(at, b.Const(bins-1, I64))
	counts := b.ScatterReduce(b.Full([]int{bins}, 0, F64), 0, at, b.Cast(inside, F64), "sum")
	return []Value{b.Cast(counts, d)}
}

func decomposeHistogram(b *Builder, a Args) []Value {
	x, edges, weight := a.In[0], a.Tensor("bins"), a.Tensor("weight")
	d := x.DType()
	switch {
	case d != F32 && d != F64:
		a.Fail(ErrDType, "not defined for %v operands", d)
	case edges.DType() != d || !weight.IsNil() && weight.DType() != d:
		a.Fail(ErrDType, "bins and weight must be %v, like self", d)
	case edges.Rank() != 1 || edges.Dim(0) < 2:
		a.Fail(ErrShape, "bins must be a vector of two edges or more, got %v", edges.Shape())
	case !weight.IsNil() && !weight.Shape().SameDims(x.Shape()):
		a.Fail(ErrShape, "weight must have the dimensions of self %v, got %v", x.Shape(), weight.Shape())
	}
	bins := edges.Dim(0) - 1
	x = b.flatten(x)
	first, last := b.Slice(edges, 0, 0, 1, 1), b.Slice(edges, 0, bins, bins+1, 1)
	inside := b.logicalAnd(b.ge(x, first), b.le(x, last))
	at := b.Sub(b.search(edges, x, true, false), b.Const(1, I64))
	at = b.minimum(b.Where(inside, at, b.Const(0, I64)), b.Const(bins-1, I64))
	amount := b.Cast(inside, d)
	if !weight.IsNil() {
		amount = b.Where(inside, b.flatten(weight), b.Const(0, d))
	}
	hist := b.IndexAdd(b.Full([]int{bins}, 0, d), 0, at, amount)
	if a.Bool("density") {
		widths := b.Sub(b.Slice(edges, 0, 1, bins+1, 1), b.Slice(edges, 0, 0, bins, 1))
		hist = b.Div(b.Div(hist, b.Sum(hist, nil, false)), widths)
	}
	return []Value{hist, edges}
}

func decomposeBincount(b *Builder, a Args) []Value {
	x, weights, n := a.In[0], a.Tensor("weights"), a.Int("minlength")
	switch d := x.DType(); {
	case !d.IsIntegral() || d == Bool || x.Rank() != 1:
		a.Fail(ErrShape, "bincount only supports 1-d non-negative integral inputs, not %v", x.Shape())
	case n < 0:
		a.Fail(ErrArg, "minlength should be >= 0, not %d", n)
	case !weights.IsNil() && !weights.Shape().SameDims(x.Shape()):
		a.Fail(ErrShape, "weights should be 1-d and have the same length as input, not %v", weights.Shape())
	}
	if weights.IsNil() {
		ones := b.Full([]int{x.Dim(0)}, 1, I64)
		return []Value{b.IndexAdd(b.Full([]int{n}, 0, I64), 0, b.Cast(x, I64), ones)}
	}
	d := F64
	if weights.DType() == F32 {
		d = F32
	}
	return []Value{b.IndexAdd(b.Full([]int{n}, 0, d), 0, b.Cast(x, I64), b.Cast(weights, d))}
}
