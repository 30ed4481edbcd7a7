package ir

import "math"

// Composite reductions. f16 and bf16 are computed in f32 and rounded once.

func init() {
	register("mean(Tensor self, int[]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Mean over dim (all dimensions if absent or empty); self, or dtype, must be floating. NaN over no elements. " +
			"ATen's mean.dim.",
		Decompose: decomposeMean,
	})
	register("logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor", Spec{
		GoName:    "LogSumExp",
		Category:  Reduction,
		Doc:       "log(sum(exp(self))) over dim without overflow; integers become f32. ATen's logsumexp.",
		Decompose: decomposeLogSumExp,
		VJP:       vjpLogSumExp,
	})
	register("var(Tensor self, int[]? dim=None, *, float? correction=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Variance of a floating tensor over dim (all dimensions if absent or empty): the squared distances from the mean, " +
			"summed and divided by max(0, n-correction); correction is 1 unless given. ATen's var.correction.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.variance(newMoments(b, a))} },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{newMoments(b, a).gradient(grad[0])}
		},
	})
	register("std(Tensor self, int[]? dim=None, *, float? correction=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc:      "Square root of var, with its arguments; the gradient is 0 where the result is 0. ATen's std.correction.",
		Decompose: func(b *Builder, a Args) []Value {
			m := newMoments(b, a)
			return []Value{b.Cast(b.sqrt(b.wideVariance(m)), m.self.DType())}
		},
		VJP: vjpStd,
	})
	register("var_mean(Tensor self, int[]? dim=None, *, float? correction=None, bool keepdim=False) -> (Tensor var, Tensor mean)", Spec{
		Category: Reduction,
		Doc:      "var and mean of a floating tensor over dim, both of the reduced shape. ATen's var_mean.correction.",
		Decompose: func(b *Builder, a Args) []Value {
			m := newMoments(b, a)
			mean := b.Reshape(m.mean, m.result.Dims()...)
			return []Value{b.variance(m), b.Cast(mean, m.self.DType())}
		},
	})
	register("std_mean(Tensor self, int[]? dim=None, *, float? correction=None, bool keepdim=False) -> (Tensor std, Tensor mean)", Spec{
		Category: Reduction,
		Doc:      "std and mean of a floating tensor over dim, both of the reduced shape. ATen's std_mean.correction.",
		Decompose: func(b *Builder, a Args) []Value {
			m := newMoments(b, a)
			std := b.Emit(byName["std"], a.Attr, m.self)[0]
			return []Value{std, b.Cast(b.Reshape(m.mean, m.result.Dims()...), m.self.DType())}
		},
	})
	register("norm(Tensor self, float p=2, int[]? dim=None, bool keepdim=False) -> Tensor", Spec{
		Category: Reduction,
		Doc: "Vector p-norm of a floating tensor over dim (all dimensions if absent or empty): sum(|x|^p)^(1/p), the largest " +
			"or smallest |x| for p inf or -inf, the number of non-zeros for p 0. ATen's norm.ScalarOpt_dim.",
		Decompose: decomposeNorm,
		VJP:       vjpNorm,
	})
	register("linalg_vector_norm(Tensor self, float ord=2, int[]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Reduction,
		Doc:      "norm with p given as ord, of self converted to dtype first if that is given. ATen's linalg_vector_norm.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			if d := a.DType("dtype"); d != Invalid {
				x = b.Cast(x, d)
			}
			return []Value{b.callNamed("norm", []any{x, a.float("ord"), dimsArg(a.Ints("dim")), a.Bool("keepdim")})}
		},
	})
	register("count_nonzero(Tensor self, int[]? dim=None) -> Tensor", Spec{
		Category: Reduction,
		Doc:      "Number (i64) of elements over dim that are not zero. ATen's count_nonzero.dim_IntList.",
		Decompose: func(b *Builder, a Args) []Value {
			return []Value{b.Sum(b.ne(a.In[0], b.Const(0, a.In[0].DType())), a.Ints("dim"), false)}
		},
		NoGrad: "the result is a count",
	})
}

func requireFloat(a Args, v Value) {
	if !v.DType().IsFloat() {
		a.Fail(ErrDType, "self is %v, must be a floating dtype", v.DType())
	}
}

func decomposeMean(b *Builder, a Args) []Value {
	x := a.In[0]
	if d := a.DType("dtype"); d != Invalid {
		x = b.Cast(x, d)
	}
	requireFloat(a, x)
	dims, keepdim := a.Ints("dim"), a.Bool("keepdim")
	if d := x.DType(); d == F16 || d == BF16 { // the sum is to see that its elements are narrow
		s := b.Call1(opSum, []any{x, dimsArg(dims), keepdim, accDType(d)})
		return []Value{b.Cast(b.meanOf(x, s), d)}
	}
	return []Value{b.Cast(b.Mean(b.widen(x), dims, keepdim), x.DType())}
}

func decomposeLogSumExp(b *Builder, a Args) []Value {
	x := a.In[0]
	requireArithmetic(a, x.DType())
	x = b.Cast(x, floatOf(x.DType()))
	wide := b.widen(x)
	mask := a.dims("dim", x.Rank())
	dims := maskDims(mask, x.Rank())
	result := reducedShape(x.Shape(), mask, a.Bool("keepdim"), x.DType())
	if x.Shape().Numel() == 0 {
		return []Value{b.Cast(b.log(b.Reshape(b.Sum(b.Exp(wide), dims, true), result.Dims()...)), x.DType())}
	}
	top := b.Amax(wide, dims, true)
	zero := b.Const(0, top.DType())
	top = b.Where(b.isInf(top), zero, top) // inf-inf would be NaN
	sum := b.Sum(b.Exp(b.Sub(wide, top)), dims, true)
	out := b.Reshape(b.Add(b.log(sum), top), result.Dims()...)
	return []Value{b.Cast(out, x.DType())}
}

func vjpLogSumExp(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	mask := a.dims("dim", self.Rank())
	g := b.keepReduced(grad[0], self.Shape(), mask)
	o := b.keepReduced(out[0], self.Shape(), mask)
	return []Value{b.Mul(g, b.Exp(b.Sub(self, o)))}
}

// moments holds what var, std and var_mean share.
type moments struct {
	b      *Builder
	self   Value
	wide   Value // self, f32 at least
	mean   Value // of wide, with the reduced dimensions kept
	mask   [MaxRank]bool
	result Shape
	dof    float64 // max(0, n - correction)
}

func newMoments(b *Builder, a Args) *moments {
	x := a.In[0]
	requireFloat(a, x)
	correction, ok := a.OptFloat("correction")
	if !ok {
		correction = 1
	}
	m := &moments{b: b, self: x, wide: b.widen(x), mask: a.dims("dim", x.Rank())}
	m.result = reducedShape(x.Shape(), m.mask, a.Bool("keepdim"), x.DType())
	n := 1
	dims := maskDims(m.mask, x.Rank())
	for _, d := range dims {
		n *= AtLeast1D(x.Shape()).Dim(d)
	}
	m.dof = max(0, float64(n)-correction)
	m.mean = b.Mean(m.wide, dims, true)
	return m
}

// wideVariance records the variance in the dtype of the computation.
func (b *Builder) wideVariance(m *moments) Value {
	d := b.Sub(m.wide, m.mean)
	sum := b.Sum(b.Mul(d, d), maskDims(m.mask, m.self.Rank()), true)
	return b.Reshape(b.Div(sum, b.Const(m.dof, sum.DType())), m.result.Dims()...)
}

func (b *Builder) variance(m *moments) Value { return b.Cast(b.wideVariance(m), m.self.DType()) }

// gradient is var's: 2/dof * grad * (self - mean).
func (m *moments) gradient(grad Value) Value {
	b := m.b
	g := b.keepReduced(b.Cast(grad, m.wide.DType()), m.self.Shape(), m.mask)
	g = b.Mul(g, b.Const(2/m.dof, g.DType()))
	return b.Cast(b.Mul(g, b.Sub(m.wide, m.mean)), m.self.DType())
}

func vjpStd(b *Builder, a Args, out, grad []Value) []Value {
	zero := b.Const(0, out[0].DType())
	flat := b.eq(out[0], zero)
	twice := b.Mul(out[0], b.Const(2, out[0].DType()))
	g := b.Div(grad[0], b.Where(flat, b.Const(1, twice.DType()), twice))
	return []Value{newMoments(b, a).gradient(b.Where(flat, zero, g))}
}

func decomposeNorm(b *Builder, a Args) []Value {
	self, p := a.In[0], a.float("p")
	requireFloat(a, self)
	mask, keepdim := ReduceDims(a)
	dims := maskDims(mask, self.Rank())
	x := b.widen(self)
	if p < 0 || math.IsInf(p, 1) {
		requireNonEmpty(a, mask)
	}
	var out Value
	switch {
	case math.IsNaN(p):
		a.Fail(ErrArg, "p is NaN")
	case math.IsInf(p, 1):
		out = b.Amax(b.abs(x), dims, keepdim)
	case math.IsInf(p, -1):
		out = b.amin(b.abs(x), dims, keepdim)
	case p == 0:
		out = b.Sum(b.Cast(b.ne(x, b.Const(0, x.DType())), x.DType()), dims, keepdim)
	case p == 1:
		out = b.Sum(b.abs(x), dims, keepdim)
	case p == 2:
		out = b.sqrt(b.Sum(b.Mul(x, x), dims, keepdim))
	default:
		sum := b.Sum(b.pow(b.abs(x), b.Const(p, x.DType())), dims, keepdim)
		out = b.pow(sum, b.Const(1/p, x.DType()))
	}
	return []Value{b.Cast(out, self.DType())}
}

// vjpNorm is grad * sign(x) * (|x|/norm)^(p-1), 0 where x or the norm is; for
// infinite p the elements of the largest (smallest) size share the gradient.
func vjpNorm(b *Builder, a Args, out, grad []Value) []Value {
	self, p := a.In[0], a.float("p")
	if p == 0 {
		return []Value{{}}
	}
	mask, _ := ReduceDims(a)
	x := b.widen(self)
	d := x.DType()
	g := b.keepReduced(b.Cast(grad[0], d), self.Shape(), mask)
	norm := b.keepReduced(b.Cast(out[0], d), self.Shape(), mask)
	size, sign, one := b.abs(x), b.sign(x), b.Const(1, d)
	positive := func(v Value) Value { return b.Where(b.eq(v, b.Const(0, d)), one, v) }
	var gx Value
	switch {
	case math.IsInf(p, 0):
		chosen := b.eq(b.abs(self), b.keepReduced(out[0], self.Shape(), mask))
		count := b.Sum(chosen, maskDims(mask, self.Rank()), true)
		gx = b.Mul(sign, b.Div(b.Mul(g, b.Cast(chosen, d)), count))
	case p == 1:
		gx = b.Mul(g, sign)
	case p == 2:
		gx = b.Mul(x, b.Div(g, positive(norm)))
	default:
		e := b.Const(p-1, d)
		gx = b.Mul(b.Mul(sign, b.pow(positive(size), e)), b.Div(g, b.pow(positive(norm), e)))
	}
	return []Value{b.Cast(gx, self.DType())}
}
