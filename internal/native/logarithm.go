package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// base is a logarithm's base b: 1/ln b and log_b 2, each as the sum of two
// floats of f32 and of f64. The high parts of log_b 2 are short, so that their
// product with an exponent is exact.
type base struct{ scale, two [2][2]float64 }

var (
	baseE = &base{
		scale: [2][2]float64{{1, 0}, {1, 0}},
		two:   [2][2]float64{{0x1.62e4p-1, math.Ln2 - 0x1.62e4p-1}, {6.93147180369123816490e-01, 1.90821492927058770002e-10}},
	}
	base2 = &base{
		scale: [2][2]float64{{float64(float32(math.Log2E)), math.Log2E - float64(float32(math.Log2E))}, {math.Log2E, 2.0355273740931033e-17}},
		two:   [2][2]float64{{1, 0}, {1, 0}},
	}
	base10 = &base{
		scale: [2][2]float64{{float64(float32(math.Log10E)), math.Log10E - float64(float32(math.Log10E))}, {math.Log10E, 1.098319650216765e-17}},
		two:   [2][2]float64{{0x1.344p-2, math.Log10E*math.Ln2 - 0x1.344p-2}, {3.01029995663611771306e-01, 3.69423907715893078616e-13}},
	}
)

func column2(w int, of *[2][2]float64) *[2]float64 {
	if w == 8 {
		return &of[1]
	}
	return &of[0]
}

// logP is (log(1+f) - f + f²/2)/f³ for f in [-1/4, 1/2]; logR64 is
// (log(1+f) - 2s)/s³ over s², s = f/(2+f).
var (
	logP = []float64{0.333333398841253958, -0.250001658620536423, 0.199996039705119073, -0.166552694407789426, 0.14276211724074195,
		-0.127280842986407635, 0.117013615969350735, -0.091161713879890118, 0.0376658485149441786}
	logR64 = []float64{0.666666666666666675, 0.399999999999992119, 0.285714285716993843, 0.222222221766232017, 0.181818225202711561,
		0.153843665705052827, 0.133420934888528419, 0.115801634472163677, 0.126370640038888418}
)

// apart returns the exponent e, as a float, and m of x = m·2ᵉ, 3/4 ≤ m < 3/2, for
// positive finite x; subnormal ones too.
func (g *gen) apart(f *format, x val) (e, m val) {
	w, n := f.w, g.vl(f.w)
	if g.evex() {
		// getmant makes negative numbers NaN, and getexp has -Inf for 0.
		m = g.op1i(by(w, x64.GETMANTPS, x64.GETMANTPD), n, x, 0b1011)
		exp := by(w, x64.GETEXPPS, x64.GETEXPPD)
		return g.subF(w, g.op1(exp, n, x), g.op1(exp, n, m)), m
	}
	up := float64(f.mantissa)
	least := math.Ldexp(1, 1-f.bias)
	small := g.cmpF(w, cmpLT, x, g.num(w, least))
	x = g.blend(w, small, g.mulF(w, x, g.num(w, math.Ldexp(1, f.mantissa))), x)
	e, m = g.apartNormal(f, x)
	return g.subF(w, e, g.pick2(w, small, up)), m
}

// apartNormal is apart for normal numbers, and for f32 also for 0 and infinity, of which m is 1, and e the exponent as
// the bits have it. It is for other instruction sets than AVX-512.
func (g *gen) apartNormal(f *format, x val) (e, m val) {
	w, n := f.w, g.vl(f.w)
	sub := by(w, x64.PSUBD, x64.PSUBQ)
	i := g.op2(sub, n, x, g.num(w, 0.75)) // the exponent is counted from 3/4
	m = g.op2(sub, n, x, g.op2(by(w, x64.PANDD, x64.PANDQ), n, i, g.num(w, math.Inf(-1))))
	if w == 4 {
		return g.op1(x64.CVTDQ2PS, n, g.op1i(x64.PSRAD, n, i, byte(f.mantissa))), m
	}
	// With the bias added the exponent is positive, and below 2⁵² an integer is the low bits of itself plus 2⁵².
	i = g.op1i(x64.PSRLQ, n, g.op2(x64.PADDQ, n, i, g.konst(w, uint64(f.bias)<<f.mantissa)), byte(f.mantissa))
	return g.subF(w, g.op2(x64.PORQ, n, i, g.num(w, 0x1p52)), g.num(w, 0x1p52+float64(f.bias))), m
}

// pick2 is x where the mask is set and 0 elsewhere.
func (g *gen) pick2(w int, m val, x float64) val {
	if w == 8 {
		return g.pick(m, w, math.Float64bits(x))
	}
	return g.pick(m, w, uint64(math.Float32bits(float32(x))))
}

// log1pSmall returns log(1+f) - f for f in [-1/4, 1/2].
func (g *gen) log1pSmall(w int, f val) val {
	f2 := g.mulF(w, f, f)
	if w == 4 {
		p := g.poly(w, f, logP)
		return g.mulF(w, f2, g.mulAdd(w, p, f, g.num(w, -0.5)))
	}
	// log(1+f) = f - (f²/2 - s·(f²/2 + R)), R = s²·(…).
	s := g.nearQuotient(w, f, g.addF(w, f, g.num(w, 2)))
	z := g.mulF(w, s, s)
	h := g.mulF(w, f2, g.num(w, 0.5))
	return g.fma(x64.FMSUB213PD, g.vl(w), s, g.mulAdd(w, g.poly(w, z, logR64), z, h), h)
}

// logOf is log to a base of (1+f)·2ᵉ.
func (g *gen) logOf(w int, e, f val, b *base) val {
	c := g.log1pSmall(w, f)
	scale, two := column2(w, &b.scale), column2(w, &b.two)
	// The terms from the smallest to the largest.
	y := c
	if two[1] != 0 {
		y = g.addMul(w, g.scaleBy(w, c, scale[0]), e, g.num(w, two[1]))
	} else {
		y = g.scaleBy(w, c, scale[0])
	}
	if scale[1] != 0 {
		y = g.addMul(w, y, f, g.num(w, scale[1]))
	}
	// f and e·two are exact, or nearly.
	if scale[0] == 1 {
		y = g.addF(w, y, f)
		return g.addMul(w, y, e, g.num(w, two[0]))
	}
	main := g.mulF(w, e, g.num(w, two[0]))
	sum := g.fma(by(w, x64.FMADD231PS, x64.FMADD231PD), g.vl(w), main, f, g.num(w, scale[0]))
	return g.addF(w, sum, g.addF(w, y, g.lostIn(w, sum, main, f, scale[0])))
}

// lostIn is what rounding lost of sum = main + f·scale, where main is 0 or the
// larger.
func (g *gen) lostIn(w int, sum, main, f val, scale float64) val {
	rest := g.subF(w, main, sum)
	return g.addMul(w, rest, f, g.num(w, scale))
}

func (g *gen) scaleBy(w int, x val, by float64) val {
	if by == 1 {
		return x
	}
	return g.mulF(w, x, g.num(w, by))
}

func (g *gen) log(w int, x val, b *base) val {
	f := formatOf(w)
	e, m := g.apart(f, x)
	y := g.logOf(w, e, g.subF(w, m, g.num(w, 1)), b)
	return g.logEnds(w, x, y)
}

// endsOfLog has an instruction take NaNs from its source, NaN for negative numbers, the infinity of their sign for
// 0 and Inf, and all else from its destination.
const endsOfLog = 0x_0353_0422

// logEnds gives y = log x what it is for x that is not positive or not finite.
func (g *gen) logEnds(w int, x, y val) val {
	if g.evex() {
		return g.fma(by(w, x64.FIXUPIMMPS, x64.FIXUPIMMPD), g.vl(w), y, x, g.konst(w, endsOfLog))
	}
	inf := math.Inf(1)
	y = g.blend(w, g.cmpF(w, cmpLT, x, g.num(w, inf)), y, x) // Inf and NaN stay
	y = g.bySign(w, x, g.num(w, math.NaN()), y)
	return g.blend(w, g.cmpF(w, cmpEQ, x, g.konst(w, 0)), g.num(w, -inf), y)
}

// log1p takes 1+x apart and adds what rounding that lost to the fraction.
func (g *gen) log1p(w int, x val) val {
	f := formatOf(w)
	one := g.num(w, 1)
	u := g.addF(w, x, one)
	// The smaller of x and 1 is what loses bits.
	fromX := g.subF(w, x, g.subF(w, u, one))
	from1 := g.subF(w, one, g.subF(w, u, x))
	lost := g.blend(w, g.cmpF(w, cmpLT, x, one), fromX, from1)
	// What is too small for 1+x to differ from 1 stays itself, with its sign. It is not computed with: its square may be
	// subnormal, for which some processors take a hundred cycles.
	tiny := g.cmpF(w, cmpLT, g.abs(w, x), g.num(w, math.Ldexp(1, -f.mantissa-2)))
	lost = g.blend(w, tiny, g.konst(w, 0), lost)
	e, m := g.apart(f, u)
	lost = g.mulF(w, lost, g.inversePower(f, e))
	y := g.logOf(w, e, g.addF(w, g.subF(w, m, one), lost), baseE)
	return g.blend(w, tiny, x, g.logEnds(w, u, y))
}

// asinhLarge is from where 1+a is a; the squares of what is below are finite in f32, too.
const asinhLarge = 0x1p60

// asinh is log1p(a + a²/(1 + √(a²+1))) with the sign of x, and log a + log 2 where a is large.
func (g *gen) asinh(w int, x val) val {
	a, one := g.abs(w, x), g.num(w, 1)
	large := g.cmpF(w, cmpGT, a, g.num(w, asinhLarge))
	finite := g.atMost(w, a, asinhLarge)
	square := g.mulF(w, finite, finite)
	root, _ := g.nearRoot(w, g.addF(w, square, one), none)
	t := g.addF(w, a, g.nearQuotient(w, square, g.addF(w, one, root)))
	y := g.addF(w, g.log1p(w, g.blend(w, large, a, t)), g.pick2(w, large, math.Ln2))
	return g.signedAs(w, y, x)
}

// atanh is ½·log1p t, t = 2a/(1-a), with the sign of x. Of what rounding t loses, an f32 needs the first
// term: the logarithm grows by that over 1+t, which is (1+a)/(1-a).
func (g *gen) atanh(w int, x val) val {
	a, one := g.abs(w, x), g.num(w, 1)
	twice, d := g.addF(w, a, a), g.subF(w, one, a)
	t := g.div(w, twice, d)
	y := g.log1p(w, t)
	if w == 4 {
		lost := g.subF(w, g.subF(w, one, d), a) // of 1-a
		rest := g.subMul(w, g.subMul(w, twice, t, d), t, lost)
		inside := g.cmpF(w, cmpLT, a, one) // elsewhere the result is not finite, and the rest not a number
		y = g.blend(w, inside, g.addF(w, y, g.nearQuotient(w, rest, g.addF(w, one, a))), y)
	}
	return g.signedAs(w, g.mulF(w, y, g.num(w, 0.5)), x)
}

// inversePower is 2⁻ᵉ for an exponent that is a float; 0 where that would be
// subnormal.
func (g *gen) inversePower(f *format, e val) val {
	w, n := f.w, g.vl(f.w)
	i := g.subF(w, g.num(w, f.magic+float64(f.bias)), e)
	i = g.op2(by(w, x64.PSUBD, x64.PSUBQ), n, i, g.konst(w, g.magicBits(f)))
	i = g.op2(x64.PMAXSD, n, i, g.konst(w, 0)) // small enough for 32 bits
	return g.op1i(by(w, x64.PSLLD, x64.PSLLQ), n, i, byte(f.mantissa))
}
