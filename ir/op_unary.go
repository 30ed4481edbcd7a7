package ir

import "math"

// The pointwise primitives of one operand: what they mean on single elements.
// Their gradients are in vjp_unary.go.

// Reasons why pointwise ops have no gradient.
const (
	noGradBool = "the result is bool"
	noGradBits = "the operands and the result are integers"
)

// unaryRow is what the rows of this file have in common. A row with Scalar.I1
// keeps integers, one without turns them into DefaultDType.
func unaryRow(name, doc string, s Spec) Op {
	s.Category, s.Doc = Pointwise, doc+" ATen's "+name+"."
	if s.Scalar.I1 == nil {
		s.Promote = PromoteIntToFloat
	}
	return register(name+"(Tensor self) -> Tensor", s)
}

// floatUnary makes the row of a function of floats; integers and bool compute
// in DefaultDType.
func floatUnary(name, formula string, f func(float64) float64, vjp unaryVJP) Op {
	return unaryRow(name, formula+", elementwise; integers and bool give f32.", Spec{
		Scalar: Scalar{F1: f}, VJP: vjp.rule(),
	})
}

// roundingOp makes the row of a function that rounds to an integer; integers
// are returned as they are.
func roundingOp(name, what string, f func(float64) float64) Op {
	return unaryRow(name, what+", elementwise; integers stay as they are, bool is not defined.", Spec{
		Scalar: Scalar{F1: f, I1: func(x int64) int64 { return x }}, Infer: inferNoBool, VJP: vjpZero,
	})
}

// testOp makes the row of a predicate that has a constant answer for integers.
func testOp(name, what string, f func(float64) bool, onInts int64) Op {
	return unaryRow(name, what+", elementwise, as bool.", Spec{
		Scalar:    Scalar{F1: func(x float64) float64 { return b2f(f(x)) }, I1: func(int64) int64 { return onInts }},
		Predicate: true, NoGrad: noGradBool,
	})
}

func init() {
	initUnaryInts()
	initExpLog()
	initTrig()
}

func initUnaryInts() {
	OpNeg = unaryRow("neg", "-x, elementwise, wrapping for integers; bool is not defined.", Spec{
		Scalar: Scalar{F1: func(x float64) float64 { return -x }, I1: func(x int64) int64 { return -x }},
		Infer:  inferNoBool, VJP: unaryVJP(vjpNeg).rule(),
	})
	OpAbs = unaryRow("abs", "|x|, elementwise; the least integer stays negative, bool is not defined. The gradient at 0 is 0.", Spec{
		Scalar: Scalar{F1: math.Abs, I1: func(x int64) int64 { return max(x, -x) }},
		Infer:  inferNoBool, VJP: unaryVJP(vjpAbs).rule(),
	})
	OpSign = unaryRow("sign", "-1, 0 or 1, elementwise; 0 for NaN, bool stays as it is.", Spec{
		Scalar: Scalar{
			F1: func(x float64) float64 { return b2f(x > 0) - b2f(x < 0) },
			I1: func(x int64) int64 { return b2i(x > 0) - b2i(x < 0) },
		},
		VJP: vjpZero,
	})
	OpRelu = unaryRow("relu", "max(x, 0), elementwise; NaN stays, bool is not defined. The gradient at 0 is 0.", Spec{
		Scalar: Scalar{F1: relu, I1: func(x int64) int64 { return max(x, 0) }},
		Infer:  inferNoBool, VJP: unaryVJP(vjpRelu).rule(),
	})
	OpFloor = roundingOp("floor", "The largest integer not above x", math.Floor)
	OpCeil = roundingOp("ceil", "The smallest integer not below x", math.Ceil)
	OpRound = roundingOp("round", "The integer nearest to x, the even one of two", math.RoundToEven)
	OpTrunc = roundingOp("trunc", "x without its fraction", math.Trunc)
	OpIsNaN = testOp("isnan", "Whether x is NaN", math.IsNaN, 0)
	OpIsInf = testOp("isinf", "Whether x is an infinity", func(x float64) bool { return math.IsInf(x, 0) }, 0)
	OpIsFinite = testOp("isfinite", "Whether x is neither infinite nor NaN", func(x float64) bool { return x-x == 0 }, 1)
	OpLogicalNot = unaryRow("logical_not", "Whether x is 0, elementwise, as bool, for every dtype.", Spec{
		Scalar: Scalar{
			F1: func(x float64) float64 { return b2f(x == 0) },
			I1: func(x int64) int64 { return b2i(x == 0) },
		},
		Predicate: true, NoGrad: noGradBool,
	})
	OpBitwiseNot = unaryRow("bitwise_not", "All bits inverted, elementwise; for bool the logical not, for integers -x-1.", Spec{
		Scalar: Scalar{I1: func(x int64) int64 { return ^x }, B1: func(x bool) bool { return !x }},
		NoGrad: noGradBits,
	})
}

func initExpLog() {
	OpExp = floatUnary("exp", "eˣ", math.Exp, vjpExp)
	OpExp2 = floatUnary("exp2", "2ˣ", math.Exp2, vjpExp2)
	OpExpm1 = floatUnary("expm1", "eˣ - 1, precise near 0", math.Expm1, vjpExpm1)
	OpLog = floatUnary("log", "The natural logarithm", normal(math.Log), vjpLog)
	OpLog2 = floatUnary("log2", "The logarithm to base 2", log2, vjpLog2)
	OpLog10 = floatUnary("log10", "The logarithm to base 10", normal(math.Log10), vjpLog10)
	OpLog1p = floatUnary("log1p", "log(1 + x), precise near 0", math.Log1p, vjpLog1p)
	OpSqrt = floatUnary("sqrt", "√x", math.Sqrt, vjpSqrt)
	OpRsqrt = floatUnary("rsqrt", "1/√x", func(x float64) float64 { return 1 / math.Sqrt(x) }, vjpRsqrt)
	OpReciprocal = floatUnary("reciprocal", "1/x", func(x float64) float64 { return 1 / x }, vjpReciprocal)
	OpSigmoid = floatUnary("sigmoid", "1/(1 + e⁻ˣ)", func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, vjpSigmoid)
	OpErf = floatUnary("erf", "The error function", math.Erf, vjpErf)
	OpErfinv = floatUnary("erfinv", "The inverse of erf: ±∞ at ±1, NaN beyond", math.Erfinv, vjpErfinv)
}

func initTrig() {
	OpSin = floatUnary("sin", "The sine", math.Sin, vjpSin)
	OpCos = floatUnary("cos", "The cosine", math.Cos, vjpCos)
	OpTan = floatUnary("tan", "The tangent", math.Tan, vjpTan)
	OpAsin = floatUnary("asin", "The inverse sine", asin, vjpAsin)
	OpAcos = floatUnary("acos", "The inverse cosine", acos, vjpAcos)
	OpAtan = floatUnary("atan", "The inverse tangent", math.Atan, vjpAtan)
	OpSinh = floatUnary("sinh", "The hyperbolic sine", sinh, vjpSinh)
	OpCosh = floatUnary("cosh", "The hyperbolic cosine", cosh, vjpCosh)
	OpTanh = floatUnary("tanh", "The hyperbolic tangent", math.Tanh, vjpTanh)
	OpAsinh = floatUnary("asinh", "The inverse hyperbolic sine", math.Asinh, vjpAsinh)
	OpAcosh = floatUnary("acosh", "The inverse hyperbolic cosine", math.Acosh, vjpAcosh)
	OpAtanh = floatUnary("atanh", "The inverse hyperbolic tangent", math.Atanh, vjpAtanh)
}

// normal makes a logarithm right for subnormal numbers, which math.Log takes for
// larger ones on amd64.
func normal(log func(float64) float64) func(float64) float64 {
	scale := 52 * log(2)
	return func(x float64) float64 {
		if 0 < x && x < 0x1p-1022 {
			return log(x*0x1p52) - scale
		}
		return log(x)
	}
}

// log2 is math.Log2, which is exact for powers of 2 but cancels near 1.
func log2(x float64) float64 {
	if 0.5 < x && x < 2 {
		return math.Log(x) * math.Log2E
	}
	return math.Log2(x)
}

// sinh is math.Sinh, which overflows where eˣ does; eˣ/2 may still be finite.
func sinh(x float64) float64 {
	if math.Abs(x) > 709 {
		return math.Copysign(halfExp(math.Abs(x)), x)
	}
	return math.Sinh(x)
}

// cosh is math.Cosh, with the same repair.
func cosh(x float64) float64 {
	if math.Abs(x) > 709 {
		return halfExp(math.Abs(x))
	}
	return math.Cosh(x)
}

// halfExp is eˣ/2, which overflows later than eˣ.
func halfExp(x float64) float64 {
	e := math.Exp(x / 2)
	return e / 2 * e
}

// relu keeps -0 and NaN, as ATen's clamp at 0 does.
func relu(x float64) float64 {
	if x < 0 {
		return 0
	}
	return x
}

// asin and acos keep their digits near 1, where those of package math lose some.
func asin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }
func acos(x float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x)) }
