package ir

// Extrema with the place of each, and differences of neighbours.

func init() {
	extremum := func(name, what string, arg *Op) {
		register(name+"(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", Spec{
			Category: Reduction,
			Doc: "The " + what + " element along dim and its i64 index, the first of equal ones; NaN wins. dim goes, or has size 1 with " +
				"keepdim. The gradient is that of the chosen element. ATen's " + name[:3] + ".dim.",
			Decompose: func(b *Builder, a Args) []Value {
				x, keep := a.In[0], a.Bool("keepdim")
				return b.alongDim(x, a.Dim("dim", x.Rank()), func(x Value, dim int) []Value {
					key := x
					if x.DType() == Bool { // which has no argmax
						key = b.Cast(x, U8)
					}
					at := b.Call1(*arg, []any{key, dim, true})
					return append(b.pick(dim, keep, at, x), b.pick(dim, keep, b.fullLike(at, 0), at)...)
				})
			},
		})
	}
	extremum("max_dim", "largest", &opArgmax)
	extremum("min_dim", "smallest", &opArgmin)

	register("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", Spec{
		Category: Scan,
		Doc: "The differences of neighbours along dim, taken n times, of self between prepend and append; of bool whether they differ. " +
			"ATen's diff.",
		Decompose: decomposeDiff,
	})
}

func decomposeDiff(b *Builder, a Args) []Value {
	x, times := a.In[0], a.Int("n")
	if x.Rank() == 0 {
		a.Fail(ErrShape, "diff expects input to be at least one-dimensional")
	}
	if times < 0 {
		a.Fail(ErrArg, "order must be non-negative but got %d", times)
	}
	dim := a.Dim("dim", x.Rank())
	if times == 0 { // and what is put around self does not count
		return []Value{b.Call1(opReshape, []any{x, x.Shape().Dims()})}
	}
	parts := []Value{x}
	if v := a.Tensor("prepend"); !v.IsNil() {
		parts = []Value{v, x}
	}
	if v := a.Tensor("append"); !v.IsNil() {
		parts = append(parts, v)
	}
	if x = b.Call1(opCat, []any{parts, dim}); x.Dim(dim) <= times {
		return []Value{b.Slice(x, dim, 0, 0, 1)}
	}
	for range times {
		n := x.Dim(dim)
		after, before := b.Slice(x, dim, 1, n, 1), b.Slice(x, dim, 0, n-1, 1)
		if x.DType() == Bool {
			x = b.logicalXor(after, before)
		} else {
			x = b.Sub(after, before)
		}
	}
	return []Value{x}
}
