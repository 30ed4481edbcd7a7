package ir

import "math"

// Special functions, as series and recurrences of other ops. They compute in f64 whatever their operands
// are, since what their parts cancel to would have few digits in f32. Gradients follow ATen's
// derivatives.yaml.

// polygammaMost is the highest derivative of digamma that is computed.
const polygammaMost = 40

func init() {
	initGamma()
	initBessel()
	initNormal()
}

// inF64 applies f to the numbers of x as f64.
func (b *Builder) inF64(x Value, f func(x Value) Value) Value {
	return b.Cast(f(b.Cast(x, F64)), x.DType())
}

// special registers a function of one operand by its f64 form and its derivative, which may use the
// result y; both see operands that are widened already.
func special(name, doc string, domain [][2]float64, f func(b *Builder, x Value) Value, slope func(b *Builder, x, y Value) Value) {
	specialBy(name, doc, domain, func(b *Builder, d DType, x Value) Value {
		return b.inF64(x, func(x Value) Value { return f(b, x) })
	}, slope)
}

// specialBy is special for a function whose form depends on the dtype of the operand. f gets the operand
// widened.
func specialBy(name, doc string, domain [][2]float64, f func(b *Builder, d DType, x Value) Value,
	slope func(b *Builder, x, y Value) Value) {
	register(name+"(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc:       doc + ", elementwise, computed in f64; integers and bool give f32. ATen's " + name + ".",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return f(b, a.In[0].DType(), in[0]) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			s := b.Cast(slope(b, b.Cast(in[0], F64), b.Cast(out, F64)), g.DType())
			return []Value{b.Mul(g, s)}
		}),
		Domain: domain,
	})
}

// polynomial returns Σ c[k]·xᵏ.
func (b *Builder) polynomial(x Value, c []float64) Value {
	sum := b.Const(c[len(c)-1], x.DType())
	for k := len(c) - 2; k >= 0; k-- {
		sum = b.shift(b.Mul(sum, x), c[k])
	}
	return sum
}

func (b *Builder) reciprocalOf(x Value) Value { return b.Div(b.Const(1, x.DType()), x) }

// fraction is x less the nearest integer, of the sign of x where that is 0.
func (b *Builder) fraction(x Value) Value {
	return b.Where(b.lt(b.abs(x), b.Const(0.5, x.DType())), x, b.Sub(x, b.round(x)))
}

// bernoulliNumbers are B₂, B₄, … B₁₆.
var bernoulliNumbers = [...]float64{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510}

// zetaLess1 returns ζ(s) - 1 by Euler and Maclaurin's formula.
func zetaLess1(s float64) float64 {
	const n = 16
	sum := 0.0
	for k := n - 1; k >= 2; k-- {
		sum += math.Pow(float64(k), -s)
	}
	power := math.Pow(n, -s)
	sum += power*n/(s-1) + power/2
	factor := s * power / n
	for j, bernoulli := range bernoulliNumbers {
		sum += bernoulli * factor / factorial(2*j+2)
		factor *= (s + float64(2*j+1)) * (s + float64(2*j+2)) / (n * n)
	}
	return sum
}

func factorial(n int) float64 {
	f := 1.0
	for i := 2; i <= n; i++ {
		f *= float64(i)
	}
	return f
}

func initGamma() {
	gammaDomain := [][2]float64{{0.3, 6}}
	specialBy("lgamma", "log|Γ(x)|, ∞ at 0 and at negative integers", gammaDomain, lgammaOf,
		func(b *Builder, x, y Value) Value { return b.digamma(x) })
	special("digamma", "The derivative of log Γ(x): ∓∞ at ±0, NaN at negative integers", gammaDomain, (*Builder).digamma,
		func(b *Builder, x, y Value) Value { return b.polygamma(1, x) })
	register("polygamma(Tensor self, int n) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "The derivative of order n of digamma, n from 0 to 40, elementwise, computed in f64; integers and bool give f32. ATen's polygamma, " +
			"which has n first.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			return b.inF64(in[0], func(x Value) Value { return b.polygamma(orderOf(a), x) })
		}),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.inF64(in[0], func(x Value) Value { return b.polygamma(orderOf(a)+1, x) }))}
		}),
		Domain: gammaDomain,
	})
}

// orderOf returns the attribute n of polygamma.
func orderOf(a Args) int {
	n := a.Int("n")
	if n < 0 || n > polygammaMost {
		a.Fail(ErrArg, "n is from 0 to %d, not %d", polygammaMost, n)
	}
	return n
}

// lgamma is log|Γ(x)|. Below a half it is the reflection of what lies above; see lgammaAbove.
func (b *Builder) lgamma(x Value) Value {
	half := b.Const(0.5, F64)
	left := b.lt(x, half)
	above := b.lgammaAbove(b.Where(left, b.oneMinus(x), x))
	sine := b.abs(b.sin(b.scale(b.fraction(x), math.Pi)))
	reflected := b.Sub(b.shift(b.Neg(b.log(sine)), math.Log(math.Pi)), above)
	size := b.abs(x)
	tiny := b.lt(size, b.Const(1e-300, F64)) // π·x would lose digits
	out := b.Where(tiny, b.Neg(b.log(size)), b.Where(left, reflected, above))
	infinity := b.Const(math.Inf(1), F64)
	return b.Where(b.eq(size, infinity), infinity, out)
}

// lgammaAbove is log Γ(a) for a from a half on: up to 2.5 by its series at 1 or 2, where it is 0, and
// from there on by Stirling's, after a recurrence where a is small.
func (b *Builder) lgammaAbove(a Value) Value {
	at1 := b.lt(a, b.Const(1.5, F64))
	z := b.Sub(a, b.Where(at1, b.Const(1, F64), b.Const(2, F64)))
	series := make([]float64, 30)
	series[1] = 1 - eulerGamma
	for k := 2; k < len(series); k++ {
		series[k] = zetaLess1(float64(k)) / float64(k)
		if k%2 == 1 {
			series[k] = -series[k]
		}
	}
	near := b.polynomial(z, series)
	near = b.Sub(near, b.Where(at1, b.log1p(z), b.Const(0, F64)))

	small := b.lt(a, b.Const(10, F64))
	product := a
	for k := 1; k < 8; k++ {
		product = b.Mul(product, b.shift(a, float64(k)))
	}
	y := b.Where(small, b.shift(a, 8), a)
	r := b.reciprocalOf(y)
	terms := make([]float64, len(bernoulliNumbers))
	for j, bernoulli := range bernoulliNumbers {
		terms[j] = bernoulli / float64((2*j+1)*(2*j+2))
	}
	log := b.log(y)
	far := b.Sub(b.Mul(y, b.shift(log, -1)), b.scale(log, 0.5))
	far = b.Add(b.shift(far, math.Log(2*math.Pi)/2), b.Mul(r, b.polynomial(b.Mul(r, r), terms)))
	far = b.Sub(far, b.Where(small, b.log(product), b.Const(0, F64)))
	return b.Where(b.le(a, b.Const(2.5, F64)), near, far)
}

// eulerGamma is the limit of the harmonic numbers less the logarithm.
const eulerGamma = 0.57721566490153286060651209008240243

// digamma is by its asymptotic series behind a recurrence, and by reflection below a half.
func (b *Builder) digamma(x Value) Value {
	left := b.lt(x, b.Const(0.5, F64))
	a := b.Where(left, b.oneMinus(x), x)
	small := b.lt(a, b.Const(10, F64))
	sum := b.reciprocalOf(a)
	for k := 1; k < 8; k++ {
		sum = b.Add(sum, b.reciprocalOf(b.shift(a, float64(k))))
	}
	y := b.Where(small, b.shift(a, 8), a)
	r := b.reciprocalOf(y)
	terms := make([]float64, len(bernoulliNumbers)+1)
	for j, bernoulli := range bernoulliNumbers {
		terms[j+1] = bernoulli / float64(2*j+2)
	}
	above := b.Sub(b.Sub(b.log(y), b.scale(r, 0.5)), b.polynomial(b.Mul(r, r), terms))
	above = b.Sub(above, b.Where(small, sum, b.Const(0, F64)))
	part := b.fraction(x)
	reflected := b.Sub(above, b.Div(b.Const(math.Pi, F64), b.tan(b.scale(part, math.Pi))))
	zero := b.Const(0, F64)
	pole := b.logicalAnd(b.eq(part, zero), b.lt(x, zero))
	return b.Where(pole, b.Const(math.NaN(), F64), b.Where(left, reflected, above))
}

// polygamma is the derivative of order n of digamma: a sum of powers with Euler and Maclaurin's
// remainder, and below a half the reflection with the derivative of π·cot(π·x).
func (b *Builder) polygamma(n int, x Value) Value {
	if n == 0 {
		return b.digamma(x)
	}
	left := b.lt(x, b.Const(0.5, F64))
	a := b.Where(left, b.oneMinus(x), x)
	steps := 12 + n
	sum := b.power(b.reciprocalOf(a), n+1)
	for k := 1; k < steps; k++ {
		sum = b.Add(sum, b.power(b.reciprocalOf(b.shift(a, float64(k))), n+1))
	}
	r := b.reciprocalOf(b.shift(a, float64(steps)))
	terms := make([]float64, len(bernoulliNumbers)+1)
	terms[0] = 1 / float64(n)
	rising := float64(n + 1)
	for j, bernoulli := range bernoulliNumbers {
		terms[j+1] = bernoulli * rising / factorial(2*j+2)
		rising *= float64(n+2*j+2) * float64(n+2*j+3)
	}
	rest := b.Mul(b.power(r, n), b.Add(b.polynomial(b.Mul(r, r), terms), b.scale(r, 0.5)))
	above := b.scale(b.Add(sum, rest), factorial(n))
	if n%2 == 0 {
		above = b.Neg(above)
	}
	turned := above
	if n%2 == 1 {
		turned = b.Neg(above)
	}
	cot := b.reciprocalOf(b.tan(b.scale(b.fraction(x), math.Pi)))
	return b.Where(left, b.Sub(turned, b.cotDerivative(n, cot)), above)
}

// power returns xⁿ for n from 1 on.
func (b *Builder) power(x Value, n int) Value {
	var out Value
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			if out.IsNil() {
				out = x
			} else {
				out = b.Mul(out, x)
			}
		}
		if n > 1 {
			x = b.Mul(x, x)
		}
	}
	return out
}

// cotDerivative is the derivative of order n of π·cot(π·x), a polynomial of the cotangent: that of
// cᵏ is -k·π·(cᵏ⁻¹ + cᵏ⁺¹). Every second coefficient is 0, and the others have one sign.
func (b *Builder) cotDerivative(n int, cot Value) Value {
	c := []float64{0, 1}
	for range n {
		next := make([]float64, len(c)+1)
		for k := 1; k < len(c); k++ {
			next[k-1] -= float64(k) * c[k]
			next[k+1] -= float64(k) * c[k]
		}
		c = next
	}
	odd := (n + 1) % 2
	var terms []float64
	for k := odd; k < len(c); k += 2 {
		terms = append(terms, c[k]*math.Pow(math.Pi, float64(n+1)))
	}
	out := b.polynomial(b.Mul(cot, cot), terms)
	if odd == 1 {
		out = b.Mul(out, cot)
	}
	return out
}

func initBessel() {
	near := [][2]float64{{-4, 4}}
	special("i0", "The modified Bessel function of the first kind of order 0", near,
		func(b *Builder, x Value) Value { return b.bessel(0, x, false) },
		func(b *Builder, x, y Value) Value { return b.bessel(1, x, false) })
	special("special_i0e", "i0(x)·e^-|x|", near,
		func(b *Builder, x Value) Value { return b.bessel(0, x, true) },
		func(b *Builder, x, y Value) Value { return b.Sub(b.bessel(1, x, true), b.Mul(b.sign(x), y)) })
	specialBy("special_i1", "The modified Bessel function of the first kind of order 1", near,
		i1Of,
		func(b *Builder, x, y Value) Value { return b.Sub(b.bessel(0, x, false), b.ratioAt0(y, x)) })
	specialBy("special_i1e", "special_i1(x)·e^-|x|", near,
		i1eOf,
		func(b *Builder, x, y Value) Value {
			return b.Sub(b.Sub(b.bessel(0, x, true), b.Mul(b.sign(x), y)), b.ratioAt0(y, x))
		})
}

// ratioAt0 is y/x for a y of special_i1, which is half of x near 0.
func (b *Builder) ratioAt0(y, x Value) Value {
	return b.Where(b.lt(b.abs(x), b.Const(1e-100, F64)), b.Const(0.5, F64), b.Div(y, x))
}

// bessel is the modified Bessel function of order 0 or 1, times e^-|x| if it is scaled: by powers up to
// 20, and from there on by Hankel's expansion.
func (b *Builder) bessel(order int, x Value, scaled bool) Value {
	t := b.abs(x)
	powers := make([]float64, 42)
	hankel := make([]float64, 26)
	for k := range powers {
		powers[k] = 1 / (factorial(k) * factorial(k+order))
	}
	hankel[0] = 1
	for k := 1; k < len(hankel); k++ {
		hankel[k] = hankel[k-1] * float64((2*k-1)*(2*k-1)-4*order*order) / float64(8*k)
	}
	half := b.scale(t, 0.5)
	near := b.polynomial(b.Mul(half, half), powers)
	if order == 1 {
		near = b.Mul(near, half)
	}
	far := b.Div(b.polynomial(b.reciprocalOf(t), hankel), b.sqrt(b.scale(t, 2*math.Pi)))
	if scaled {
		near = b.Mul(near, b.Exp(b.Neg(t)))
	} else {
		root := b.Exp(half) // in two steps: the function leaves the range later than eˣ
		far = b.Mul(b.Mul(far, root), root)
		infinity := b.Const(math.Inf(1), F64)
		far = b.Where(b.eq(t, infinity), infinity, far)
	}
	out := b.Where(b.le(t, b.Const(20, F64)), near, far)
	if order == 1 {
		out = b.Mul(out, b.sign(x))
	}
	return out
}

func initNormal() {
	special("special_entr", "-x·log(x), 0 at 0 and -∞ below", positiveDomain,
		func(b *Builder, x Value) Value {
			zero := b.Const(0, F64)
			return b.Where(b.lt(x, zero), b.Const(math.Inf(-1), F64), b.Where(b.eq(x, zero), zero, b.Neg(b.Mul(x, b.log(x)))))
		},
		func(b *Builder, x, y Value) Value { return b.Neg(b.shift(b.log(x), 1)) })
	special("special_erfcx", "erfc(x)·e^x²", [][2]float64{{-2, 12}}, (*Builder).erfcx,
		func(b *Builder, x, y Value) Value { return b.shift(b.scale(b.Mul(x, y), 2), -2/math.SqrtPi) })
	special("special_log_ndtr", "The logarithm of special_ndtr, precise where that is nearly 0", [][2]float64{{-8, 4}},
		func(b *Builder, x Value) Value {
			low := b.Sub(b.log(b.scale(b.erfcx(b.scale(x, -math.Sqrt2/2)), 0.5)), b.scale(b.Mul(x, x), 0.5))
			high := b.log1p(b.scale(b.erfc(b.scale(x, math.Sqrt2/2)), -0.5))
			return b.Where(b.lt(x, b.Const(-1, F64)), low, high)
		},
		func(b *Builder, x, y Value) Value {
			return b.Div(b.Const(math.Sqrt(2/math.Pi), F64), b.erfcx(b.scale(x, -math.Sqrt2/2)))
		})
	register("special_xlog1py(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc:       "x·log(1 + y), 0 where x is 0 unless y is NaN, elementwise with broadcasting; integers and bool give f32. ATen's special_xlog1py.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.xlog1py(in[0], in[1]) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x, y := in[0], in[1]
			flat := b.logicalAnd(b.eq(x, b.zeroOf(x)), b.le(y, b.Const(-1, y.DType())))
			return []Value{b.Where(flat, b.zeroOf(g), b.xlog1py(g, y)), b.Div(b.Mul(g, x), b.shift(y, 1))}
		}),
		Domain: [][2]float64{{0.3, 2}, {0.3, 2}},
	})
}

// erfcx is erfc(x)·e^x²: the product up to 8, and from there on the asymptotic series of the whole.
func (b *Builder) erfcx(x Value) Value {
	square := b.Mul(x, x)
	terms := make([]float64, 18)
	terms[0] = 1 / math.SqrtPi
	for k := 1; k < len(terms); k++ {
		terms[k] = -terms[k-1] * float64(2*k-1) / 2
	}
	far := b.Div(b.polynomial(b.reciprocalOf(square), terms), x)
	return b.Where(b.lt(x, b.Const(8, F64)), b.Mul(b.Exp(square), b.erfc(x)), far)
}

func (b *Builder) xlog1py(x, y Value) Value {
	zero := b.zeroOf(x)
	z := b.Where(b.eq(x, zero), zero, b.Mul(x, b.log1p(y)))
	return b.Where(b.isNaN(y), y, z)
}
