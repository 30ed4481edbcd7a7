package native

import (
	"math"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Quotients of 16-bit floats by a number that is the same for a whole row are products with its reciprocal, which
// the division takes three to five times as long as. They round to the same 16-bit float: a quotient of two floats
// of p bits is no nearer to the middle of two floats than 2^-(2p+1) of itself, unless it is that middle, which
// happens among subnormal numbers only, and these products are exact there.
//
// For f16, whose p is 11, the reciprocal of c is high + low, and x/c is x·high + x·low in one rounding: the error is
// below 2⁻²⁴, and there is none where the quotient is an f32. low is never 0 and has the sign of high, so that
// infinities stay what they are. For bf16, whose p is 8, x/c is (x·scale)·high: scale is a power of two that keeps
// the reciprocal of c·scale between 2⁻⁶⁴ and 2⁶⁹, where no bits are lost.

// The homes of a reciprocal, by the quotient, are those of units that no copy has.
const (
	highUnit = -1 - iota
	lowUnit  // low, or scale
)

// farDivisor is from where on divisors of bf16s are scaled, and 1/farDivisor up to where.
const farDivisor = 0x1p64

// hoistReciprocal lowers the reciprocal for a quotient of a row, if v is one and that is worth it: rows that are gone
// through without a loop have few elements.
func (g *gen) hoistReciprocal(v loop.Value) {
	d, in := g.quotients[v], &g.k.Instrs[v]
	if d == ir.Invalid || g.k.Width > 0 && !g.short || g.k.Instrs[in.In[1]].Code == loop.Const {
		return
	}
	if _, known := g.homes[homeKey{in.In[1], 0}]; !known && !g.uniform[in.In[1]] {
		return
	}
	high, low := g.reciprocal(d, g.value(in.In[1]))
	g.keepAs(homeKey{v, highUnit}, high)
	g.keepAs(homeKey{v, lowUnit}, low)
}

// reciprocal returns what the quotients by c are computed with.
func (g *gen) reciprocal(d ir.DType, c val) (high, low val) {
	const w = 4
	a, one := g.abs(w, c), g.num(w, 1)
	if d == ir.BF16 {
		scale := g.blend(w, g.cmpF(w, cmpLT, a, g.num(w, 1/farDivisor)), g.num(w, farDivisor), one)
		scale = g.blend(w, g.cmpF(w, cmpGT, a, g.num(w, farDivisor)), g.num(w, 1/farDivisor), scale)
		return g.div(w, one, g.mulF(w, c, scale)), scale
	}
	r := g.div(w, one, c)
	below := g.op2(x64.PSUBD, g.vl(w), r, g.konst(w, 1))
	rest := g.mulF(w, g.subMul(w, one, c, below), below)
	plain := g.and(g.cmpF(w, cmpGT, a, g.konst(w, 0)), g.cmpF(w, cmpLT, a, g.num(w, math.Inf(1))))
	return g.blend(w, plain, below, r), g.blend(w, plain, rest, r)
}

// constReciprocal is reciprocal of a constant.
func constReciprocal(d ir.DType, c float64) (high, low float64) {
	a, r := math.Abs(c), float64(float32(1/c))
	if d == ir.BF16 {
		scale := 1.0
		if a < 1/farDivisor {
			scale = farDivisor
		} else if a > farDivisor {
			scale = 1 / farDivisor
		}
		return float64(float32(1 / (c * scale))), scale
	}
	if !(a > 0) || math.IsInf(a, 0) {
		return r, r
	}
	below := float64(math.Float32frombits(math.Float32bits(float32(r)) - 1))
	return below, (1 - c*below) * below
}

// quotient is x divided by a number of the row, for a Round; not ok where there is no reciprocal of that.
func (g *gen) quotient(v loop.Value, x val, divisor loop.Value) (y val, ok bool) {
	const w = 4
	d := g.quotients[v]
	high, low := g.homes[homeKey{v, highUnit}], g.homes[homeKey{v, lowUnit}]
	if in := &g.k.Instrs[divisor]; in.Code == loop.Const {
		h, l := constReciprocal(d, float64(math.Float32frombits(uint32(in.Bits))))
		high, low = g.num(w, h), g.num(w, l)
	}
	switch {
	case high == none:
		return none, false
	case d == ir.BF16:
		return g.mulF(w, g.mulF(w, x, low), high), true
	}
	return g.mulAdd(w, x, high, g.mulF(w, x, low)), true
}
