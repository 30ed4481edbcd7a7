package onnx

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// mathRows are the elementwise ops whose result has the type of the first operand.
var mathRows = map[string]*row{
	"Abs": same(loris.Abs).folding(foldUnary(math.Abs, abs64)), "Neg": narrowed(loris.Neg).folding(foldUnary(func(x float64) float64 { return -x }, func(x int64) int64 { return -x })),
	"Acos": same(loris.Acos), "Acosh": same(loris.Acosh), "Asin": same(loris.Asin), "Asinh": same(loris.Asinh),
	"Atan": same(loris.Atan), "Atanh": same(loris.Atanh), "Cos": same(loris.Cos), "Cosh": same(loris.Cosh),
	"Sin": same(loris.Sin), "Sinh": same(loris.Sinh), "Tan": same(loris.Tan), "Tanh": same(loris.Tanh),
	"Ceil": same(loris.Ceil).folding(foldUnary(math.Ceil, nil)), "Floor": same(loris.Floor).folding(foldUnary(math.Floor, nil)),
	"Round": same(loris.Round).folding(foldUnary(math.RoundToEven, nil)),
	"Erf":   same(loris.Erf), "Exp": same(loris.Exp), "Log": same(loris.Log).folding(foldUnary(math.Log, nil)), "Sqrt": same(loris.Sqrt).folding(foldUnary(math.Sqrt, nil)),
	"Reciprocal": same(loris.Reciprocal).folding(foldUnary(func(x float64) float64 { return 1 / x }, nil)), "Sign": same(sign),
	"Relu": same(loris.Relu), "Sigmoid": same(loris.Sigmoid), "HardSwish": same(loris.Hardswish),
	"Softsign": same(loris.Softsign), "Mish": same(loris.Mish), "Not": same(loris.LogicalNot).folding(foldNot),
	"Softplus":   same(func(x *loris.Tensor) *loris.Tensor { return wide(x, softplus) }),
	"BitwiseNot": narrowed(func(x *loris.Tensor) *loris.Tensor { return loris.BitwiseNot(x) }),
	"Identity":   one(1, 1, func(c *call, in []*value) *value { return in[0] }),

	"Elu":  with(func(c *call, x *loris.Tensor) *loris.Tensor { return x.Elu(loris.Alpha(c.float("alpha", 1))) }),
	"Celu": with(func(c *call, x *loris.Tensor) *loris.Tensor { return x.Celu(loris.Alpha(c.float("alpha", 1))) }),
	"LeakyRelu": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return x.LeakyRelu(loris.NegativeSlope(c.float("alpha", 0.01)))
	}),
	"Selu": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		alpha, gamma := c.float("alpha", float64(float32(1.67326319217681884765625))), c.float("gamma", float64(float32(1.05070102214813232421875)))
		return x.Elu(loris.Alpha(alpha)).Mul(gamma)
	}),
	"HardSigmoid": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return x.Mul(c.float("alpha", 0.2)).Add(c.float("beta", 0.5)).Clamp(0, 1)
	}),
	"ThresholdedRelu": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return loris.Where(x.Gt(c.float("alpha", 1)), x, x.ZerosLike())
	}),
	"Shrink": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		lambd, bias := c.float("lambd", 0.5), c.float("bias", 0)
		return wide(x, func(x *loris.Tensor) *loris.Tensor {
			return loris.Where(x.Lt(-lambd), x.Add(bias), loris.Where(x.Gt(lambd), x.Sub(bias), x.ZerosLike()))
		})
	}),
	"Gelu": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return x.Gelu(loris.Approximate(c.text("approximate", "none")))
	}),
	"Swish": with(func(c *call, x *loris.Tensor) *loris.Tensor {
		return x.Mul(x.Mul(c.float("alpha", 1)).Sigmoid())
	}),
	"PRelu": one(2, 2, func(c *call, in []*value) *value {
		x, slope := c.tensor(in[0]), c.tensor(in[1])
		if r := in[1].rank(); c.node.version < 7 && r == 1 && in[0].rank() > 2 && in[1].dims[0] > 1 {
			slope = padRank(slope, in[0].rank()-2)
		}
		return out(in[0].elem, loris.Where(x.Lt(0), c.wrap(in[0].elem, x.Mul(slope)), x))
	}),
	"Clip": one(1, 3, clip),

	"Add": elementwise(plus).folding(foldBinary(func(x, y float64) float64 { return x + y }, func(x, y int64) (int64, bool) { return x + y, true })),
	"Sub": elementwise(minus).folding(foldBinary(func(x, y float64) float64 { return x - y }, func(x, y int64) (int64, bool) { return x - y, true })),
	"Mul": elementwise(mul).folding(foldBinary(func(x, y float64) float64 { return x * y }, func(x, y int64) (int64, bool) { return x * y, true })),
	"Div": elementwise(div).folding(foldBinary(func(x, y float64) float64 { return x / y }, func(x, y int64) (int64, bool) {
		if y == 0 {
			return 0, false
		}
		return x / y, true
	})),
	"Pow": one(2, 2, pow).folding(foldBinary(math.Pow, nil)),
	"Mod": one(2, 2, mod).folding(foldMod),
	"Max": variadic(maximum).folding(foldVariadic(math.Max, func(x, y int64) int64 { return max(x, y) })),
	"Min": variadic(minimum).folding(foldVariadic(math.Min, func(x, y int64) int64 { return min(x, y) })),
	"Sum": variadic(func(e elemType, x, y *loris.Tensor) *loris.Tensor { return x.Add(y) }),
	"Mean": one(1, -1, func(c *call, in []*value) *value {
		t := c.tensor(in[0])
		for _, v := range in[1:] {
			t = t.Add(c.tensor(v))
		}
		return out(in[0].elem, t.Div(len(in)))
	}),
	"BitwiseAnd": elementwise(func(e elemType, x, y *loris.Tensor) *loris.Tensor { return x.BitwiseAnd(y) }),
	"BitwiseOr":  elementwise(func(e elemType, x, y *loris.Tensor) *loris.Tensor { return x.BitwiseOr(y) }),
	"BitwiseXor": elementwise(func(e elemType, x, y *loris.Tensor) *loris.Tensor { return x.BitwiseXor(y) }),
	"BitShift":   one(2, 2, bitShift),
}

// sign is NaN where x is, other than in ATen.
func sign(x *loris.Tensor) *loris.Tensor {
	if !x.DType().IsFloat() {
		return x.Sign()
	}
	return loris.Where(x.IsNaN(), x, x.Sign())
}

func softplus(x *loris.Tensor) *loris.Tensor {
	return x.Clamp(0, nil).Add(x.Abs().Neg().Exp().Log1p())
}

func abs64(x int64) int64 { return max(x, -x) }

// narrowed is same for integer ops whose results may leave the type's range.
func narrowed(f func(x *loris.Tensor) *loris.Tensor) *row {
	return one(1, 1, func(c *call, in []*value) *value {
		return out(in[0].elem, c.wrap(in[0].elem, f(c.tensor(in[0]))))
	})
}

// wrap brings integers that are held in a wider dtype back to the range of their type.
func (c *call) wrap(e elemType, t *loris.Tensor) *loris.Tensor {
	info := e.info()
	if !info.narrow {
		return t
	}
	t = t.BitwiseAnd(1<<info.bits - 1)
	if info.signed {
		half := 1 << (info.bits - 1)
		t = t.BitwiseXor(half).Sub(half)
	}
	return t
}

// pair returns the operands of a binary op, of one shape rule: before opset 7 the second one was laid
// along the first from an axis on.
func (c *call) pair(in []*value) (x, y *loris.Tensor) {
	x, y = c.tensor(in[0]), c.tensor(in[1])
	if c.node.version < 7 && c.bool("broadcast", false) && c.has("axis") {
		if after := x.Rank() - c.axis(c.int("axis", 0), x.Rank()) - y.Rank(); after > 0 {
			y = padRank(y, after)
		}
	}
	return x, y
}

// padRank appends dimensions of size 1.
func padRank(t *loris.Tensor, n int) *loris.Tensor {
	dims := t.Dims()
	for range n {
		dims = append(dims, 1)
	}
	return t.Reshape(dims...)
}

func elementwise(f func(e elemType, x, y *loris.Tensor) *loris.Tensor) *row {
	return one(2, 2, func(c *call, in []*value) *value {
		if in[0].elem != in[1].elem {
			c.fail("the operands are %v and %v, of one type they must be", in[0], in[1])
		}
		x, y := c.pair(in)
		return out(in[0].elem, c.wrap(in[0].elem, f(in[0].elem, x, y)))
	})
}

func variadic(f func(e elemType, x, y *loris.Tensor) *loris.Tensor) *row {
	return one(1, -1, func(c *call, in []*value) *value {
		t := c.tensor(in[0])
		for _, v := range in[1:] {
			if v == nil || v.elem != in[0].elem {
				c.fail("the operands are %v and %v, of one type they must be", in[0], v)
			}
			t = f(v.elem, t, c.tensor(v))
		}
		return out(in[0].elem, c.wrap(in[0].elem, t))
	})
}

func mul(_ elemType, x, y *loris.Tensor) *loris.Tensor { return x.Mul(y) }

func div(e elemType, x, y *loris.Tensor) *loris.Tensor {
	if e.integer() {
		return x.TruncDivide(y)
	}
	return x.Div(y)
}

// ordered maps numbers so that their order as signed numbers is that of the type.
func ordered(e elemType, x *loris.Tensor) *loris.Tensor {
	if e == tUint64 {
		return x.BitwiseXor(math.MinInt64)
	}
	return x
}

func maximum(e elemType, x, y *loris.Tensor) *loris.Tensor {
	return ordered(e, ordered(e, x).Maximum(ordered(e, y)))
}

func minimum(e elemType, x, y *loris.Tensor) *loris.Tensor {
	return ordered(e, ordered(e, x).Minimum(ordered(e, y)))
}

// pow has the type of the base, whatever that of the exponent.
func pow(c *call, in []*value) *value {
	x, y := c.pair(in)
	e, p := in[0].elem, in[1].elem
	switch {
	case e == p:
		return out(e, x.Pow(y))
	case e.integer() && p.integer():
		return out(e, c.wrap(e, x.Cast(loris.I64).Pow(y.Cast(loris.I64)).Cast(e.dtype())))
	case e.integer():
		return out(e, c.wrap(e, x.Cast(loris.F64).Pow(y.Cast(loris.F64)).Cast(e.dtype())))
	}
	if d := e.dtype(); d != loris.F64 {
		return out(e, x.Cast(loris.F32).Pow(y.Cast(loris.F32)).Cast(d))
	}
	return out(e, x.Pow(y.Cast(loris.F64)))
}

func mod(c *call, in []*value) *value {
	x, y := c.pair(in)
	if c.bool("fmod", false) {
		return out(in[0].elem, x.Fmod(y))
	}
	return out(in[0].elem, x.Remainder(y))
}

// clip has its bounds as attributes before opset 11, then as inputs. The upper one wins.
func clip(c *call, in []*value) *value {
	x, e := c.tensor(in[0]), in[0].elem
	if c.node.version < 11 {
		if c.has("min") {
			x = x.Maximum(c.float("min", 0))
		}
		if c.has("max") {
			x = x.Minimum(c.float("max", 0))
		}
		return out(e, x)
	}
	if lo := opt(in, 1); lo != nil && !lo.empty {
		x = maximum(e, x, c.tensor(lo))
	}
	if hi := opt(in, 2); hi != nil && !hi.empty {
		x = minimum(e, x, c.tensor(hi))
	}
	return out(e, x)
}

func bitShift(c *call, in []*value) *value {
	x, y := c.pair(in)
	e := in[0].elem
	if c.text("direction", "") == "LEFT" {
		return out(e, c.wrap(e, x.BitwiseLeftShift(y)))
	}
	if e != tUint64 {
		return out(e, x.BitwiseRightShift(y))
	}
	// The first bit shifted in is 0, though the dtype that holds the number has a sign.
	rest := x.BitwiseRightShift(1).BitwiseAnd(math.MaxInt64).BitwiseRightShift(y.Sub(1))
	return out(e, loris.Where(y.Eq(0), x, rest))
}

// lowest is the least number of a dtype, from which a maximum begins; highest is the largest.
func lowest(d ir.DType) any {
	switch {
	case d.IsFloat():
		return math.Inf(-1)
	case d == ir.U8, d == ir.Bool:
		return 0
	case d == ir.I8:
		return math.MinInt8
	case d == ir.I16:
		return math.MinInt16
	case d == ir.I32:
		return math.MinInt32
	}
	return math.MinInt64
}

func highest(d ir.DType) any {
	switch {
	case d.IsFloat():
		return math.Inf(1)
	case d == ir.Bool:
		return 1
	case d == ir.U8:
		return math.MaxUint8
	case d == ir.I8:
		return math.MaxInt8
	case d == ir.I16:
		return math.MaxInt16
	case d == ir.I32:
		return math.MaxInt32
	}
	return math.MaxInt64
}

func plus(_ elemType, x, y *loris.Tensor) *loris.Tensor { return x.Add(y) }

func minus(_ elemType, x, y *loris.Tensor) *loris.Tensor { return x.Sub(y) }
