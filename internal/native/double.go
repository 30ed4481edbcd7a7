package native

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The functions of this file compute f32 by way of f64: formulas that lose a few
// bits there are exact but for the last rounding. On f64 itself some are native,
// with the few bits lost.

// onDoubles makes the emitter of a function from one on f64 that is for f32 and
// one that is for f64.
func onDoubles(f, f64 func(g *gen, x []val) val) emitters {
	return emitters{f: func(g *gen, w int, x []val) val {
		if w == 8 {
			return f64(g, x)
		}
		var halves [2][]val
		for _, v := range x {
			for i, h := range g.halves(x64.CVTPS2PD, v) {
				halves[i] = append(halves[i], h)
			}
		}
		out := []val{f(g, halves[0])}
		if halves[1] != nil {
			out = append(out, f(g, halves[1]))
		}
		return g.joined(x64.CVTPD2PS, out)
	}}
}

// inWidth makes the emitter of a function from one on f32 and one on f64.
func inWidth(narrow, wide func(g *gen, x val) val) emitters {
	return emitters{f: func(g *gen, w int, x []val) val {
		if w == 8 {
			return wide(g, x[0])
		}
		return narrow(g, x[0])
	}}
}

// rare returns the rows of these functions.
func rare() map[ir.Op]emitters {
	one := func(f func(g *gen, x val) val) func(g *gen, x []val) val {
		return func(g *gen, x []val) val { return f(g, x[0]) }
	}
	rows, wide := map[ir.Op]emitters{}, doubles()
	for op, f := range map[ir.Op]func(g *gen, x []val) val{
		aten.Sinh: one((*gen).sinh), aten.Cosh: one((*gen).cosh),
		aten.Acosh: one((*gen).acosh),
		aten.Atan2: (*gen).atan2f32,
	} {
		rows[op] = onDoubles(f, wide[op])
	}
	rows[aten.Atan] = inWidth((*gen).atan32, (*gen).atan64)
	rows[aten.Erfc] = inWidth((*gen).erfc32, (*gen).erfc64)
	rows[aten.Erfinv] = inWidth((*gen).erfinv32, (*gen).erfinv64)
	rows[aten.Pow] = emitters{f: pow, i: powInt, wrap: true}
	return rows
}

func (g *gen) half(x val) val { return g.mulF(8, x, g.num(8, 0.5)) }

// atanP is (atan(√z) - √z)/√z³ for z up to tan²(π/8).
var atanP = []float64{-0.33333333295934946, 0.199999943436379238, -0.142854240258064694, 0.111040064934137187, -0.089968243674754838,
	0.0699098146675568384, -0.0379174945588407152}

// atan is the angle of (x, y), both not negative. That of the origin is 0, and of two infinities π/4.
func (g *gen) atan(y, x val) val {
	const w = 8
	zero, one := g.konst(w, 0), g.num(w, 1)
	swap := g.cmpF(w, cmpGT, y, x)
	lo, hi := g.blend(w, swap, x, y), g.blend(w, swap, y, x)
	inf := g.num(w, math.Inf(1))
	both := g.and(g.cmpF(w, cmpEQ, lo, inf), g.cmpF(w, cmpEQ, hi, inf))
	t := g.div(w, g.blend(w, both, one, lo), g.blend(w, g.or(both, g.cmpF(w, cmpEQ, hi, zero)), one, hi))
	// Above tan(π/8), atan t = π/4 + atan((t-1)/(t+1)).
	large := g.cmpF(w, cmpGT, t, g.num(w, math.Sqrt2-1))
	u := g.blend(w, large, g.nearQuotient(w, g.subF(w, t, one), g.addF(w, t, one)), t)
	return g.angleOf(u, large, swap, atanP64)
}

// atanBelow is atan, as precise as the polynomial p is, for numbers up to 2¹⁰⁰⁰, and -0, of which no sum overflows.
func (g *gen) atanBelow(y, x val, p []float64) val {
	const w = 8
	swap := g.cmpF(w, cmpGT, y, x)
	lo, hi := g.blend(w, swap, x, y), g.blend(w, swap, y, x)
	large := g.cmpF(w, cmpGT, lo, g.mulF(w, hi, g.num(w, math.Sqrt2-1)))
	over := g.blend(w, large, g.subF(w, lo, hi), lo)
	// With the least number that is added the origin has an angle.
	under := g.blend(w, large, g.addF(w, lo, hi), g.atLeast(w, hi, 0x1p-1000))
	return g.angleOf(g.nearQuotient(w, over, under), large, swap, p)
}

// angleOf is the angle of the tangent u, plus π/4 where that is large, or where x and y were swapped what π/2 is more.
func (g *gen) angleOf(u, large, swap val, p []float64) val {
	const w = 8
	z := g.mulF(w, u, u)
	a := g.mulAdd(w, g.mulF(w, g.poly(w, z, p), z), u, u)
	a = g.addF(w, a, g.pick2(w, large, math.Pi/4))
	return g.blend(w, swap, g.subF(w, g.num(w, math.Pi/2), a), a)
}

// atanMost is beyond where the angle of a number rounds to that of infinity.
const atanMost = 0x1p1000

// atan2f32 is atan2 of f32s in f64: two infinities are two equal numbers, and the angle of a number and infinity
// rounds to 0 or π/2.
func (g *gen) atan2f32(x []val) val {
	finite := func(v val) val { return g.atMost(8, g.abs(8, v), atanMost) }
	return g.quadrantOf(x[0], x[1], g.atanBelow(finite(x[0]), finite(x[1]), atanP))
}

func (g *gen) atan2(y, x val) val {
	return g.quadrantOf(y, x, g.atan(g.abs(8, y), g.abs(8, x)))
}

// quadrantOf puts the angle a of (|x|, |y|) into the quadrant of (x, y). NaNs are lost by comparisons and come
// back at the end.
func (g *gen) quadrantOf(y, x, a val) val {
	const w = 8
	left := g.cmpI(8, intLT, x, g.konst(8, 0)) // the sign bit, of -0 too
	a = g.blend(w, left, g.subF(w, g.num(w, math.Pi), a), a)
	a = g.signedAs(w, a, y)
	return g.blend(w, g.cmpF(w, cmpUNORD, x, y), g.num(w, math.NaN()), a)
}

func (g *gen) sinh(x val) val {
	e := g.expm1(8, g.abs(8, x))
	// e + e/(e+1), in which an infinity stays one.
	finite := g.atMost(8, e, 0x1p999)
	q := g.nearQuotient(8, finite, g.addF(8, finite, g.num(8, 1)))
	return g.signedAs(8, g.half(g.addF(8, e, q)), x)
}

func (g *gen) cosh(x val) val {
	e := g.exp(8, g.abs(8, x))
	return g.half(g.addF(8, e, g.div(8, g.num(8, 1), e)))
}

// acosh is log1p(t + √(t·(t+2))), t = x - 1, in which a negative t gives NaN.
func (g *gen) acosh(x val) val {
	t := g.subF(8, x, g.num(8, 1))
	square := g.mulF(8, t, g.atLeast(8, g.addF(8, t, g.num(8, 2)), 1))
	root, _ := g.nearRoot(8, g.atMost(8, square, 0x1p999), none)
	return g.log1p(8, g.addF(8, t, root))
}
