package native

import "github.com/loris-ml/loris/internal/native/x64"

// Quotients and roots of polynomials' arguments need no correct rounding, which the processor's instructions take 16 to
// 24 cycles a vector for. With AVX-512 they are made of an estimate of 14 bits and Newton's steps.

// nearQuotient is a/b within a unit, for b between 2⁻¹²⁰ and 2¹²⁰ and quotients that are no larger; of f64, 2⁻¹⁰⁰⁰ and
// 2¹⁰⁰⁰.
func (g *gen) nearQuotient(w int, a, b val) val {
	if !g.evex() {
		return g.div(w, a, b)
	}
	y := g.roughInverse(w, b)
	q := g.mulF(w, a, y)
	// Less what is too much, which keeps a quotient of -0.
	return g.subMul(w, q, g.fma(by(w, x64.FMSUB213PS, x64.FMSUB213PD), g.vl(w), q, b, a), y)
}

// roughInverse is 1/x to half of the digits at least, with AVX-512.
func (g *gen) roughInverse(w int, x val) val {
	y := g.op1(by(w, x64.RCP14PS, x64.RCP14PD), g.vl(w), x)
	if w == 8 {
		y = g.addMul(w, y, y, g.subMul(w, g.num(w, 1), x, y))
	}
	return y
}

// root is √z with the sign of sign unless that is none, for z that are 0, between 2⁻⁶⁰ and 2¹²⁰, or negative,
// and what rounding it lost.
func (g *gen) root(w int, z, sign val) (s, rest val) {
	s, h := g.nearRoot(w, z, sign)
	return s, g.mulF(w, g.subMul(w, z, s, s), h)
}

// nearRoot is √z within a unit, and 1/(2√z) to 14 bits at least, for numbers that root is for; of f64, up to
// 2¹⁰⁰⁰.
func (g *gen) nearRoot(w int, z, sign val) (s, h val) {
	tiny, half := g.num(w, 0x1p-100), g.num(w, 0.5) // with tiny the reciprocal is finite
	if g.evex() {
		y := g.op1(by(w, x64.RSQRT14PS, x64.RSQRT14PD), g.vl(w), g.addF(w, z, tiny))
		if sign != none {
			y = g.signedAs(w, y, sign)
		}
		s, h = g.mulF(w, z, y), g.mulF(w, y, half)
		lost := g.subMul(w, half, s, h)
		s = g.addMul(w, s, s, lost)
		if w == 8 {
			h = g.addMul(w, h, h, lost)
			s = g.addMul(w, s, g.subMul(w, z, s, s), h)
		}
	} else {
		s = g.sqrt(w, z)
		if sign != none {
			s = g.signedAs(w, s, sign)
		}
		h = g.div(w, half, g.addF(w, s, g.signedAs(w, tiny, s)))
	}
	return s, h
}
