package ir

import (
	"math"
	"strings"
)

// The pointwise primitives of two operands, where and cast: what they mean on
// single elements. Their gradients are in vjp_binary.go.

// binaryRow is what the rows of two operands have in common: broadcasting and
// promotion to one dtype.
func binaryRow(name, doc string, s Spec) Op {
	s.Category = Pointwise
	if s.Doc = doc; !strings.Contains(doc, "ATen's") {
		s.Doc += " ATen's " + name + "."
	}
	if s.Promote == PromoteNone {
		s.Promote = PromoteDefault
	}
	second := "other"
	if name == "pow" {
		second = "exponent"
	}
	return register(name+"(Tensor self, Tensor "+second+") -> Tensor", s)
}

// compareOp makes the row of a predicate of two operands.
func compareOp(name, formula string, f func(x, y float64) bool, i func(x, y int64) bool) Op {
	return binaryRow(name, "Whether "+formula+", elementwise with broadcasting, as bool; the operands meet in one dtype first.", Spec{
		Scalar: Scalar{
			F2: func(x, y float64) float64 { return b2f(f(x, y)) },
			I2: func(x, y int64) int64 { return b2i(i(x, y)) },
		},
		Predicate: true, NoGrad: noGradBool,
	})
}

// bitOp makes the row of an op on the bits of integers.
func bitOp(name, doc string, i func(x, y int64) int64, infer func(Args) []Shape) Op {
	return binaryRow(name, doc, Spec{Scalar: Scalar{I2: i}, Infer: infer, NoGrad: noGradBits})
}

func init() {
	initArithmetic()
	initDivision()
	initCompare()
	initBits()
	OpWhere = register("where(Tensor condition, Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteTail,
		Doc: "self where the bool condition holds, other elsewhere, with broadcasting; self and other meet in one dtype. " +
			"Its F3 and I3 get the condition as 0 or 1. ATen's where.",
		Scalar: Scalar{
			F3: func(c, x, y float64) float64 {
				if c != 0 {
					return x
				}
				return y
			},
			I3: func(c, x, y int64) int64 {
				if c != 0 {
					return x
				}
				return y
			},
		},
		Infer: inferWhere, VJP: vjpWhere,
	})
	OpCast = register("cast(Tensor self, ScalarType dtype) -> Tensor", Spec{
		Category: Pointwise,
		Doc: "self converted to dtype: floats to the nearest value (RoundFloat), floats to integers towards zero (FloatToInt tells " +
			"what NaN and values out of range give), integers to narrower ones by their low bits (WrapInt), all to bool by != 0. " +
			"The 8-bit floats convert too; complex dtypes do not. The meaning depends on both dtypes, so the row has no Scalar. ATen's Tensor.to.",
		Infer: inferCast, VJP: vjpCast,
	})
}

func initArithmetic() {
	OpAdd = binaryRow("add", "x + y, elementwise with broadcasting; integers wrap, for bool the logical or.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x + y }, I2: func(x, y int64) int64 { return x + y }},
		VJP:    binaryVJP(vjpAdd).rule(),
	})
	OpSub = binaryRow("sub", "x - y, elementwise with broadcasting; integers wrap, two bools are not defined.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x - y }, I2: func(x, y int64) int64 { return x - y }},
		Infer:  inferNoBool, VJP: binaryVJP(vjpSub).rule(),
	})
	OpMul = binaryRow("mul", "x · y, elementwise with broadcasting; integers wrap, for bool the logical and.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x * y }, I2: func(x, y int64) int64 { return x * y }},
		VJP:    binaryVJP(vjpMul).rule(),
	})
	OpPow = binaryRow("pow", "x to the power y, elementwise with broadcasting. Integers wrap; a negative exponent of integers gives 0 "+
		"but for bases 1 and -1. Two bools are not defined.", Spec{
		Scalar: Scalar{F2: math.Pow, I2: powInt}, Infer: inferNoBool, VJP: binaryVJP(vjpPow).rule(),
	})
	OpAtan2 = binaryRow("atan2", "The angle of the point (other, self), elementwise with broadcasting; integers and bool give f32.", Spec{
		Scalar: Scalar{F2: atan2}, Promote: PromoteIntToFloat, VJP: binaryVJP(vjpAtan2).rule(),
	})
	OpMaximum = binaryRow("maximum", "The larger of x and y, elementwise with broadcasting; NaN wins. Equal operands share the gradient.", Spec{
		Scalar: Scalar{F2: maximum, I2: func(x, y int64) int64 { return max(x, y) }}, VJP: binaryVJP(vjpMaximum).rule(),
	})
	OpMinimum = binaryRow("minimum", "The smaller of x and y, elementwise with broadcasting; NaN wins. Equal operands share the gradient.", Spec{
		Scalar: Scalar{F2: minimum, I2: func(x, y int64) int64 { return min(x, y) }}, VJP: binaryVJP(vjpMinimum).rule(),
	})
}

func initDivision() {
	const zero = " An integer divisor of 0 is an error at run time (ErrZeroDivision); two bools are not defined."
	OpDiv = binaryRow("div", "x / y, elementwise with broadcasting; integers and bool give f32.", Spec{
		Scalar:  Scalar{F2: func(x, y float64) float64 { return x / y }},
		Promote: PromoteIntToFloat, VJP: binaryVJP(vjpDiv).rule(),
	})
	OpFloorDivide = binaryRow("floor_divide", "The largest integer not above x / y, elementwise with broadcasting, in the operands' dtype; "+
		"div with rounding_mode='floor'."+zero, Spec{
		Scalar: Scalar{F2: floorDiv, I2: floorDivInt}, Infer: inferNoBool, VJP: vjpZero,
	})
	OpTruncDivide = binaryRow("trunc_divide", "x / y without its fraction, elementwise with broadcasting, in the operands' dtype; "+
		"ATen's div with rounding_mode='trunc'."+zero, Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return math.Trunc(x / y) }, I2: truncDivInt}, Infer: inferNoBool, VJP: vjpZero,
	})
	OpRemainder = binaryRow("remainder", "x - y·⌊x/y⌋, elementwise with broadcasting: the sign is the divisor's, as Python's %."+zero, Spec{
		Scalar: Scalar{F2: remainder, I2: remainderInt}, Infer: inferNoBool, VJP: binaryVJP(vjpRemainder).rule(),
	})
	OpFmod = binaryRow("fmod", "x - y·trunc(x/y), elementwise with broadcasting: the sign is the dividend's, as C's fmod."+zero, Spec{
		Scalar: Scalar{F2: math.Mod, I2: fmodInt}, Infer: inferNoBool, VJP: binaryVJP(vjpFmod).rule(),
	})
}

func initCompare() {
	OpEq = compareOp("eq", "x = y", func(x, y float64) bool { return x == y }, func(x, y int64) bool { return x == y })
	OpNe = compareOp("ne", "x ≠ y", func(x, y float64) bool { return x != y }, func(x, y int64) bool { return x != y })
	OpLt = compareOp("lt", "x < y", func(x, y float64) bool { return x < y }, func(x, y int64) bool { return x < y })
	OpLe = compareOp("le", "x ≤ y", func(x, y float64) bool { return x <= y }, func(x, y int64) bool { return x <= y })
	OpGt = compareOp("gt", "x > y", func(x, y float64) bool { return x > y }, func(x, y int64) bool { return x > y })
	OpGe = compareOp("ge", "x ≥ y", func(x, y float64) bool { return x >= y }, func(x, y int64) bool { return x >= y })
	OpLogicalAnd = compareOp("logical_and", "both are not 0",
		func(x, y float64) bool { return x != 0 && y != 0 }, func(x, y int64) bool { return x != 0 && y != 0 })
	OpLogicalOr = compareOp("logical_or", "one is not 0",
		func(x, y float64) bool { return x != 0 || y != 0 }, func(x, y int64) bool { return x != 0 || y != 0 })
	OpLogicalXor = compareOp("logical_xor", "exactly one is not 0",
		func(x, y float64) bool { return (x != 0) != (y != 0) }, func(x, y int64) bool { return (x != 0) != (y != 0) })
}

func initBits() {
	const bits = ", elementwise with broadcasting, of integers or bool."
	OpBitwiseAnd = bitOp("bitwise_and", "The bits set in both"+bits, func(x, y int64) int64 { return x & y }, nil)
	OpBitwiseOr = bitOp("bitwise_or", "The bits set in either"+bits, func(x, y int64) int64 { return x | y }, nil)
	OpBitwiseXor = bitOp("bitwise_xor", "The bits set in one only"+bits, func(x, y int64) int64 { return x ^ y }, nil)
	OpBitwiseLeftShift = bitOp("bitwise_left_shift", "x shifted left by y bits, elementwise with broadcasting, of integers; 0 if y is "+
		"negative or not below the width.", shiftLeft, inferNoBool)
	OpBitwiseRightShift = bitOp("bitwise_right_shift", "x shifted right by y bits with its sign, elementwise with broadcasting, of integers; "+
		"all bits are the sign if y is negative or not below the width.", shiftRight, inferNoBool)
}

func inferWhere(a Args) []Shape {
	if d := a.In[0].DType(); d != Bool {
		a.Fail(ErrDType, "the condition must be bool, got %v", d)
	}
	return inferPointwise(a)
}

func inferCast(a Args) []Shape {
	from, to := a.In[0].Shape(), a.DType("dtype")
	if !to.Valid() || dtypes[from.dtype].kind == kindComplex || dtypes[to].kind == kindComplex {
		a.Fail(ErrDType, "there is no conversion from %v to %v", from.dtype, to)
	}
	return []Shape{from.WithDType(to)}
}

// atan2 keeps the sign that math.Atan2 loses where y/x is less than the smallest
// number.
func atan2(y, x float64) float64 { return math.Copysign(math.Atan2(math.Abs(y), x), y) }

func maximum(x, y float64) float64 {
	if x != x || x >= y {
		return x
	}
	return y // also when y is NaN
}

func minimum(x, y float64) float64 {
	if x != x || x <= y {
		return x
	}
	return y
}

// floorDiv is ATen's div_floor_floating: exact where ⌊x/y⌋ of a rounded quotient
// is not.
func floorDiv(x, y float64) float64 {
	if y == 0 {
		return x / y
	}
	mod := math.Mod(x, y)
	q := (x - mod) / y
	if mod != 0 && (y < 0) != (mod < 0) {
		q--
	}
	if q == 0 {
		return math.Copysign(0, x/y)
	}
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return f
}

// remainder is what Python's % gives.
func remainder(x, y float64) float64 {
	mod := math.Mod(x, y)
	if mod != 0 && (y < 0) != (mod < 0) {
		mod += y
	}
	return mod
}

func divisor(y int64) int64 {
	if y == 0 {
		panic(ErrZeroDivision)
	}
	return y
}

func truncDivInt(x, y int64) int64 { return x / divisor(y) }
func fmodInt(x, y int64) int64     { return x % divisor(y) }

func floorDivInt(x, y int64) int64 {
	q := x / divisor(y)
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func remainderInt(x, y int64) int64 {
	m := x % divisor(y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m
}

func powInt(x, y int64) int64 {
	if y < 0 {
		switch {
		case x == 1 || (x == -1 && y&1 == 0):
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	p := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 != 0 {
			p *= x
		}
		x *= x
	}
	return p
}

// Shifts by the width of a dtype narrower than 64 bits need no case of their
// own: x is sign-extended, and the low bits of the result are kept.
func shiftLeft(x, y int64) int64 {
	if y < 0 {
		return 0
	}
	return x << uint64(y)
}

func shiftRight(x, y int64) int64 {
	if y < 0 {
		y = 63
	}
	return x >> uint64(y)
}
