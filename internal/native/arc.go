package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// The inverse trigonometric functions; atan of f64 and atan2 are in double.go.

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

// atanP32 is (atan(√z) - √z)/√z³ for z up to 1/100.
var atanP32 = []float64{-0.33332747, 0.19806485}

// atan32 is the angle of the tangent c next to |x| and that of (|x| - c)/(1 + c·|x|), with the sign of x.
func (g *gen) atan32(x val) val {
	const w = 4
	n := g.vl(w)
	a := g.atMost(w, g.abs(w, x), 0x1p60)
	i := g.op2(x64.PMAXSD, n, a, g.konst(w, atanFirst<<atanHalves))
	i = g.op1i(x64.PSRLD, n, g.op2(x64.PMINSD, n, i, g.konst(w, atanLast<<atanHalves)), atanHalves)
	look := g.coefficients("atan", atanNear[:], i)
	c := look(0)
	q := g.nearQuotient(w, g.subF(w, a, c), g.mulAdd(w, c, a, g.num(w, 1)))
	z := g.squared(w, q)
	y := g.mulAdd(w, g.poly(w, z, atanP32), g.mulF(w, z, q), q)
	return g.signedAs(w, g.addF(w, look(1), y), x)
}

// arcsine is what the inverse sine and cosine need to know of f32 or f64.
type arcsine struct {
	w int
	// rest is what the nearest float of π/2 lacks, in parts of that.
	rest float64
	// p is (asin(√z) - √z)/√z³ for z up to 1/4.
	p []float64
}

var (
	arcsine32 = &arcsine{4, math.Pi/2/float64(float32(math.Pi/2)) - 1, []float64{0.16666754, 0.07495251, 0.045476265, 0.024150407, 0.042215545}}
	arcsine64 = &arcsine{8, 6.123233995736766e-17 / (math.Pi / 2), []float64{
		0.16666666666665383, 0.07500000000342959, 0.04464285682359025, 0.03038195932590143, 0.022371753665102845, 0.01735976884232328,
		0.01388462157801415, 0.012173125014896138, 0.006511525266131934, 0.019572066434251956, -0.016291197532706553, 0.031957007321544176,
	}}
)

func arcsineOf(w int) *arcsine {
	if w == 8 {
		return arcsine64
	}
	return arcsine32
}

// asin is π/2 - 2·asin √((1-a)/2) for a = |x| above 1/2, with the sign of x.
func (g *gen) asin(w int, x val) val {
	a := g.abs(w, x)
	large := g.cmpF(w, cmpGT, a, g.num(w, 0.5))
	y := g.arc(arcsineOf(w), large, a, g.signed(w, x, g.signBit(w)), none, g.pick2(w, large, math.Pi/2))
	return g.signedAs(w, y, x)
}

// acos is π/2 - asin x, and for |x| above 1/2 twice asin √((1-|x|)/2), or π less that for negative x.
func (g *gen) acos(w int, x val) val {
	a := g.abs(w, x)
	large := g.cmpF(w, cmpGT, a, g.num(w, 0.5))
	minus := g.op2(by(w, x64.PXORD, x64.PXORQ), g.vl(w), x, g.signBit(w))
	from := g.blend(w, large, g.pick2(w, g.cmpF(w, cmpLT, x, g.konst(w, 0)), math.Pi), g.num(w, math.Pi/2))
	return g.arc(arcsineOf(w), large, a, x, minus, from)
}

// arc is from - asin x, and where a = |x| is large from - 2·asin √((1-a)/2), the latter with the sign of sign unless
// that is none. from is a multiple of π/2. Where a is above 1 it is NaN.
func (g *gen) arc(f *arcsine, large, a, x, sign, from val) val {
	w := f.w
	twice := g.num(w, 2)
	square := g.subMul(w, twice, a, twice) // 4·(1-a)/2
	s, rest := g.root(w, square, sign)
	s = g.blend(w, large, s, x)
	rest = g.blend(w, large, rest, g.konst(w, 0))
	z := g.blend(w, large, g.mulF(w, square, g.num(w, 0.25)), g.squared(w, a))
	rest = g.subMul(w, rest, from, g.num(w, f.rest))
	tail := g.mulAdd(w, g.poly(w, z, f.p), g.mulF(w, z, s), rest)
	return g.subF(w, g.subF(w, from, s), tail)
}
