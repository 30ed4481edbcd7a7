package ir

import "math"

// Predicates, logic and bits, elementwise.

// test registers a predicate of floats that has a constant answer for integers.
func test(name, goName, what string, f func(float64) bool, onInts int64, onComplex func(*Builder, Args) []Value) {
	unaryRow(name, what+", elementwise, as bool.", Spec{
		GoName: goName,
		Scalar: Scalar{F1: func(x float64) float64 { return b2f(f(x)) }, I1: func(int64) int64 { return onInts }},
		Cost:   CostArithmetic, Predicate: true, SameOnIntegers: true, NoGrad: noGradBool, Complex: onComplex,
	})
}

// comparison registers a predicate of two reals.
func comparison(name, formula string, f func(x, y float64) bool, i func(x, y int64) bool) {
	equality(name, formula, f, i, nil)
}

// equality registers a predicate of two operands, which may be complex.
func equality(name, formula string, f func(x, y float64) bool, i func(x, y int64) bool, onComplex func(*Builder, Args) []Value) {
	binaryRow(name, "Whether "+formula+", elementwise with broadcasting, as bool; the operands meet in one dtype first.", Spec{
		Scalar: Scalar{
			F2: func(x, y float64) float64 { return b2f(f(x, y)) },
			I2: func(x, y int64) int64 { return b2i(i(x, y)) },
		},
		Cost: CostArithmetic, Predicate: true, NoGrad: noGradBool, Complex: onComplex,
	})
}

// bitwise registers an op on the bits of integers.
func bitwise(name, doc string, i func(x, y int64) int64, infer func(Args) []Shape) {
	binaryRow(name, doc, Spec{Scalar: Scalar{I2: i}, Infer: infer, Cost: CostArithmetic, NoGrad: noGradBits})
}

func init() {
	initTests()
	initComparisons()
	initBits()
	initDivisors()
}

func initTests() {
	test("isnan", "IsNaN", "Whether x is NaN", math.IsNaN, 0, anyPart("isnan"))
	test("isinf", "IsInf", "Whether x is an infinity", func(x float64) bool { return math.IsInf(x, 0) }, 0, anyPart("isinf"))
	test("isfinite", "IsFinite", "Whether x is neither infinite nor NaN", func(x float64) bool { return x-x == 0 }, 1, allParts("isfinite"))
	unaryRow("signbit", "Whether the sign of x is set, which it may be for 0 and NaN, too, elementwise, as bool.", Spec{
		Scalar: Scalar{
			F1: func(x float64) float64 { return b2f(math.Signbit(x)) },
			I1: func(x int64) int64 { return b2i(x < 0) },
		},
		Cost: CostArithmetic, Predicate: true, NoGrad: noGradBool,
	})
	unaryRow("logical_not", "Whether x is 0, elementwise, as bool, for every dtype.", Spec{
		Scalar: Scalar{
			F1: func(x float64) float64 { return b2f(x == 0) },
			I1: func(x int64) int64 { return b2i(x == 0) },
		},
		Cost: CostArithmetic, Predicate: true, Involution: true, NoGrad: noGradBool,
	})
	infinity := func(name, which string, side func(b *Builder, x, y Value) Value) {
		register(name+"(Tensor self) -> Tensor", Spec{
			Category: Pointwise, Doc: "Whether x is " + which + " infinity, elementwise, as bool. ATen's " + name + ".", NoGrad: noGradBool,
			Decompose: func(b *Builder, a Args) []Value {
				x := a.In[0]
				if x.DType().IsIntegral() {
					return []Value{b.Full(x.Shape().Dims(), int64(0), Bool)}
				}
				return []Value{b.logicalAnd(b.isInf(x), side(b, x, b.zeroOf(x)))}
			},
		})
	}
	infinity("isposinf", "positive", (*Builder).gt)
	infinity("isneginf", "negative", (*Builder).lt)
}

func initComparisons() {
	equality("eq", "x = y", func(x, y float64) bool { return x == y }, func(x, y int64) bool { return x == y }, allParts("eq"))
	equality("ne", "x ≠ y", func(x, y float64) bool { return x != y }, func(x, y int64) bool { return x != y }, anyPart("ne"))
	comparison("lt", "x < y", func(x, y float64) bool { return x < y }, func(x, y int64) bool { return x < y })
	comparison("le", "x ≤ y", func(x, y float64) bool { return x <= y }, func(x, y int64) bool { return x <= y })
	comparison("gt", "x > y", func(x, y float64) bool { return x > y }, func(x, y int64) bool { return x > y })
	comparison("ge", "x ≥ y", func(x, y float64) bool { return x >= y }, func(x, y int64) bool { return x >= y })
	comparison("logical_and", "both are not 0",
		func(x, y float64) bool { return x != 0 && y != 0 }, func(x, y int64) bool { return x != 0 && y != 0 })
	comparison("logical_or", "one is not 0",
		func(x, y float64) bool { return x != 0 || y != 0 }, func(x, y int64) bool { return x != 0 || y != 0 })
	comparison("logical_xor", "exactly one is not 0",
		func(x, y float64) bool { return (x != 0) != (y != 0) }, func(x, y int64) bool { return (x != 0) != (y != 0) })
}

func initBits() {
	const bits = ", elementwise with broadcasting, of integers or bool."
	unaryRow("bitwise_not", "All bits inverted, elementwise; for bool the logical not, for integers -x-1.", Spec{
		Scalar: Scalar{I1: func(x int64) int64 { return ^x }, B1: func(x bool) bool { return !x }},
		Cost:   CostArithmetic, Involution: true, NoGrad: noGradBits,
	})
	bitwise("bitwise_and", "The bits set in both"+bits, func(x, y int64) int64 { return x & y }, nil)
	bitwise("bitwise_or", "The bits set in either"+bits, func(x, y int64) int64 { return x | y }, nil)
	bitwise("bitwise_xor", "The bits set in one only"+bits, func(x, y int64) int64 { return x ^ y }, nil)
	bitwise("bitwise_left_shift", "x shifted left by y bits, elementwise with broadcasting, of integers; 0 if y is "+
		"negative or not below the width.", shiftLeft, noBool(""))
	bitwise("bitwise_right_shift", "x shifted right by y bits with its sign, elementwise with broadcasting, of integers; "+
		"all bits are the sign if y is negative or not below the width.", shiftRight, noBool(""))
}

func initDivisors() {
	const noBools = ", elementwise with broadcasting, of integers."
	binaryRow("gcd", "The greatest common divisor, not negative; gcd(0, 0) is 0"+noBools, Spec{
		Scalar: Scalar{I2: greatestDivisor}, NoGrad: noGradBits, Infer: noBool(""),
	})
	register("lcm(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault, NoGrad: noGradBits,
		Doc: "The least common multiple, not negative; 0 if one is 0" + noBools + " ATen's lcm.",
		Decompose: func(b *Builder, a Args) []Value {
			x, y, d := a.In[0], a.In[1], a.In[0].DType()
			if d.IsInt() && d.Size() < I32.Size() { // the product is cut to the dtype at the end, as ATen's
				x, y = b.Cast(x, I32), b.Cast(y, I32)
			}
			g := b.Call1(byName["gcd"], []any{x, y})
			none := b.eq(g, b.zeroOf(g))
			quotient := b.truncDivide(x, b.Where(none, b.Const(1, g.DType()), g))
			return []Value{b.Cast(b.Where(none, b.zeroOf(g), b.abs(b.Mul(quotient, y))), d)}
		},
	})
}

func greatestDivisor(x, y int64) int64 {
	for y != 0 {
		x, y = y, x%y
	}
	return max(x, -x)
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
