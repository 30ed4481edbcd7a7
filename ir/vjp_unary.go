package ir

import "math"

// The gradients of op_unary.go, by ATen's derivatives.yaml.

// unaryVJP returns the cotangent of x from that of y = op(x).
type unaryVJP func(b *Builder, x, y, g Value) Value

func (f unaryVJP) rule() func(b *Builder, a Args, out, grad []Value) []Value {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		return []Value{f(b, a.In[0], out[0], grad[0])}
	}
}

// vjpZero is the gradient of functions that are flat wherever they are
// continuous.
func vjpZero(b *Builder, a Args, out, grad []Value) []Value {
	gs := make([]Value, len(a.In))
	for i, v := range a.In {
		gs[i] = b.FullLike(v, 0)
	}
	return gs
}

// zeroOf is the scalar 0 of x's dtype.
func (b *Builder) zeroOf(x Value) Value { return b.Const(0, x.DType()) }

// scale multiplies by a constant.
func (b *Builder) scale(x Value, c float64) Value { return b.Mul(x, b.Const(c, x.DType())) }

// shift adds a constant.
func (b *Builder) shift(x Value, c float64) Value { return b.Add(x, b.Const(c, x.DType())) }

// oneMinus is 1 - x.
func (b *Builder) oneMinus(x Value) Value { return b.Sub(b.Const(1, x.DType()), x) }

func vjpNeg(b *Builder, x, y, g Value) Value { return b.Neg(g) }
func vjpAbs(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Sign(x)) }

func vjpRelu(b *Builder, x, y, g Value) Value {
	zero := b.zeroOf(g)
	return b.Where(b.Le(y, zero), zero, g)
}

func vjpExp(b *Builder, x, y, g Value) Value   { return b.Mul(g, y) }
func vjpExp2(b *Builder, x, y, g Value) Value  { return b.scale(b.Mul(g, y), math.Ln2) }
func vjpExpm1(b *Builder, x, y, g Value) Value { return b.Mul(g, b.shift(y, 1)) }
func vjpLog(b *Builder, x, y, g Value) Value   { return b.Div(g, x) }
func vjpLog2(b *Builder, x, y, g Value) Value  { return b.Div(g, b.scale(x, math.Ln2)) }
func vjpLog10(b *Builder, x, y, g Value) Value { return b.Div(g, b.scale(x, math.Ln10)) }
func vjpLog1p(b *Builder, x, y, g Value) Value { return b.Div(g, b.shift(x, 1)) }
func vjpSqrt(b *Builder, x, y, g Value) Value  { return b.Div(g, b.scale(y, 2)) }

func vjpRsqrt(b *Builder, x, y, g Value) Value {
	return b.Mul(b.scale(g, -0.5), b.Mul(y, b.Mul(y, y)))
}

func vjpReciprocal(b *Builder, x, y, g Value) Value { return b.Mul(b.Neg(g), b.Mul(y, y)) }
func vjpSigmoid(b *Builder, x, y, g Value) Value    { return b.Mul(g, b.Mul(b.oneMinus(y), y)) }

func vjpErf(b *Builder, x, y, g Value) Value {
	return b.Mul(b.scale(b.Exp(b.Neg(b.Mul(x, x))), 2/math.SqrtPi), g)
}

func vjpErfinv(b *Builder, x, y, g Value) Value {
	return b.Mul(b.scale(b.Exp(b.Mul(y, y)), math.SqrtPi/2), g)
}

func vjpSin(b *Builder, x, y, g Value) Value  { return b.Mul(g, b.Cos(x)) }
func vjpCos(b *Builder, x, y, g Value) Value  { return b.Mul(g, b.Neg(b.Sin(x))) }
func vjpTan(b *Builder, x, y, g Value) Value  { return b.Mul(g, b.shift(b.Mul(y, y), 1)) }
func vjpAsin(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Rsqrt(b.oneMinus(b.Mul(x, x)))) }
func vjpAcos(b *Builder, x, y, g Value) Value { return b.Neg(vjpAsin(b, x, y, g)) }
func vjpAtan(b *Builder, x, y, g Value) Value { return b.Div(g, b.shift(b.Mul(x, x), 1)) }
func vjpSinh(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Cosh(x)) }
func vjpCosh(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Sinh(x)) }
func vjpTanh(b *Builder, x, y, g Value) Value { return b.Mul(g, b.oneMinus(b.Mul(y, y))) }

func vjpAsinh(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Rsqrt(b.shift(b.Mul(x, x), 1))) }
func vjpAcosh(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Rsqrt(b.shift(b.Mul(x, x), -1))) }
func vjpAtanh(b *Builder, x, y, g Value) Value { return b.Div(g, b.oneMinus(b.Mul(x, x))) }
