package ir

import "math"

// Elementary and special functions of floats, elementwise. Gradients follow ATen's derivatives.yaml.

// Where gradients of functions are tried that are not defined, or not smooth, everywhere.
var (
	unitDomain     = [][2]float64{{-0.9, 0.9}}
	positiveDomain = [][2]float64{{0.2, 4}}
)

func init() {
	initExponentials()
	initLogarithms()
	initRoots()
	initErrorFunctions()
	initTrigonometry()
	initInverses()
	initHyperbolics()
}

func initExponentials() {
	floatUnary("exp", "eˣ", Spec{
		Scalar: Scalar{F1: math.Exp}, ULPs: 2,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, y) }),
		Complex: ofParts(complexExp),
	})
	floatUnary("exp2", "2ˣ", Spec{
		Scalar: Scalar{F1: math.Exp2}, ULPs: 2,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.scale(b.Mul(g, y), math.Ln2) }),
	})
	floatUnary("expm1", "eˣ - 1, precise near 0", Spec{
		Scalar: Scalar{F1: math.Expm1}, ULPs: 2,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.shift(y, 1)) }),
	})
	floatUnary("sigmoid", "1/(1 + e⁻ˣ)", Spec{
		Scalar: Scalar{F1: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }}, ULPs: 3,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Mul(b.oneMinus(y), y)) }),
	})
}

func initLogarithms() {
	floatUnary("log", "The natural logarithm", Spec{
		Scalar: Scalar{F1: normal(math.Log)}, ULPs: 2, Domain: positiveDomain,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, x) }),
		Complex: ofParts(complexLog),
	})
	floatUnary("log2", "The logarithm to base 2", Spec{
		Scalar: Scalar{F1: log2}, ULPs: 2, Domain: positiveDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.scale(x, math.Ln2)) }),
	})
	floatUnary("log10", "The logarithm to base 10", Spec{
		Scalar: Scalar{F1: normal(math.Log10)}, ULPs: 2, Domain: positiveDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.scale(x, math.Ln10)) }),
	})
	floatUnary("log1p", "log(1 + x), precise near 0", Spec{
		Scalar: Scalar{F1: math.Log1p}, ULPs: 2, Domain: [][2]float64{{-0.8, 4}},
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.shift(x, 1)) }),
	})
	register("xlogy(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc:       "x·log(y), 0 where x is 0 unless y is NaN, elementwise with broadcasting; integers and bool give f32. ATen's xlogy.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.xlogy(in[0], in[1]) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x, y := in[0], in[1]
			zero := b.zeroOf(g)
			flat := b.logicalAnd(b.eq(x, zero), b.le(y, zero))
			return []Value{b.Where(flat, zero, b.xlogy(g, y)), b.Div(b.Mul(g, x), y)}
		}),
		Domain: [][2]float64{{0.3, 2}, {0.3, 2}},
	})
	register("logaddexp(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "log(eˣ + eʸ) of floats without overflow, elementwise with broadcasting. ATen's logaddexp.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.logAddExp(in[0], in[1], opExp, 1) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return b.vjpLogAddExp(in[0], in[1], g, 1)
		}),
	})
	register("logaddexp2(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "log2(2ˣ + 2ʸ) of floats without overflow, elementwise with broadcasting. ATen's logaddexp2.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.logAddExp(in[0], in[1], opExp2, 1/math.Ln2) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return b.vjpLogAddExp(in[0], in[1], g, math.Ln2)
		}),
	})
	register("logit(Tensor self, float? eps=None) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "log(x/(1-x)), elementwise, of x limited to [eps, 1-eps] if eps is given; integers and bool give f32. ATen's logit.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			x := in[0]
			if eps, ok := a.OptFloat("eps"); ok {
				x = b.clamped(x, b.Const(eps, x.DType()), b.Const(1-eps, x.DType()))
			}
			return b.log(b.Div(x, b.oneMinus(x)))
		}),
		VJP:    compositeVJP(vjpLogit),
		Domain: [][2]float64{{0.1, 0.9}},
	})
}

func initRoots() {
	floatUnary("sqrt", "√x", Spec{
		Scalar: Scalar{F1: math.Sqrt}, Cost: CostDivision, Domain: positiveDomain,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.scale(y, 2)) }),
		Complex: ofParts(complexSqrt),
	})
	floatUnary("rsqrt", "1/√x", Spec{
		Scalar: Scalar{F1: func(x float64) float64 { return 1 / math.Sqrt(x) }}, ULPs: 2, Domain: positiveDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(b.scale(g, -0.5), b.Mul(y, b.Mul(y, y))) }),
	})
}

func initErrorFunctions() {
	floatUnary("erf", "The error function", Spec{
		Scalar: Scalar{F1: math.Erf}, ULPs: 2,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value {
			return b.Mul(b.scale(b.Exp(b.Neg(b.Mul(x, x))), 2/math.SqrtPi), g)
		}),
	})
	floatUnary("erfc", "1 - erf(x), precise where erf is nearly 1", Spec{
		Scalar: Scalar{F1: math.Erfc}, ULPs: 4, ULPs64: 8,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value {
			return b.Mul(b.scale(b.Exp(b.Neg(b.Mul(x, x))), -2/math.SqrtPi), g)
		}),
	})
	floatUnary("special_ndtr", "The distribution function of the standard normal distribution, precise where that is nearly 0", Spec{
		Scalar: Scalar{F1: normalCDF}, ULPs: 4, ULPs64: 8, Domain: [][2]float64{{-4, 4}},
		VJP: vjp1(func(b *Builder, x, y, g Value) Value {
			return b.Mul(b.scale(b.Exp(b.scale(b.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi)), g)
		}),
	})
	floatUnary("erfinv", "The inverse of erf: ±∞ at ±1, NaN beyond", Spec{
		Scalar: Scalar{F1: math.Erfinv}, ULPs: 2, ULPs64: 16, Domain: unitDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value {
			return b.Mul(b.scale(b.Exp(b.Mul(y, y)), math.SqrtPi/2), g)
		}),
	})
}

// normalCDF is erfc(-x/√2)/2. What rounding the argument of erfc loses is made up for by the slope, which is nearly
// -2z·erfc(z) where it matters.
func normalCDF(x float64) float64 {
	const root, rest = math.Sqrt2 / 2, -4.833646656726457e-17 // 1/√2 and what that lacks
	z := -x * root
	y := math.Erfc(z) / 2
	if !(z > 0 && z < 30) {
		return y
	}
	lost := math.FMA(-x, root, -z) - x*rest
	return y - y*2*z*lost
}

func initTrigonometry() {
	floatUnary("sin", "The sine", Spec{
		Scalar: Scalar{F1: sin}, ULPs: 2, ULPs64: 4,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.cos(x)) }),
		Complex: ofParts(complexSin),
	})
	floatUnary("cos", "The cosine", Spec{
		Scalar: Scalar{F1: cos}, ULPs: 2, ULPs64: 4,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.Neg(b.sin(x))) }),
		Complex: ofParts(complexCos),
	})
	floatUnary("tan", "The tangent", Spec{
		Scalar: Scalar{F1: tan}, ULPs: 4, ULPs64: 4, Domain: [][2]float64{{-1.2, 1.2}},
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.shift(b.Mul(y, y), 1)) }),
	})
	register("sinc(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "sin(πx)/(πx), 1 at 0, elementwise; integers and bool give f32. ATen's sinc.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			x := in[0]
			px := b.scale(x, math.Pi)
			return b.Where(b.eq(x, b.zeroOf(x)), b.Const(1, x.DType()), b.Div(b.sin(px), px))
		}),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			px := b.scale(x, math.Pi)
			square := b.Mul(px, x)
			slope := b.Div(b.Sub(b.Mul(px, b.cos(px)), b.sin(px)), square)
			return []Value{b.Where(b.eq(square, b.zeroOf(x)), b.zeroOf(x), b.Mul(g, slope))}
		}),
		Domain: [][2]float64{{0.3, 2}},
	})
	angle := func(name, doc string, factor float64) {
		register(name+"(Tensor self) -> Tensor", Spec{
			Category: Pointwise, Promote: PromoteIntToFloat,
			Doc:       doc + ", elementwise; integers and bool give f32. ATen's " + name + ".",
			Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.scale(in[0], factor) }),
		})
	}
	angle("deg2rad", "x·π/180", math.Pi/180)
	angle("rad2deg", "x·180/π", 180/math.Pi)
}

func initInverses() {
	floatUnary("asin", "The inverse sine", Spec{
		Scalar: Scalar{F1: asin}, ULPs: 2, Domain: unitDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.rsqrt(b.oneMinus(b.Mul(x, x)))) }),
	})
	floatUnary("acos", "The inverse cosine", Spec{
		Scalar: Scalar{F1: acos}, ULPs: 2, Domain: unitDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Neg(b.Mul(g, b.rsqrt(b.oneMinus(b.Mul(x, x))))) }),
	})
	floatUnary("atan", "The inverse tangent", Spec{
		Scalar: Scalar{F1: math.Atan}, ULPs: 2,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.shift(b.Mul(x, x), 1)) }),
	})
	binaryRow("atan2", "The angle of the point (other, self), elementwise with broadcasting; integers and bool give f32.", Spec{
		Scalar: Scalar{F2: atan2}, Promote: PromoteIntToFloat, ULPs: 3, Domain: [][2]float64{{0.5, 2}, {-2, -0.5}},
		VJP: vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) {
			zero := b.zeroOf(g)
			r2 := b.Add(b.Mul(x, x), b.Mul(y, y))
			s := b.Where(b.eq(r2, zero), zero, b.Div(g, r2)) // at the origin the angle has no slope
			return b.Mul(s, y), b.Mul(s, b.Neg(x))
		}),
	})
}

func initHyperbolics() {
	floatUnary("sinh", "The hyperbolic sine", Spec{
		Scalar: Scalar{F1: sinh}, ULPs: 3,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.cosh(x)) }),
	})
	floatUnary("cosh", "The hyperbolic cosine", Spec{
		Scalar: Scalar{F1: cosh}, ULPs: 3,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.sinh(x)) }),
	})
	floatUnary("tanh", "The hyperbolic tangent", Spec{
		Scalar: Scalar{F1: math.Tanh}, ULPs: 2,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.oneMinus(b.Mul(y, y))) }),
	})
	floatUnary("asinh", "The inverse hyperbolic sine", Spec{
		Scalar: Scalar{F1: math.Asinh}, ULPs: 3,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.rsqrt(b.shift(b.Mul(x, x), 1))) }),
	})
	floatUnary("acosh", "The inverse hyperbolic cosine", Spec{
		Scalar: Scalar{F1: math.Acosh}, ULPs: 4, Domain: [][2]float64{{1.2, 4}},
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.rsqrt(b.shift(b.Mul(x, x), -1))) }),
	})
	floatUnary("atanh", "The inverse hyperbolic tangent", Spec{
		Scalar: Scalar{F1: math.Atanh}, ULPs: 3, Domain: unitDomain,
		VJP: vjp1(func(b *Builder, x, y, g Value) Value { return b.Div(g, b.oneMinus(b.Mul(x, x))) }),
	})
}

func (b *Builder) xlogy(x, y Value) Value {
	zero := b.zeroOf(x)
	z := b.Where(b.eq(x, zero), zero, b.Mul(x, b.log(y)))
	return b.Where(b.isNaN(y), y, z)
}

// logAddExp is max(x, y) + log1p(exp(-|x-y|))·unit; equal infinities are their
// own sum, which the difference cannot tell.
func (b *Builder) logAddExp(x, y Value, exp Op, unit float64) Value {
	tail := b.log1p(b.Unary(exp, b.Neg(b.abs(b.Sub(x, y)))))
	if unit != 1 {
		tail = b.scale(tail, unit)
	}
	same := b.logicalAnd(b.eq(x, y), b.isInf(x))
	return b.Where(same, x, b.Add(b.maximum(x, y), tail))
}

// vjpLogAddExp shares the cotangent by the sigmoid of the difference.
func (b *Builder) vjpLogAddExp(x, y, g Value, ln float64) []Value {
	d := b.Sub(x, y)
	if ln != 1 {
		d = b.scale(d, ln)
	}
	return []Value{b.Mul(g, b.sigmoid(d)), b.Mul(g, b.sigmoid(b.Neg(d)))}
}

// vjpLogit is g/(x(1-x)) in the domain; beyond it NaN, or 0 where eps limits x.
func vjpLogit(b *Builder, a Args, in []Value, out, g Value) []Value {
	x := in[0]
	gx := b.Div(g, b.Mul(x, b.oneMinus(x)))
	lo, outside := 0.0, math.NaN()
	if eps, ok := a.OptFloat("eps"); ok {
		lo, outside = eps, 0
	}
	limit := func(v float64) Value { return b.Const(v, x.DType()) }
	beyond := b.logicalOr(b.lt(x, limit(lo)), b.gt(x, limit(1-lo)))
	return []Value{b.Where(beyond, limit(outside), gx)}
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

// asin and acos keep their digits near 1, where those of package math lose some.
func asin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }
func acos(x float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x)) }

// atan2 keeps the sign that math.Atan2 loses where y/x is less than the smallest
// number.
func atan2(y, x float64) float64 { return math.Copysign(math.Atan2(math.Abs(y), x), y) }
