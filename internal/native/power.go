package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// Powers of floats are 2^(y·log2|x|), negative for negative x and odd y, with IEEE 754's special cases: 1 for y = 0 and
// x = 1, NaN for finite negative x and y that is no integer. The logarithm has more digits than the result: those of f32
// are computed in f64, and those of f64 are pairs.

// log2P is log2(1+f)/f for f in [-1/4, 1/2] within 2⁻³³ of itself, and exp2P is 2ʳ, |r| ≤ 1/2, within 2⁻²⁹.
var (
	log2P = []float64{1.4426950409944924, -0.7213475168552601, 0.48089828222761532, -0.36067435939350845, 0.28854602368331661,
		-0.24042821794195246, 0.2058203887547417, -0.18031460667977815, 0.16465714016508018, -0.15287053641256827,
		0.11550354821045114, -0.044954377198299009}
	exp2P = []float64{1.0000000005540948, 0.69314720573691558, 0.24022646890807563, 0.05550328777172691, 0.0096184889382114383,
		0.0013399931138829939, 0.00015345817051879747}
)

// powMost is beyond the logarithms of f32s that are neither 0 nor infinite.
const powMost = 300

func pow(g *gen, w int, x []val) val {
	if w == 8 {
		return g.pow64(x[0], x[1])
	}
	return g.pow32(x[0], x[1])
}

// pow32 takes |x| apart in f32, where all that is exact.
func (g *gen) pow32(x, y val) val {
	const w = 4
	a := g.abs(w, x)
	e, m := g.apart(&f32, a)
	if !g.evex() { // the exponents of 0 and of infinity are infinite
		e = g.blend(w, g.cmpF(w, cmpLT, a, g.num(w, math.Inf(1))), e, a)
		e = g.blend(w, g.cmpF(w, cmpEQ, a, g.konst(w, 0)), g.num(w, math.Inf(-1)), e)
	}
	f := g.subF(w, m, g.num(w, 1))
	p := g.halves(x64.CVTPS2PD, f)
	exponents, powers := g.halves(x64.CVTPS2PD, e), g.halves(x64.CVTPS2PD, y)
	for i := range p {
		p[i] = g.power32(p[i], exponents[i], powers[i])
	}
	return g.powEnds(w, x, y, g.joined(x64.CVTPD2PS, p))
}

// power32 is ((1+f)·2ᵉ)ʸ as an f64 that rounds to the f32. Its polynomials are two chains each, since a loop over a single long one waits for it.
func (g *gen) power32(f, e, y val) val {
	const w = 8
	n := g.vl(w)
	t := g.mulF(w, y, g.mulAdd(w, g.polyIn(2, w, f, log2P), f, e))
	t = g.atLeast(w, g.atMost(w, t, powMost), -powMost)
	k := g.addF(w, t, g.num(w, f64.magic))
	p := g.polyIn(2, w, g.subF(w, t, g.subF(w, k, g.num(w, f64.magic))), exp2P)
	return g.op2(x64.PADDQ, n, p, g.op1i(x64.PSLLQ, n, k, byte(f64.mantissa)))
}

// pow64 is the power of f64s.
func (g *gen) pow64(x, y val) val {
	const w = 8
	a := g.abs(w, x)
	l := g.log2Pair(a)
	t := g.mulF(w, y, g.logEnds(w, a, l.hi))
	rest := g.addMul(w, g.fma(x64.FMSUB213PD, g.vl(w), y, l.hi, t), y, l.lo)
	near := g.cmpF(w, cmpLT, g.abs(w, t), g.num(w, 2000)) // beyond, the rest may be NaN
	return g.powEnds(w, x, y, g.exp2Of(w, t, g.blend(w, near, rest, g.konst(w, 0))))
}

// powEnds gives p = |x|^y, which is NaN where one of them is, its sign, and what it is in the special cases.
func (g *gen) powEnds(w int, x, y, p val) val {
	n, one, zero := g.vl(w), g.num(w, 1), g.konst(w, 0)
	p = g.blend(w, g.cmpF(w, cmpEQ, g.abs(w, x), one), one, p)
	whole := g.cmpF(w, cmpEQ, g.trunc(w, y), y)
	h := g.mulF(w, y, g.num(w, 0.5))
	odd := g.and(whole, g.cmpF(w, cmpNE, g.trunc(w, h), h))
	p = g.op2(by(w, x64.PXORD, x64.PXORQ), n, p, g.signWhere(w, odd, x))
	finite := g.and(g.cmpF(w, cmpLT, x, zero), g.cmpF(w, cmpNE, x, g.num(w, math.Inf(-1))))
	p = g.blend(w, g.andNot(finite, whole), g.num(w, math.NaN()), p)
	return g.blend(w, g.or(g.cmpF(w, cmpEQ, y, zero), g.cmpF(w, cmpEQ, x, one)), one, p)
}

// signWhere is x's sign bit where the mask is set, and 0 elsewhere.
func (g *gen) signWhere(w int, m, x val) val {
	n, op := g.vl(w), by(w, x64.PANDD, x64.PANDQ)
	if g.evex() {
		return g.add(vop{op: op, len: n, dst: g.temp(n), a: x, b: g.signBit(w), c: m, zero: true})
	}
	return g.op2(op, n, g.sign(w, x), g.maskFor(w, m))
}
