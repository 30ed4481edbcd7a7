package ir

import "math"

func init() {
	register("cdist(Tensor x1, Tensor x2, float p=2.0) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each row of x1 [*, n, k] and each of x2 [*, m, k], [*, n, m]; p is from 0, which counts the elements that differ, to infinity. Floating dtypes; f16 and bf16 compute in f32. As torch.cdist.",
		Category: Neural, Decompose: func(b *Builder, a Args) []Value {
			return b.Call(byName["_cdist_forward"], []any{a.In[0], a.In[1], a.float("p"), nil})
		},
	})
	register("pdist(Tensor self, float p=2.0) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each pair of rows of self [n, k], (0, 1), (0, 2), … (n-2, n-1). As torch.pdist.",
		Category: Neural, Decompose: func(b *Builder, a Args) []Value {
			return b.Call(byName["_pdist_forward"], []any{a.In[0], a.float("p")})
		},
	})
	register("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode=None) -> Tensor", Spec{
		Doc:      "cdist; compute_mode, how ATen computes it, is ignored. As at::_cdist_forward.",
		Category: Neural, Unlisted: true, Decompose: cdist, VJP: vjpCdist,
	})
	registerBackward("_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
		"The gradient of cdist with respect to x1. As at::_cdist_backward.",
		func(b *Builder, a Args) []Value {
			return []Value{cdistGradient(b, a, a.Tensor("grad_output"), a.Tensor("x1"), a.Tensor("x2"))}
		})
	register("_pdist_forward(Tensor self, float p=2.0) -> Tensor", Spec{
		Doc:      "pdist. As at::_pdist_forward.",
		Category: Neural, Unlisted: true, Decompose: pdist,
		VJP: func(b *Builder, a Args, _, grad []Value) []Value {
			return []Value{pdistGradient(b, a, grad[0], a.In[0])}
		},
	})
	registerBackward("_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
		"The gradient of pdist. As at::_pdist_backward.",
		func(b *Builder, a Args) []Value {
			return []Value{pdistGradient(b, a, a.Tensor("grad_output"), a.Tensor("self"))}
		})
}

// distanceExponent reads and checks p.
func distanceExponent(a Args) float64 {
	p := a.float("p")
	if !(p >= 0) {
		a.Fail(ErrArg, "p must not be negative, got %v", p)
	}
	return p
}

// lastNorm is the p-norm along the last dimension, which stays.
func (b *Builder) lastNorm(x Value, p float64) Value {
	last, size := []int{x.Rank() - 1}, b.abs(x)
	switch {
	case p == 0:
		return b.Sum(b.Cast(b.ne(x, b.Const(0, x.DType())), x.DType()), last, true)
	case p == 1:
		return b.Sum(size, last, true)
	case p == 2:
		return b.sqrt(b.Sum(b.Mul(x, x), last, true))
	case math.IsInf(p, 1):
		if x.Dim(-1) == 0 {
			return b.Sum(size, last, true)
		}
		return b.Amax(size, last, true)
	}
	return b.pow(b.Sum(b.pow(size, b.Const(p, x.DType())), last, true), b.Const(1/p, x.DType()))
}

// normSlopes is the derivative of lastNorm by each element of x, and 0 where the norm is: ATen
// chooses that, and for p = ∞ the largest elements alike.
func (b *Builder) normSlopes(x Value, p float64) Value {
	norm, zero := b.lastNorm(x, p), b.Const(0, x.DType())
	var slope Value
	switch {
	case p == 0:
		return b.fullLike(x, 0)
	case p == 1:
		slope = b.sign(x)
	case p == 2:
		slope = b.Div(x, norm)
	case math.IsInf(p, 1):
		slope = b.Where(b.eq(b.abs(x), norm), b.sign(x), zero)
	default:
		slope = b.Mul(b.sign(x), b.pow(b.Div(b.abs(x), norm), b.Const(p-1, x.DType())))
		if p < 1 {
			slope = b.Where(b.eq(x, zero), zero, slope)
		}
	}
	return b.Where(b.eq(norm, zero), zero, slope)
}

// rowDifferences returns the differences of each row of x and each of y, [*, n, m, k].
func rowDifferences(b *Builder, a Args, x, y Value) Value {
	d := x.DType()
	if !d.IsFloat() || y.DType() != d {
		a.Fail(ErrDType, "x1 and x2 must have one floating dtype, got %v and %v", d, y.DType())
	}
	if x.Rank() < 2 || y.Rank() < 2 || x.Dim(-1) != y.Dim(-1) {
		a.Fail(ErrShape, "x1 and x2 must have at least 2 dimensions and rows of one size, got %v and %v", x.Shape(), y.Shape())
	}
	if _, ok := BroadcastDims(b.Unsqueeze(x, -2).Shape(), b.Unsqueeze(y, -3).Shape()); !ok {
		a.Fail(ErrShape, "the batches of x1 %v and x2 %v do not broadcast together", x.Shape(), y.Shape())
	}
	return b.Sub(b.Unsqueeze(b.widen(x), x.Rank()-1), b.Unsqueeze(b.widen(y), y.Rank()-2))
}

func cdist(b *Builder, a Args) []Value {
	x := a.Tensor("x1")
	norm := b.lastNorm(rowDifferences(b, a, x, a.Tensor("x2")), distanceExponent(a))
	return []Value{b.Cast(b.Reshape(norm, norm.Shape().Dims()[:norm.Rank()-1]...), x.DType())}
}

func vjpCdist(b *Builder, a Args, _, grad []Value) []Value {
	g, x, y := grad[0], a.Tensor("x1"), a.Tensor("x2")
	return []Value{cdistGradient(b, a, g, x, y), cdistGradient(b, a, b.Transpose(g, -2, -1), y, x)}
}

// cdistGradient is the gradient with respect to x, of which the distances are of the rows.
func cdistGradient(b *Builder, a Args, g, x, y Value) Value {
	diff := rowDifferences(b, a, x, y)
	if dims := diff.Shape().Dims(); !g.Shape().SameDims(MakeShape(g.DType(), dims[:len(dims)-1]...)) {
		a.Fail(ErrShape, "the gradient %v is not that of distances of %v and %v", g.Shape(), x.Shape(), y.Shape())
	}
	parts := b.Mul(b.Unsqueeze(b.Cast(g, diff.DType()), g.Rank()), b.normSlopes(diff, distanceExponent(a)))
	sum := b.Sum(parts, []int{parts.Rank() - 2}, false)
	return b.Cast(b.sumTo(sum, x.Shape().WithDType(sum.DType())), x.DType())
}

// rowPairs returns the differences of each pair of rows, [pairs, k], and which rows they are of.
func rowPairs(b *Builder, a Args, x Value) (diff, first, second Value) {
	if !x.DType().IsFloat() || x.Rank() != 2 {
		a.Fail(ErrShape, "self must be a floating matrix, got %v", x.Shape())
	}
	n := x.Dim(0)
	pairs := n * (n - 1) / 2
	c := func(v int) Value { return b.Const(v, I64) }
	f := func(v float64) Value { return b.Const(v, F64) }
	// Pair k is in row i of the triangle where i(2n-i-1)/2 is at most k.
	k, half := b.Iota(pairs, I64), float64(n)-0.5
	root := b.sqrt(b.Sub(f(half*half), b.Mul(b.Cast(k, F64), f(2))))
	first = b.Cast(b.floor(b.Sub(f(half), root)), I64)
	before := func(i Value) Value { return b.floorDivide(b.Mul(i, b.Sub(c(2*n-1), i)), c(2)) }
	// The root may be off by a rounding where it is a whole number.
	first = b.Sub(first, b.Cast(b.gt(before(first), k), I64))
	first = b.Add(first, b.Cast(b.le(before(b.Add(first, c(1))), k), I64))
	second = b.Add(b.Sub(k, before(first)), b.Add(first, c(1)))
	wide := b.widen(x)
	return b.Sub(b.IndexSelect(wide, 0, first), b.IndexSelect(wide, 0, second)), first, second
}

func pdist(b *Builder, a Args) []Value {
	x := a.Tensor("self")
	diff, _, _ := rowPairs(b, a, x)
	norm := b.lastNorm(diff, distanceExponent(a))
	return []Value{b.Cast(b.Reshape(norm, norm.Dim(0)), x.DType())}
}

func pdistGradient(b *Builder, a Args, g, x Value) Value {
	diff, first, second := rowPairs(b, a, x)
	if g.Rank() != 1 || g.Dim(0) != diff.Dim(0) {
		a.Fail(ErrShape, "the gradient %v is not that of the distances of %v", g.Shape(), x.Shape())
	}
	parts := b.Mul(b.Unsqueeze(b.Cast(g, diff.DType()), 1), b.normSlopes(diff, distanceExponent(a)))
	sum := b.IndexAdd(b.Full(x.Shape().Dims(), 0, diff.DType()), 0, first, parts)
	return b.Cast(b.IndexAdd(sum, 0, second, b.Neg(parts)), x.DType())
}
