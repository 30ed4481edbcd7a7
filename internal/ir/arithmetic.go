package ir

import "math"

// Arithmetic, rounding and division, elementwise. Gradients follow ATen's derivatives.yaml.

// aroundQuotient is where gradients of division are tried: the quotient stays between two integers.
var aroundQuotient = [][2]float64{{4.1, 4.4}, {1.1, 1.3}}

func init() {
	initSigns()
	initSums()
	initProducts()
	initExtremes()
	initRounding()
	initDivision()
}

func initSigns() {
	unaryRow("neg", "-x, elementwise, wrapping for integers; bool is not defined.", Spec{
		Scalar: Scalar{F1: func(x float64) float64 { return -x }, I1: func(x int64) int64 { return -x }},
		Infer:  noBool("; use logical_not to invert a mask"),
		Cost:   CostArithmetic, Exact: true, Involution: true,
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Neg(g) }),
		Complex: pairwise("neg"),
	})
	unaryRow("abs", "|x|, elementwise; the least integer stays negative, bool is not defined. The gradient at 0 is 0.", Spec{
		Scalar: Scalar{F1: math.Abs, I1: func(x int64) int64 { return max(x, -x) }},
		Infer:  noBool(""),
		Cost:   CostArithmetic, Exact: true, Domain: [][2]float64{{0.1, 2}},
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(g, b.sign(x)) }),
		Complex: complexAbs,
	})
	unaryRow("sign", "-1, 0 or 1, elementwise; 0 for NaN, bool stays as it is.", Spec{
		Scalar: Scalar{
			F1: func(x float64) float64 { return b2f(x > 0) - b2f(x < 0) },
			I1: func(x int64) int64 { return b2i(x > 0) - b2i(x < 0) },
		},
		Cost: CostArithmetic, Exact: true, Domain: [][2]float64{{0.1, 2}},
		VJP: vjpZero,
	})
	unaryRow("relu", "max(x, 0), elementwise; NaN stays, bool is not defined. The gradient at 0 is 0.", Spec{
		Scalar: Scalar{F1: relu, I1: func(x int64) int64 { return max(x, 0) }},
		Infer:  noBool(""),
		Cost:   CostArithmetic, Exact: true, Domain: [][2]float64{{0.1, 2}},
		VJP: vjp1(func(b *Builder, x, y, g Value) Value {
			zero := b.zeroOf(g)
			return b.Where(b.le(y, zero), zero, g)
		}),
	})
	register("copysign(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "|x| with the sign of y, elementwise with broadcasting; zeros and NaNs have signs. Integers and bool give f32. ATen's copysign.",
		Decompose: func(b *Builder, a Args) []Value {
			x, y := b.abs(a.In[0]), a.In[1]
			return []Value{b.Where(b.signbit(y), b.Neg(x), x)}
		},
		Domain: [][2]float64{{0.3, 2}, {-2, -0.3}},
		VJP: vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) {
			ratio := b.Where(b.eq(x, b.zeroOf(x)), b.zeroOf(x), b.Div(z, x))
			return b.Mul(g, ratio), b.fullLike(y, 0)
		}),
	})
}

func initSums() {
	binaryRow("add", "x + y, elementwise with broadcasting; integers wrap, for bool the logical or.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x + y }, I2: func(x, y int64) int64 { return x + y }},
		Cost:   CostArithmetic, Neutral: Neutral{Of: EitherInteger, Value: 0},
		VJP:     vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, g }),
		Complex: pairwise("add"),
	})
	binaryRow("sub", "x - y, elementwise with broadcasting; integers wrap, two bools are not defined.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x - y }, I2: func(x, y int64) int64 { return x - y }},
		Infer:  noBool("; use logical_xor"),
		Cost:   CostArithmetic, Neutral: Neutral{Of: SecondOperand, Value: 0},
		VJP:     vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, b.Neg(g) }),
		Complex: pairwise("sub"),
	})
}

func initProducts() {
	binaryRow("mul", "x · y, elementwise with broadcasting; integers wrap, for bool the logical and.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x * y }, I2: func(x, y int64) int64 { return x * y }},
		Cost:   CostArithmetic, Neutral: Neutral{Of: EitherOperand, Value: 1},
		VJP:     vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return b.Mul(g, y), b.Mul(g, x) }),
		Complex: complexMul,
	})
	register("square(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Doc: "x², elementwise; integers wrap, bool gives i64. ATen's square.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			if x.DType() == Bool {
				x = b.Cast(x, I64)
			}
			return []Value{b.Mul(x, x)}
		},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.scale(in[0], 2))}
		}),
	})
	register("hypot(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "√(x² + y²) of floats without overflow, elementwise with broadcasting; an infinity wins over NaN. ATen's hypot.",
		Decompose: floatComposite(hypot), Domain: [][2]float64{{0.3, 2}, {0.3, 2}},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			s := b.Div(g, out)
			return []Value{b.Mul(s, in[0]), b.Mul(s, in[1])}
		}),
	})
	binaryRowOf("pow", "exponent", "x to the power y, elementwise with broadcasting. Integers wrap; a negative exponent of integers gives 0 "+
		"but for bases 1 and -1, and is an error if it is a number. Two bools are not defined. The numbers 2, 3 and, for floats, ±0.5, -1 and -2 "+
		"are recorded as products, square roots and reciprocals, so the power 0.5 of -∞ is NaN; powers of the number 2 that are floats as exp2.", Spec{
		Scalar: Scalar{F2: pow, I2: powInt}, Infer: noBool(""),
		Numbers: map[string]NumberUse{"exponent": NumberExponent}, Known: knownPower, KnownFirst: knownBase,
		ULPs: 4, ULPs64: 4, Neutral: Neutral{Of: SecondOperand, Value: 1}, Domain: [][2]float64{{0.3, 2}, {-2, 2}},
		VJP: vjp2(vjpPow),
	})
}

func initExtremes() {
	binaryRow("maximum", "The larger of x and y, elementwise with broadcasting; NaN wins. Equal operands share the gradient.", Spec{
		Scalar: Scalar{F2: maximum, I2: func(x, y int64) int64 { return max(x, y) }},
		Cost:   CostArithmetic, Exact: true, Domain: [][2]float64{{-2, -0.1}, {0.1, 1}},
		VJP: vjp2(vjpMaximum),
	})
	binaryRow("minimum", "The smaller of x and y, elementwise with broadcasting; NaN wins. Equal operands share the gradient.", Spec{
		Scalar: Scalar{F2: minimum, I2: func(x, y int64) int64 { return min(x, y) }},
		Cost:   CostArithmetic, Exact: true, Domain: [][2]float64{{-2, -0.1}, {0.1, 1}},
		VJP: vjp2(vjpMinimum),
	})
	floatExtremum("fmax", "larger", (*Builder).maximum, (*Builder).gt)
	floatExtremum("fmin", "smaller", (*Builder).minimum, (*Builder).lt)
}

// rounding registers a function that rounds to an integer; integers stay as they are.
func rounding(name, what string, f func(float64) float64, domain [2]float64) {
	unaryRow(name, what+", elementwise; integers stay as they are, bool is not defined.", Spec{
		Scalar: Scalar{F1: f, I1: func(x int64) int64 { return x }}, Infer: noBool(""),
		Cost: CostRounding, Domain: [][2]float64{domain},
		VJP: vjpZero,
	})
}

func initRounding() {
	rounding("floor", "The largest integer not above x", math.Floor, [2]float64{0.1, 0.9})
	rounding("ceil", "The smallest integer not below x", math.Ceil, [2]float64{0.1, 0.9})
	rounding("round", "The integer nearest to x, the even one of two", math.RoundToEven, [2]float64{0.6, 0.9})
	rounding("trunc", "x without its fraction", math.Trunc, [2]float64{0.1, 0.9})
	register("frac(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Doc: "x - trunc(x) of floats, elementwise. ATen's frac.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.Sub(in[0], b.trunc(in[0])) }),
		Domain:    [][2]float64{{0.1, 0.9}},
		VJP:       func(b *Builder, a Args, out, grad []Value) []Value { return []Value{grad[0]} },
	})
}

func initDivision() {
	const zero = " An integer divisor of 0 is an error at run time (ErrZeroDivision); two bools are not defined."
	binaryRow("div", "x / y, elementwise with broadcasting; integers and bool give f32.", Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return x / y }}, Promote: PromoteIntToFloat,
		Cost: CostDivision, Neutral: Neutral{Of: SecondOperand, Value: 1}, Domain: [][2]float64{{-2, 2}, {0.5, 2}},
		VJP:     vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return b.Div(g, y), b.Mul(b.Neg(g), b.Div(z, y)) }),
		Complex: complexDiv,
	})
	floatUnary("reciprocal", "1/x", Spec{
		Scalar: Scalar{F1: func(x float64) float64 { return 1 / x }},
		Cost:   CostDivision, Domain: [][2]float64{{0.2, 2}},
		VJP:     vjp1(func(b *Builder, x, y, g Value) Value { return b.Mul(b.Neg(g), b.Mul(y, y)) }),
		Complex: complexReciprocal,
	})
	binaryRow("floor_divide", "The largest integer not above x / y, elementwise with broadcasting, in the operands' dtype; "+
		"div with rounding_mode='floor'."+zero, Spec{
		Scalar: Scalar{F2: floorDiv, I2: floorDivInt}, Infer: noBool(""), Known: knownShift,
		Divides: true, Domain: aroundQuotient,
		VJP: vjpZero,
	})
	binaryRow("trunc_divide", "x / y without its fraction, elementwise with broadcasting, in the operands' dtype; "+
		"ATen's div with rounding_mode='trunc'."+zero, Spec{
		Scalar: Scalar{F2: func(x, y float64) float64 { return math.Trunc(x / y) }, I2: truncDivInt}, Infer: noBool(""),
		Divides: true, Domain: aroundQuotient,
		VJP: vjpZero,
	})
	binaryRow("remainder", "x - y·⌊x/y⌋, elementwise with broadcasting: the sign is the divisor's, as Python's %."+zero, Spec{
		Scalar: Scalar{F2: remainder, I2: remainderInt}, Infer: noBool(""), Known: knownMask,
		Divides: true, Domain: aroundQuotient,
		VJP: vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, b.Mul(b.Neg(g), b.floorDivide(x, y)) }),
	})
	binaryRow("fmod", "x - y·trunc(x/y), elementwise with broadcasting: the sign is the dividend's, as C's fmod."+zero, Spec{
		Scalar: Scalar{F2: math.Mod, I2: fmodInt}, Infer: noBool(""),
		Divides: true, Domain: aroundQuotient,
		VJP: vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) { return g, b.Mul(b.Neg(g), b.truncDivide(x, y)) }),
	})
}

func hypot(b *Builder, a Args, in []Value) Value {
	x, y := b.abs(in[0]), b.abs(in[1])
	m := b.maximum(x, y)
	r := b.Div(b.minimum(x, y), m)
	h := b.Mul(m, b.sqrt(b.shift(b.Mul(r, r), 1)))
	h = b.Where(b.eq(m, b.zeroOf(m)), m, h)
	return b.Where(b.isInf(x), x, b.Where(b.isInf(y), y, h))
}

// floatExtremum registers an extremum of which NaN is never the result unless both operands are NaN.
func floatExtremum(name, which string, extremum, wins func(b *Builder, x, y Value) Value) {
	register(name+"(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc: "The " + which + " of x and y, elementwise with broadcasting; a number wins over NaN. Equal operands share the gradient. ATen's " + name + ".",
		Decompose: func(b *Builder, a Args) []Value {
			x, y := a.In[0], a.In[1]
			m := extremum(b, x, y)
			if x.DType().IsFloat() {
				m = b.Where(b.isNaN(y), x, b.Where(b.isNaN(x), y, m))
			}
			return []Value{m}
		},
		Domain: [][2]float64{{0.1, 1}, {-2, -0.1}},
		VJP: vjp2(func(b *Builder, x, y, z, g Value) (gx, gy Value) {
			zero := b.zeroOf(g)
			half := b.scale(g, 0.5)
			tie := b.eq(x, y)
			won := b.logicalOr(wins(b, x, y), b.isNaN(y))
			return b.Where(tie, half, b.Where(won, g, zero)), b.Where(tie, half, b.Where(won, zero, g))
		}),
	})
}

// vjpPow chooses 0 where the formulas would multiply 0 by an infinity: for the
// base where the exponent is 0, for the exponent where the base is 0 and the
// exponent is not negative.
func vjpPow(b *Builder, x, y, z, g Value) (gx, gy Value) {
	zero := b.zeroOf(g)
	dx := b.Mul(y, b.pow(x, b.shift(y, -1)))
	gx = b.Where(b.eq(y, zero), zero, b.Mul(g, dx))
	flat := b.logicalAnd(b.eq(x, zero), b.ge(y, zero))
	gy = b.Mul(g, b.Where(flat, zero, b.Mul(z, b.log(x))))
	return gx, gy
}

func vjpMaximum(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return b.chosen(g, b.eq(x, y), b.lt(x, y), b.gt(x, y))
}

func vjpMinimum(b *Builder, x, y, z, g Value) (gx, gy Value) {
	return b.chosen(g, b.eq(x, y), b.gt(x, y), b.lt(x, y))
}

// chosen gives the cotangent to the operand that won, half to each on a tie,
// and to both where the order is not defined (NaN).
func (b *Builder) chosen(g, tie, xLost, yLost Value) (gx, gy Value) {
	zero := b.zeroOf(g)
	share := b.Where(tie, b.scale(g, 0.5), g)
	return b.Where(xLost, zero, share), b.Where(yLost, zero, share)
}

// relu keeps -0 and NaN, as ATen's clamp at 0 does.
func relu(x float64) float64 {
	if x < 0 {
		return 0
	}
	return x
}

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

// unscaled takes a product of widened bfloat16 with a number apart, also one that is reshaped and expanded, as the
// gradient of a sum is; what it was widened from is widened last then. The number is nil for anything else.
func (b *Builder) unscaled(x Value) (y, factor Value) {
	from := x
	var views []Value
	for from.Node.Op() == opReshape || from.Node.Op() == opExpand {
		views = append(views, from)
		from = from.Node.Inputs()[0]
	}
	y = from
	if from.Node.Op() == opMul {
		if in := from.Node.Inputs(); in[1].Rank() == 0 && in[1].DType() == F32 {
			y, factor = in[0], in[1]
		}
	}
	narrow, ok := widenedFrom(y)
	if !ok {
		return x, Value{}
	}
	for i := len(views) - 1; i >= 0; i-- {
		if dims := views[i].Shape().Dims(); views[i].Node.Op() == opReshape {
			narrow = b.Reshape(narrow, dims...)
		} else {
			narrow = b.Expand(narrow, dims...)
		}
		y = b.Cast(narrow, F32)
	}
	return y, factor
}

// addends returns the operands of a value that is a sum of two of its own shape.
func addends(v Value) (x, y Value, ok bool) {
	n := v.Node
	if n.IsLeaf() || n.Op() != opAdd {
		return x, y, false
	}
	x, y = n.Inputs()[0], n.Inputs()[1]
	return x, y, x.Shape() == v.Shape() && y.Shape() == v.Shape()
}
