package ir

import "math"

// Forms of special functions for results that are f32 or narrower. They compute in f64, like the others,
// with polynomials that are as precise as such results can show: each is within 2⁻²⁷ of its function.
// Constants are operands of a kernel, of which there are few, so short polynomials also keep a function in
// one kernel.

var (
	// lgammaNear is log Γ(2+z)/z for |z| ≤ 1/2.
	lgammaNear = []float64{0.4227843350004583, 0.3224670334689425, -0.0673522814721006, 0.020580799471518252, -0.007386174155633413,
		0.002890795321559696, -0.0011858600344983208, 0.0005065171429518161, -0.0002538170956727826, 0.00011347281994554691}
	// lgammaFar is what Stirling's formula without its series leaves of log Γ(a), times a, over 1/a² for
	// a from 2.5 on.
	lgammaFar = []float64{0.08333333318250694, -0.002777730267917978, 0.0007911751677638835, -0.0005477085546540336, 0.0004225167871385413}
	// sineOverPi is sin(πt)/(π·v) over v = t·(1-t) for t from 0 to 1/2.
	sineOverPi = []float64{1.0000000009819345, 0.99999979538228973, 0.35507265517569769, 0.065121251347671871, 0.0076884880996203629}
	// i1eRatio is i1e(t)/t·(t+8)^(3/2) over (t-8)/(t+8) for t from 0 on.
	i1eRatio = []float64{1.0731399431954187, -1.493820925133188, 1.7096796184214387, -1.7905910709069635, 1.7519029846228735,
		-1.584376940720621, 1.2664329802851082, -0.7938700130510656, 0.2398149764792961, 0.19705944869820557, -0.2885326258610373,
		0.0558707053828156, 0.1485745656901077, -0.08261620600310284, -0.05899785931100213, 0.049637076199122644,
		0.016717233334820572, -0.01751777051520147, -0.002406428863824334, 0.002842589226086279}
)

func lgammaOf(b *Builder, d DType, x Value) Value {
	switch d {
	case F64:
		return b.lgamma(x)
	case F16, BF16:
		return b.lgammaNarrow(x)
	}
	return b.inF64(x, b.lgammaNarrow)
}

func i1eOf(b *Builder, d DType, x Value) Value {
	if d == F64 {
		return b.bessel(1, x, true)
	}
	return b.inF64(x, b.i1eNarrow)
}

func i1Of(b *Builder, d DType, x Value) Value {
	if d == F64 {
		return b.bessel(1, x, false)
	}
	return b.inF64(x, b.i1Narrow)
}

// lgammaLeast is below where all numbers are integers, of which lgamma is infinite.
const lgammaLeast = -0x1p100

// lgammaNarrow is lgamma with one logarithm, and another one for the reflection: below a half it is what lies above
// subtracted from log(π/sin πx). 16-bit floats need no f64 for it.
func (b *Builder) lgammaNarrow(x Value) Value {
	half, least := b.Const(0.5, x.DType()), b.Const(lgammaLeast, x.DType())
	x = b.Where(b.lt(x, least), least, x) // -∞ has no fraction
	left := b.lt(x, half)
	t := b.abs(b.Sub(x, b.round(x)))
	v := b.Sub(t, b.Mul(t, t))
	logSine := b.log(b.Mul(v, b.polynomial(v, sineOverPi)))
	a := b.Where(left, b.oneMinus(x), x)
	log := b.log(a)
	z := b.shift(a, -1)
	at1 := b.lt(z, half)
	z = b.Where(at1, z, b.shift(z, -1))
	near := b.Mul(z, b.polynomial(z, lgammaNear))
	near = b.Where(at1, b.Sub(near, log), near)
	r := b.reciprocalOf(a)
	far := b.shift(b.Mul(r, b.polynomial(b.Mul(r, r), lgammaFar)), math.Log(2*math.Pi)/2-0.5)
	far = b.Add(b.Mul(b.shift(a, -0.5), b.shift(log, -1)), far)
	above := b.Where(b.le(z, half), near, far)
	return b.Where(left, b.Neg(b.Add(logSine, above)), above)
}

// i1eNarrow is special_i1e by one polynomial for all x.
func (b *Builder) i1eNarrow(x Value) Value {
	return b.Where(b.eq(b.abs(x), b.Const(math.Inf(1), F64)), b.Const(0, F64), b.i1eFinite(x))
}

// i1Narrow is special_i1 by that polynomial. What is infinite as an f32 has an exponential that f64 has, or is infinite.
func (b *Builder) i1Narrow(x Value) Value {
	t := b.abs(x)
	return b.Where(b.eq(t, b.Const(math.Inf(1), F64)), x, b.Mul(b.i1eFinite(x), b.Exp(t)))
}

// i1eFinite is special_i1e but at infinity.
func (b *Builder) i1eFinite(x Value) Value {
	v := b.reciprocalOf(b.shift(b.abs(x), 8))
	return b.Mul(b.Mul(x, v), b.Mul(b.sqrt(v), b.polynomial(b.shift(b.scale(v, -16), 1), i1eRatio)))
}
