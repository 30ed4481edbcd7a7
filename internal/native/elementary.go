package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The elementary functions are polynomials inlined into the loop, without
// branches: what differs by range is computed in all ways and blended. Those of
// f32 work in f32, and those of f64 in f64, with fused multiply-adds; rare ones
// of f32 go by way of f64. Coefficients are minimax over the stated ranges. How
// far results may be from the nearest float is in bounds of the tests.

// elementary returns the rows of the elementary functions.
func elementary() map[ir.Op]emitters {
	one := func(f func(g *gen, w int, x val) val) emitters {
		return emitters{f: func(g *gen, w int, x []val) val { return f(g, w, x[0]) }}
	}
	return map[ir.Op]emitters{
		aten.Exp:         one((*gen).exp),
		aten.Exp2:        one((*gen).exp2),
		aten.Expm1:       one((*gen).expm1),
		aten.Sigmoid:     one((*gen).sigmoid),
		aten.Tanh:        one((*gen).tanh),
		aten.Log:         one(func(g *gen, w int, x val) val { return g.log(w, x, baseE) }),
		aten.Log2:        one(func(g *gen, w int, x val) val { return g.log(w, x, base2) }),
		aten.Log10:       one(func(g *gen, w int, x val) val { return g.log(w, x, base10) }),
		aten.Log1p:       one((*gen).log1p),
		aten.Erf:         one((*gen).erf),
		aten.SpecialNdtr: one((*gen).ndtr),
		aten.Asin:        one((*gen).asin),
		aten.Acos:        one((*gen).acos),
		aten.Asinh:       one((*gen).asinh),
		aten.Atanh:       one((*gen).atanh),
	}
}

// format is what the functions need to know of f32 or f64.
type format struct {
	w        int
	mantissa int     // bits
	bias     int     // of the exponent
	magic    float64 // 1.5·2^mantissa: added, it leaves the nearest integer in the low bits
	ln2      [2]float64
	// expLow and expHigh are where eˣ is 0 or infinite.
	expLow, expHigh float64
	// em1Low is where eˣ - 1 is -1, tanhHigh where tanh x/2 is 1.
	em1Low, tanhHigh float64
	// expQ is (eʳ - 1 - r)/r², |r| ≤ ln 2 / 2, precise enough for eʳ, and em1Q for
	// eʳ - 1.
	expQ, em1Q []float64
}

var f32 = format{
	w: 4, mantissa: 23, bias: 127, magic: 0x1.8p23,
	ln2:    [2]float64{0x1.62e4p-1, math.Ln2 - 0x1.62e4p-1},
	expLow: -104, expHigh: 89, em1Low: -18, tanhHigh: 18.5,
	expQ: []float64{0.5000000095602040833, 0.1666651827302404444, 0.04166620457316091456, 0.008368956573390653146, 0.001395057068818627899},
	em1Q: []float64{0.5000000044838073767, 0.1666666638902122595, 0.04166635869473365693, 0.008333384765963314935, 0.001394078548009879268,
		0.0001984855542490515611},
}

var f64 = format{
	w: 8, mantissa: 52, bias: 1023, magic: 0x1.8p52,
	ln2:    [2]float64{6.93147180369123816490e-01, 1.90821492927058770002e-10}, // the first has 33 bits
	expLow: -746, expHigh: 710, em1Low: -38, tanhHigh: 40,
	expQ: []float64{0.5000000000000013006, 0.166666666666666923, 0.04166666666651337463, 0.008333333333311123376, 0.001388888894753550704,
		0.0001984126990950523665, 0.00002480148940898450266, 2.755722294239364336e-6, 2.763147099250587658e-7, 2.511585496574952776e-8},
	em1Q: []float64{0.5000000000000000009, 0.166666666666666766, 0.04166666666666650725, 0.008333333333321605064, 0.0013888888888962949,
		0.0001984126988621319224, 0.00002480158717175176404, 2.755724409941158562e-6, 2.755740301564461327e-7, 2.510908293027408515e-8,
		2.087530592863361966e-9},
}

func formatOf(w int) *format {
	if w == 8 {
		return &f64
	}
	return &f32
}

func (g *gen) addF(w int, a, b val) val { return g.op2(by(w, x64.ADDPS, x64.ADDPD), g.vl(w), a, b) }
func (g *gen) subF(w int, a, b val) val { return g.op2(by(w, x64.SUBPS, x64.SUBPD), g.vl(w), a, b) }
func (g *gen) mulF(w int, a, b val) val { return g.op2(by(w, x64.MULPS, x64.MULPD), g.vl(w), a, b) }

// mulAdd is x·y + z, which takes the place of x.
func (g *gen) mulAdd(w int, x, y, z val) val {
	if g.neon() { // the one sum of products that it has
		return g.addMul(w, z, x, y)
	}
	return g.fma(by(w, x64.FMADD213PS, x64.FMADD213PD), g.vl(w), x, y, z)
}

// addMul is z + x·y, which takes the place of z.
func (g *gen) addMul(w int, z, x, y val) val {
	return g.fma(by(w, x64.FMADD231PS, x64.FMADD231PD), g.vl(w), z, x, y)
}

// subMul is z - x·y, which takes the place of z.
func (g *gen) subMul(w int, z, x, y val) val {
	return g.fma(by(w, x64.FNMADD231PS, x64.FNMADD231PD), g.vl(w), z, x, y)
}

// splitFrom is from how many coefficients on a polynomial is computed as two of x² or three of x³, where too few registers are there to
// interleave copies of a body: each step waits for the one before.
const splitFrom = 9

// poly is c[0] + c[1]·x + c[2]·x² + ….
func (g *gen) poly(w int, x val, c []float64) val {
	parts := 1
	if len(g.regs[0].order) == 16 {
		parts = min(len(c)/splitFrom+1, 3)
	}
	return g.polyIn(parts, w, x, c)
}

// polyIn is poly in so many chains of multiply-adds, over that power of x.
func (g *gen) polyIn(parts, w int, x val, c []float64) val {
	of := make([][]float64, parts)
	for i, v := range c {
		of[i%parts] = append(of[i%parts], v)
	}
	power := x
	for range parts - 1 {
		power = g.mulF(w, power, x)
	}
	p := g.horner(w, power, of[parts-1])
	for i := parts - 2; i >= 0; i-- {
		p = g.mulAdd(w, p, x, g.horner(w, power, of[i]))
	}
	return p
}

func (g *gen) horner(w int, x val, c []float64) val {
	p := g.num(w, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = g.mulAdd(w, p, x, g.num(w, c[i]))
	}
	return p
}

// bounded is |x| with x bounded on each side, so that what is too far to make a difference is not computed of numbers that
// may be subnormal. NaN stays.
func (g *gen) bounded(w int, x val, least, most float64) val {
	return g.abs(w, g.atLeast(w, g.atMost(w, x, most), least))
}

// atMost and atLeast bound x by a number and keep NaN.
func (g *gen) atMost(w int, x val, most float64) val {
	return g.op2(by(w, x64.MINPS, x64.MINPD), g.vl(w), g.num(w, most), x)
}

func (g *gen) atLeast(w int, x val, least float64) val {
	return g.op2(by(w, x64.MAXPS, x64.MAXPD), g.vl(w), g.num(w, least), x)
}

// sign is x's sign bit.
func (g *gen) sign(w int, x val) val {
	return g.op2(by(w, x64.PANDD, x64.PANDQ), g.vl(w), x, g.signBit(w))
}

// signed gives x, which is not negative, the sign bits s.
func (g *gen) signed(w int, x, s val) val {
	return g.op2(by(w, x64.PORD, x64.PORQ), g.vl(w), x, s)
}

// signedAs gives x, which is not negative, the sign of another value.
func (g *gen) signedAs(w int, x, of val) val {
	if !g.evex() {
		return g.signed(w, x, g.sign(w, of))
	}
	n := g.vl(w)
	return g.add(vop{op: by(w, x64.PTERNLOGD, x64.PTERNLOGQ), len: n, dst: g.temp(n), t: x, a: of, b: g.signBit(w), imm: orBoth})
}

// orBoth has a ternary operation be x | y&z.
const orBoth = 0xf8

// reduced returns k, the integer next to x/ln 2, r = x - k·ln 2, and t, whose
// low bits are k.
func (g *gen) reduced(f *format, x val) (k, r, t val) {
	w := f.w
	t = g.mulAdd(w, x, g.num(w, math.Log2E), g.num(w, f.magic))
	k = g.subF(w, t, g.num(w, f.magic))
	r = g.subMul(w, x, k, g.num(w, f.ln2[0]))
	r = g.subMul(w, r, k, g.num(w, f.ln2[1]))
	return k, r, t
}

// expm1Small is eʳ - 1 for |r| ≤ ln 2 / 2, by the polynomial for what remains.
func (g *gen) expm1Small(f *format, r val, q0 []float64) val {
	q := g.poly(f.w, r, q0)
	return g.mulAdd(f.w, g.mulF(f.w, q, r), r, r) // the square of a small r would be subnormal
}

// squared is x² for polynomials that end in 1: of f32 with a number added that these do not show. Of a small x the square
// and its products with x would be subnormal, which takes Intel's processors a hundred cycles.
func (g *gen) squared(w int, x val) val {
	if w == 4 {
		return g.mulAdd(w, x, x, g.num(w, 0x1p-40))
	}
	return g.mulF(w, x, x)
}

// scaled is p·2ᵏ in the lanes that above returned, and 0 in the others; in all if these are none. It is rounded once, also
// where that is subnormal or overflows. With AVX2 it is two products, the first of them exact.
func (g *gen) scaled(f *format, p, k, t, lanes val) val {
	w, n := f.w, g.vl(f.w)
	if g.evex() {
		return g.add(vop{op: by(w, x64.SCALEFPS, x64.SCALEFPD), len: n, dst: g.temp(n), a: p, b: k, c: lanes, zero: lanes != none})
	}
	magic := g.num(w, f.magic)
	i := g.op2(x64.PSUBD, n, t, magic) // the low 32 bits are k
	half := g.op1i(x64.PSRAD, n, i, 1)
	p = g.mulF(w, p, g.power(f, half))
	p = g.mulF(w, p, g.power(f, g.op2(x64.PSUBD, n, i, half)))
	if lanes == none {
		return p
	}
	return g.op2(x64.PANDD, n, p, g.maskFor(w, lanes))
}

// power is 2ⁱ for integers i in the low bits of lanes.
func (g *gen) power(f *format, i val) val {
	n := g.vl(f.w)
	add, shift := by(f.w, x64.PADDD, x64.PADDQ), by(f.w, x64.PSLLD, x64.PSLLQ)
	return g.op1i(shift, n, g.op2(add, n, i, g.konst(f.w, uint64(f.bias))), byte(f.mantissa))
}

// powerOf is 2ᵏ⁺ᵃ for the t of reduced.
func (g *gen) powerOf(f *format, t val, a int) val {
	n := g.vl(f.w)
	i := g.op2(by(f.w, x64.PSUBD, x64.PSUBQ), n, t, g.konst(f.w, g.magicBits(f)-uint64(f.bias+a)))
	return g.op1i(by(f.w, x64.PSLLD, x64.PSLLQ), n, i, byte(f.mantissa))
}

func (g *gen) exp(w int, x val) val {
	f := formatOf(w)
	return g.expOf(f, g.atMost(w, x, f.expHigh), none, f.expLow)
}

// expOf is e to the x-less for x up to expHigh and a less that is far below it, or none, and 0 where x is below a least,
// which is -Inf where x is known to be above expLow.
func (g *gen) expOf(f *format, x, less val, least float64) val {
	return g.expTimes(f, x, less, none, least)
}

// expTimes is expOf times a factor from 1/64 to 1, or none: rounded once, where the result may be subnormal.
func (g *gen) expTimes(f *format, x, less, factor val, least float64) val {
	above := none
	if least > math.Inf(-1) {
		x, above = g.above(f.w, x, least)
	}
	k, r, t := g.reduced(f, x)
	if less != none {
		r = g.subF(f.w, r, less)
	}
	p := g.addF(f.w, g.expm1Small(f, r, f.expQ), g.num(f.w, 1))
	if factor != none {
		p = g.mulF(f.w, p, factor)
	}
	return g.scaled(f, p, k, t, above)
}

// above returns the lanes of x that are not below the least whose power is not 0, and an x for which the power of the
// others may be computed: they are set to 0 by scaled. Rounding to 0 as it is computed takes Intel's processors
// more than a hundred cycles, and masked attention has a score of -Inf in most lanes.
func (g *gen) above(w int, x val, least float64) (bounded, lanes val) {
	if g.neon() {
		return g.atLeast(w, x, least), none
	}
	lanes = g.cmpF(w, cmpNLT, x, g.num(w, least))
	if g.evex() {
		return x, lanes
	}
	return g.op2(x64.PANDD, g.vl(w), x, g.maskFor(w, lanes)), lanes
}

// exp2 is 2ˣ: x without its nearest integer is exact.
func (g *gen) exp2(w int, x val) val { return g.exp2Of(w, x, none) }

// exp2Of is 2ˣ⁺ʳᵉˢᵗ for a rest that is far below x, or none.
func (g *gen) exp2Of(w int, x, rest val) val {
	f := formatOf(w)
	x, above := g.above(w, g.atMost(w, x, float64(f.bias+2)), math.Floor(f.expLow*math.Log2E)) // with a rest, bias+1 may be finite
	t := g.addF(w, x, g.num(w, f.magic))
	k := g.subF(w, t, g.num(w, f.magic))
	part := g.subF(w, x, k)
	if rest != none {
		sum := g.addF(w, part, rest)
		part, rest = sum, g.addF(w, g.subF(w, part, sum), rest)
	}
	r := g.mulF(w, part, g.num(w, math.Ln2))
	// What ln 2 and the product lose is r's relative error, made up for by adding it
	// to the end.
	hi := g.num(w, math.Ln2)
	lost := g.fma(by(w, x64.FMSUB213PS, x64.FMSUB213PD), g.vl(w), part, hi, r)
	lost = g.addMul(w, lost, part, g.num(w, ln2Rest(w)))
	if rest != none {
		lost = g.addMul(w, lost, rest, hi)
	}
	p := g.addF(w, g.addF(w, g.expm1Small(f, r, f.expQ), lost), g.num(w, 1))
	return g.scaled(f, p, k, t, above)
}

// ln2Rest is ln 2 without its nearest float.
func ln2Rest(w int) float64 {
	if w == 8 {
		return 2.3190468138462996e-17
	}
	return math.Ln2 - float64(float32(math.Ln2))
}

// expm1 is 2·(2ᵏ⁻¹·(eʳ - 1) + (2ᵏ⁻¹ - ½)), in which nothing overflows early and
// nothing cancels. Its sign is x's.
func (g *gen) expm1(w int, x val) val {
	f := formatOf(w)
	y := g.atMost(w, g.atLeast(w, x, f.em1Low), f.expHigh)
	_, r, t := g.reduced(f, y)
	p := g.expm1Small(f, r, f.em1Q)
	s := g.powerOf(f, t, -1)
	e := g.mulAdd(w, p, s, g.subF(w, s, g.num(w, 0.5)))
	return g.signedAs(w, g.addF(w, e, e), x)
}

func (g *gen) magicBits(f *format) uint64 {
	if f.w == 8 {
		return math.Float64bits(f.magic)
	}
	return uint64(math.Float32bits(float32(f.magic)))
}

// tanh is (e²ᵃ - 1)/(e²ᵃ + 1) of a = |x|, with the sign of x.
func (g *gen) tanh(w int, x val) val {
	f := formatOf(w)
	a := g.abs(w, x)
	y := g.atMost(w, g.addF(w, a, a), f.tanhHigh)
	_, r, t := g.reduced(f, y)
	p := g.expm1Small(f, r, f.em1Q)
	s := g.powerOf(f, t, 0)
	e := g.mulAdd(w, p, s, g.subF(w, s, g.num(w, 1)))
	return g.signedAs(w, g.ratio(w, e, 2, e), x)
}

// sigmoid is 1/(1 + e⁻ᵃ) for positive x and e⁻ᵃ/(1 + e⁻ᵃ) for negative, a = |x|:
// no overflow, and small results keep their precision.
func (g *gen) sigmoid(w int, x val) val {
	f := formatOf(w)
	e := g.expOf(f, g.signed(w, x, g.signBit(w)), none, f.expLow)
	num := g.blend(w, g.cmpF(w, cmpLT, x, g.konst(w, 0)), e, g.num(w, 1))
	return g.ratio(w, num, 1, e)
}

// ratio is a/(c+b) for a and b that are not negative and far from infinite, and
// a sum of 1 at least that a is not above. Without AVX-512 it is a division, in which rounding the sum counts
// for half a unit. With it the reciprocal is the estimate of 14 bits, for f64 after one of Newton's steps,
// which leaves 2⁻²⁸ or 2⁻⁵⁶ of error and is half the time of a division; the quotient is corrected by a remainder
// that takes c and b apart, of which the part of c is exact where a is small.
func (g *gen) ratio(w int, a val, c float64, b val) val {
	d := g.addF(w, b, g.num(w, c))
	if !g.evex() {
		return g.div(w, a, d)
	}
	y := g.roughInverse(w, d)
	q := g.mulF(w, a, y)
	rest := g.subMul(w, a, q, g.num(w, c))
	// Where b is so small that its product may be subnormal, which some processors take a hundred cycles for, the
	// remainder needs none of it.
	counts := g.cmpF(w, cmpGE, b, g.num(w, 0x1p-60))
	rest = g.add(vop{op: by(w, x64.FNMADD231PS, x64.FNMADD231PD), len: g.vl(w), dst: g.temp(g.vl(w)), t: rest, a: q, b: b, c: counts})
	return g.addMul(w, q, rest, y)
}
