package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// pair is the sum of two floats of f64, the second of which is what rounding lost of the first.
type pair struct{ hi, lo val }

// product64 is x·y as a pair.
func (g *gen) product64(x, y val) pair {
	p := g.mulF(8, x, y)
	return pair{p, g.fma(x64.FMSUB213PD, g.vl(8), x, y, p)}
}

// times64 is x·y with the products of each other's second floats but the smallest.
func (g *gen) times64(x, y pair) pair {
	p := g.product64(x.hi, y.hi)
	p.lo = g.addMul(8, g.addMul(8, p.lo, x.hi, y.lo), x.lo, y.hi)
	return p
}

// sum64 is x + y for |x| ≥ |y.hi| or x = 0.
func (g *gen) sum64(x val, y pair) pair {
	s := g.addF(8, x, y.hi)
	return pair{s, g.addF(8, g.addF(8, g.subF(8, x, s), y.hi), y.lo)}
}

func (g *gen) pair64(hi, lo float64) pair { return pair{g.num(8, hi), g.num(8, lo)} }

// atanhTail is (atanh(s)/s - 1 - z/3)/z² over z = s².
var atanhTail = []float64{1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23, 1. / 25, 1. / 27}

// log2Pair is log2 a for positive finite a with a relative error below 2⁻⁶²: with a = m·2ᵉ and
// s = (m-1)/(m+1), at most 1/5, it is e + 2/ln 2·atanh s.
func (g *gen) log2Pair(a val) pair {
	const w = 8
	one := g.num(w, 1)
	e, m := g.apart(&f64, a)
	f, d := g.subF(w, m, one), g.addF(w, m, one)
	lost := g.subF(w, m, g.subF(w, d, one)) // of d
	inverse := g.div(w, one, d)
	s := pair{hi: g.mulF(w, f, inverse)}
	s.lo = g.mulF(w, g.subMul(w, g.subMul(w, f, s.hi, d), s.hi, lost), inverse)
	z := g.product64(s.hi, s.hi)
	z.lo = g.addMul(w, z.lo, g.addF(w, s.hi, s.hi), s.lo)
	t := g.times64(z, g.pair64(1./3, 0x1.5555555555555p-56))
	t.lo = g.addMul(w, t.lo, g.mulF(w, z.hi, z.hi), g.poly(w, z.hi, atanhTail))
	u := g.sum64(one, g.sum64(t.hi, pair{t.lo, g.konst(w, 0)}))
	return g.sum64(e, g.times64(g.times64(s, g.pair64(2*math.Log2E, 4.0710547481862066e-17)), u))
}
