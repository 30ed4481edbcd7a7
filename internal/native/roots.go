package native

import "github.com/loris-ml/loris/internal/native/x64"

// Roots of f64 take the processor 24 cycles a vector. With AVX-512 they are Newton's steps from an estimate of 14 bits,
// on numbers from 1/2 to 2 that are a power of four away.

const (
	// fromHalf has an instruction return mantissas from 1/2 to 2 for even exponents, of negative numbers NaN.
	fromHalf = 0b1001
	// endsOfRoot has an instruction take NaNs, 0 and Inf from its source, NaN for negative numbers, and all else from its
	// destination; endsOfInverse takes the infinity of its sign for 0, and 0 for Inf.
	endsOfRoot    = 0x_0353_0122
	endsOfInverse = 0x_0383_0622
)

func sqrt(g *gen, w int, x []val) val {
	if w == 8 && g.evex() {
		return g.sqrt64(x[0])
	}
	return g.sqrt(w, x[0])
}

// sqrt is the processor's root.
func (g *gen) sqrt(w int, x val) val { return g.op1(by(w, x64.SQRTPS, x64.SQRTPD), g.vl(w), x) }

// rsqrt is 1/√x with both roundings of f64 where there is one of f32, so that
// its error stays below a unit.
func rsqrt(g *gen, w int, x []val) val {
	if w == 8 && g.evex() {
		return g.rsqrt64(x[0])
	}
	return g.div(w, g.num(w, 1), g.sqrt(w, x[0]))
}

// rootParts takes x = m·4ᵏ apart: m, √m within a unit, y = 1/√m within two, and k, of which the next lower integer counts.
func (g *gen) rootParts(x val) (m, s, y, k val) {
	const w = 8
	n, half := g.vl(w), g.num(w, 0.5)
	m = g.op1i(x64.GETMANTPD, n, x, fromHalf)
	k = g.mulAdd(w, g.op1(x64.GETEXPPD, n, x), half, half)
	y = g.op1(x64.RSQRT14PD, n, m)
	s, h := g.mulF(w, m, y), g.mulF(w, y, half)
	lost := g.subMul(w, half, s, h)
	s, h = g.addMul(w, s, s, lost), g.addMul(w, h, h, lost)
	s = g.addMul(w, s, g.subMul(w, m, s, s), h)
	y = g.addF(w, h, h)
	return m, s, g.addMul(w, y, y, g.subMul(w, g.num(w, 1), s, y)), k
}

// sqrt64 rounds correctly: s is within a unit of √m, and the last step is off by less than 2⁻⁵⁰ of the unit that it
// corrects. Roots that are as close to the middle of two floats are few; the test has them all.
func (g *gen) sqrt64(x val) val {
	const w = 8
	m, s, y, k := g.rootParts(x)
	s = g.addMul(w, s, g.half(g.subMul(w, m, s, s)), y)
	root := g.op2(x64.SCALEFPD, g.vl(w), s, k)
	return g.fma(x64.FIXUPIMMPD, g.vl(w), root, x, g.konst(w, endsOfRoot))
}

func (g *gen) rsqrt64(x val) val {
	const w = 8
	_, _, y, k := g.rootParts(x)
	// The next lower integer of -k is not the negative of that of k.
	whole := g.op1i(x64.ROUNDPD, g.vl(w), k, 9)
	y = g.op2(x64.SCALEFPD, g.vl(w), y, g.subF(w, g.konst(w, 0), whole))
	return g.fma(x64.FIXUPIMMPD, g.vl(w), y, x, g.konst(w, endsOfInverse))
}
