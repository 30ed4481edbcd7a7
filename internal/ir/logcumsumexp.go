package ir

import "math"

// decomposeLogCumsumExp takes the running maxima m out of the running sums:
//
//	out[k] = m[k] + log(1 + s[k]),  s[k] = e[k] + s[k-1], or e[k] + e[k] · s[k-1] where m changes,
//
// where e[k] is the exponential of the distance of x[k] from m[k-1], negated. What is summed is without the 1 of the
// maximum itself, beside which small numbers would be lost.
func decomposeLogCumsumExp(b *Builder, a Args) []Value {
	x := a.In[0]
	d := x.DType()
	if !d.IsFloat() {
		a.Fail(ErrDType, "self is %v, must be floating", d)
	}
	x = b.widen(x)
	return b.alongDim(x, a.Dim("dim", x.Rank()), func(x Value, dim int) []Value {
		top := b.Call(opCummax, []any{x, dim})[0]
		before := b.padDim(top, dim, 1, -1, math.Inf(-1))
		zero, one := b.zeroOf(x), b.Const(1, x.DType())
		// Equal infinities have no distance, which their difference would not say.
		e := b.Exp(b.Where(b.eq(x, before), zero, b.Neg(b.abs(b.Sub(x, before)))))
		s := b.linearScan(b.Where(b.le(x, before), one, e), e, dim, false)
		return []Value{b.Cast(b.Add(top, b.log1p(s)), d)}
	})
}

// vjpLogCumsumExp computes, for elements x, their results y and cotangents g along dim,
//
//	dx[k] = exp(x[k] - y[k]) · u[k],  u[k] = g[k] + exp(y[k] - y[k+1]) · u[k+1].
//
// No result is less than the one before but for rounding, so that nothing overflows.
func vjpLogCumsumExp(b *Builder, a Args, out, grad []Value) []Value {
	self, y := a.In[0], out[0]
	if self.Rank() == 0 {
		return grad
	}
	dim, x := a.Dim("dim", self.Rank()), b.widen(self)
	if x.DType() != self.DType() { // results before they were rounded
		y = b.callNamed("logcumsumexp", []any{x, dim})
	}
	behind := b.padDim(y, dim, -1, 1, math.Inf(1))
	same := b.logicalAnd(b.eq(y, behind), b.isInf(y)) // their difference is no number
	keeps := b.Exp(b.Where(same, b.zeroOf(y), b.Sub(y, behind)))
	u := b.linearScan(keeps, b.widen(grad[0]), dim, true)
	return []Value{b.Cast(b.Mul(b.Exp(b.Sub(x, y)), u), self.DType())}
}
