package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// The inverse trigonometric functions of f32. Those of f64 are in double.go.

// atanNear has tangents c that are about the middle of their intervals, and their angles, which are next to floats.
// The intervals are half an octave wide from 3/32 to 12, and counted by the low four bits of the exponent and the
// first bit of the mantissa. What is below has 0, what is above a tangent of its own.
var atanNear = [2][16]float32{
	{
		2.41422, 3.4340715, 4.8079157, 6.8601418, 9.604129, 24.041454, 0, 0.10935038,
		0.15610561, 0.21854247, 0.311401, 0.43606976, 0.6180527, 0.8673062, 1.2198476, 1.7231963,
	},
	{
		1.1780982, 1.2874328, 1.3657297, 1.4260463, 1.4670483, 1.5292255, 0, 0.10891763,
		0.15485579, 0.21515964, 0.30188334, 0.41120934, 0.5535879, 0.7144558, 0.8841135, 1.0449754,
	},
}

const (
	// atanHalves is the bits of an f32 behind those that count intervals.
	atanHalves = 22
	// atanFirst and atanLast are the intervals of the smallest and the largest numbers.
	atanFirst, atanLast = 246, 261
)

// atanP32 is (atan(√z) - √z)/√z³ for z up to 1/100, and asinP32 (asin(√z) - √z)/√z³ up to 1/4.
var (
	atanP32 = []float64{-0.33332747, 0.19806485}
	asinP32 = []float64{0.16666754, 0.07495251, 0.045476265, 0.024150407, 0.042215545}
)

// atan32 is the angle of the tangent c next to |x| and that of (|x| - c)/(1 + c·|x|), with the sign of x.
func (g *gen) atan32(x val) val {
	const w = 4
	n := g.vl(w)
	a := g.atMost(w, g.abs(w, x), 0x1p60)
	i := g.op2(x64.PMAXSD, n, a, g.konst(w, atanFirst<<atanHalves))
	i = g.op1i(x64.PSRLD, n, g.op2(x64.PMINSD, n, i, g.konst(w, atanLast<<atanHalves)), atanHalves)
	look := g.coefficients("atan", atanNear[:], i)
	c := look(0)
	q := g.nearQuotient(g.subF(w, a, c), g.mulAdd(w, c, a, g.num(w, 1)))
	z := g.mulF(w, q, q)
	y := g.mulAdd(w, g.poly(w, z, atanP32), g.mulF(w, z, q), q)
	return g.signedAs(w, g.addF(w, look(1), y), x)
}

// nearQuotient is a/b but for its last bits, of f32s far from the ends of their range.
func (g *gen) nearQuotient(a, b val) val {
	const w = 4
	if !g.evex() {
		return g.div(w, a, b)
	}
	y := g.op1(x64.RCP14PS, g.vl(w), b)
	q := g.mulF(w, a, y)
	return g.addMul(w, q, g.subMul(w, a, q, b), y)
}

// halfPiRest is what the nearest f32 of π/2 lacks, in parts of that.
const halfPiRest = math.Pi/2/float64(float32(math.Pi/2)) - 1

// asin32 is π/2 - 2·asin √((1-a)/2) for a = |x| above 1/2, with the sign of x.
func (g *gen) asin32(x val) val {
	const w = 4
	a := g.abs(w, x)
	large := g.cmpF(w, cmpGT, a, g.num(w, 0.5))
	y := g.arc(large, a, g.signed(w, x, g.signBit(w)), none, g.pick2(w, large, math.Pi/2))
	return g.signedAs(w, y, x)
}

// acos32 is π/2 - asin x, and for |x| above 1/2 twice asin √((1-|x|)/2), or π less that for negative x.
func (g *gen) acos32(x val) val {
	const w = 4
	a := g.abs(w, x)
	large := g.cmpF(w, cmpGT, a, g.num(w, 0.5))
	minus := g.op2(x64.PXORD, g.vl(w), x, g.signBit(w))
	from := g.blend(w, large, g.pick2(w, g.cmpF(w, cmpLT, x, g.konst(w, 0)), math.Pi), g.num(w, math.Pi/2))
	return g.arc(large, a, x, minus, from)
}

// arc is from - asin x, and where a = |x| is large from - 2·asin √((1-a)/2), the latter with the sign of sign unless
// that is none. from is a multiple of π/2. Where a is above 1 it is NaN.
func (g *gen) arc(large, a, x, sign, from val) val {
	const w = 4
	twice := g.num(w, 2)
	square := g.subMul(w, twice, a, twice) // 4·(1-a)/2
	s, rest := g.root(square, sign)
	s = g.blend(w, large, s, x)
	rest = g.blend(w, large, rest, g.konst(w, 0))
	z := g.blend(w, large, g.mulF(w, square, g.num(w, 0.25)), g.mulF(w, a, a))
	rest = g.subMul(w, rest, from, g.num(w, halfPiRest))
	tail := g.mulAdd(w, g.poly(w, z, asinP32), g.mulF(w, z, s), rest)
	return g.subF(w, g.subF(w, from, s), tail)
}

// root is √z with the sign of sign unless that is none, for f32s that are 0, between 2⁻⁴⁰ and 2⁴⁰, or negative, and
// what rounding it lost.
func (g *gen) root(z, sign val) (s, rest val) {
	const w = 4
	tiny, half := g.num(w, 0x1p-80), g.num(w, 0.5) // with tiny the reciprocal is finite
	var h val                                      // 1/(2√z)
	if g.evex() {
		y := g.op1(x64.RSQRT14PS, g.vl(w), g.addF(w, z, tiny))
		if sign != none {
			y = g.signedAs(w, y, sign)
		}
		s, h = g.mulF(w, z, y), g.mulF(w, y, half)
		s = g.addMul(w, s, s, g.subMul(w, half, s, h))
	} else {
		s = g.op1(x64.SQRTPS, g.vl(w), z)
		if sign != none {
			s = g.signedAs(w, s, sign)
		}
		h = g.div(w, half, g.addF(w, s, g.signedAs(w, tiny, s)))
	}
	return s, g.mulF(w, g.subMul(w, z, s, s), h)
}
