package ir

import "math"

// Elements that stand at a place of the order of a dimension: composites over sort, which is
// stable and has NaN as the largest.

func init() {
	register("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "The k-th smallest element along dim, counted from 1, and its i64 index; of equal ones the first in the order of " +
			"sort. dim goes, or has size 1 with keepdim. ATen's kthvalue.",
		Decompose: decomposeKthValue, VJP: vjpSelected,
	})
	register("median(Tensor self, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "The lower median along dim and its i64 index; the first NaN where there is one. Without dim that of all elements, " +
			"with its place in the flattened tensor. ATen's median.",
		Decompose: func(b *Builder, a Args) []Value { return decomposeMedian(b, a, false) },
		VJP:       vjpSelected,
	})
	register("nanmedian(Tensor self, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)", Spec{
		Category:  Indexing,
		Doc:       "median of the elements that are not NaN; NaN where all are. ATen's nanmedian.",
		Decompose: func(b *Builder, a Args) []Value { return decomposeMedian(b, a, true) },
		VJP:       vjpSelected,
	})
	register("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", Spec{
		Category: Indexing,
		Doc: "The most frequent element along dim, the least of several, and the i64 index of the last of them. dim goes, or " +
			"has size 1 with keepdim. ATen's mode.",
		Decompose: decomposeMode,
		VJP:       vjpSelected,
	})
}

// alongDim records what fn makes of x and a dimension that it has: a scalar counts as a
// vector of one element, and results are scalars again.
func (b *Builder) alongDim(x Value, dim int, fn func(x Value, dim int) []Value) []Value {
	if x.Rank() > 0 {
		return fn(x, dim)
	}
	outs := fn(b.Reshape(x, 1), 0)
	for i := range outs {
		outs[i] = b.Reshape(outs[i])
	}
	return outs
}

// flatten records x as a vector.
func (b *Builder) flatten(x Value) Value { return b.Reshape(x, x.Shape().Numel()) }

// dimsWith returns the dimensions of x with n in the place of dim.
func dimsWith(x Value, dim, n int) []int {
	dims := x.Shape().Dims()
	dims[dim] = n
	return dims
}

// pick records one element of each line along dim, at the index that has size 1 there.
func (b *Builder) pick(dim int, keep bool, at Value, from ...Value) []Value {
	out := make([]Value, len(from))
	for i, x := range from {
		if out[i] = b.Gather(x, dim, at); !keep {
			dims := out[i].Shape().Dims()
			out[i] = b.Reshape(out[i], append(dims[:dim:dim], dims[dim+1:]...)...)
		}
	}
	return out
}

// vjpSelected puts the gradient where the chosen elements came from.
func vjpSelected(b *Builder, a Args, out, grad []Value) []Value {
	x, g, at := a.In[0], grad[0], out[1]
	if g.IsNil() {
		return []Value{g}
	}
	if x.Shape().Numel() == 0 {
		return []Value{b.fullLike(x, 0)}
	}
	if _, ok := a.OptInt("dim"); !ok || x.Rank() == 0 {
		flat := b.flatten(x)
		g = b.Scatter(b.fullLike(flat, 0), 0, b.Reshape(at, 1), b.Reshape(g, 1))
		return []Value{b.Reshape(g, x.Shape().Dims()...)}
	}
	dim := a.Dim("dim", x.Rank())
	ones := dimsWith(x, dim, 1)
	return []Value{b.Scatter(b.fullLike(x, 0), dim, b.Reshape(at, ones...), b.Reshape(g, ones...))}
}

func decomposeKthValue(b *Builder, a Args) []Value {
	x, k, keep := a.In[0], a.Int("k"), a.Bool("keepdim")
	return b.alongDim(x, a.Dim("dim", x.Rank()), func(x Value, dim int) []Value {
		if n := x.Dim(dim); k < 1 || k > n {
			a.Fail(ErrIndex, "selected number k %d out of range for dimension %d of size %d", k, dim, n)
		}
		values, indices := b.Sort(x, dim, false)
		return b.pick(dim, keep, b.Full(dimsWith(x, dim, 1), k-1, I64), values, indices)
	})
}

func decomposeMedian(b *Builder, a Args, skipNaN bool) []Value {
	x, keep, dim := a.In[0], a.Bool("keepdim"), 0
	if _, ok := a.OptInt("dim"); ok {
		dim = a.Dim("dim", x.Rank())
	} else {
		x, keep = b.flatten(x), false
	}
	return b.alongDim(x, dim, func(x Value, dim int) []Value {
		n := x.Dim(dim)
		if n == 0 {
			if _, ok := a.OptInt("dim"); ok {
				a.Fail(ErrIndex, "expected reduction dim %d to have non-zero size", dim)
			}
			return []Value{b.Cast(b.Const(math.NaN(), F64), x.DType()), b.Const(0, I64)}
		}
		values, indices := b.Sort(x, dim, false)
		at := b.Full(dimsWith(x, dim, 1), (n-1)/2, I64)
		if x.DType().IsFloat() {
			at = b.medianOfFloats(x, dim, at, skipNaN)
		}
		return b.pick(dim, keep, at, values, indices)
	})
}

// medianOfFloats returns where the median is among the sorted elements of x, NaN last: at,
// unless there is a NaN.
func (b *Builder) medianOfFloats(x Value, dim int, at Value, skipNaN bool) Value {
	nan := b.Sum(b.Cast(b.isNaN(x), I64), []int{dim}, true)
	numbers, zero := b.Sub(b.Const(x.Dim(dim), I64), nan), b.Const(0, I64)
	if skipNaN {
		half := b.truncDivide(b.Sub(numbers, b.Const(1, I64)), b.Const(2, I64))
		return b.maximum(half, zero)
	}
	return b.Where(b.gt(nan, zero), numbers, at)
}

func decomposeMode(b *Builder, a Args) []Value {
	x, keep := a.In[0], a.Bool("keepdim")
	return b.alongDim(x, a.Dim("dim", x.Rank()), func(x Value, dim int) []Value {
		n := x.Dim(dim)
		if n == 0 {
			a.Fail(ErrIndex, "expected reduction dim %d to have non-zero size", dim)
		}
		values, indices := b.Sort(x, dim, false)
		ones := dimsWith(x, dim, 1)
		place := make([]int, x.Rank())
		for d := range place {
			place[d] = 1
		}
		place[dim] = n
		i := b.Expand(b.Reshape(b.Iota(n, I64), place...), x.Shape().Dims()...)
		// A run of equal elements begins where the one before is another.
		begins := b.Full(ones, true, Bool)
		if n > 1 {
			begins = b.Cat([]Value{begins, b.ne(b.Slice(values, dim, 1, n, 1), b.Slice(values, dim, 0, n-1, 1))}, dim)
		}
		start := b.Call(opCummax, []any{b.Where(begins, i, b.Const(0, I64)), dim})[0]
		// The first of the longest runs ends where its length is reached.
		longest := b.Call1(opArgmax, []any{b.Sub(i, start), dim, true})
		return b.pick(dim, keep, longest, values, indices)
	})
}
