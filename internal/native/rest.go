package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// fmod is x less the multiple of y that leaves a rest below |y| with the sign of x. A quotient that is an
// integer of the format, rounded and cut, is the right one or one more, and what it leaves is a float.
// Larger quotients are rare; their lanes are done on the way.
func (g *gen) fmod(w int, x, y val) val {
	inf, zero := g.num(w, math.Inf(1)), g.konst(w, 0)
	r, b := g.abs(w, x), g.abs(w, y)
	q := g.div(w, r, b)
	finite := g.cmpF(w, cmpLT, r, inf)
	large := g.and(g.cmpF(w, cmpGE, q, g.num(w, math.Ldexp(1, formatOf(w).mantissa+1))), g.and(finite, g.cmpF(w, cmpGT, b, zero)))
	rest := g.subMul(w, r, g.trunc(w, q), b)
	if w == 8 {
		rest = g.eachLargeRest(large, r, b, rest)
	} else {
		rest = g.largeRests(large, r, b, rest)
	}
	rest = g.blend(w, g.cmpF(w, cmpLT, rest, zero), g.addF(w, rest, b), rest)
	rest = g.blend(w, g.and(finite, g.cmpF(w, cmpEQ, b, inf)), r, rest)
	return g.signedAs(w, rest, x)
}

// restStep is by what a divisor grows from one level to the one above, of which there are restLevels
// above the divisor itself: no quotient overflows.
const (
	restStep   = 0x1p500
	restLevels = 3
)

// eachLargeRest replaces the rests of the lanes of a mask by r less a multiple of b, between -b and b.
func (g *gen) eachLargeRest(large, r, b, rest val) val {
	n := g.vl(8)
	rs, bs, out, mask, level := g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot()
	keep := [3]int32{g.newSlot(), g.newSlot(), g.newSlot()}
	for _, v := range []struct {
		v  val
		at int32
	}{{r, rs}, {b, bs}, {rest, out}} {
		g.add(vop{op: x64.MOVUPSst, len: n, b: v.v, mem: g.slot(v.at), store: true})
	}
	g.storeLanes64(large, n, g.slot(mask))
	step := g.lanesOf("2⁵⁰⁰", 8, int(math.Float64bits(restStep)), int(math.Float64bits(restStep)))
	g.scalar(func() {
		g.onLanes64(int(n)/8, mask, keep, func(at func(int32) x64.Mem) {
			g.largeRest(at(rs), at(bs), at(out), at(level), x64.Mem{Base: x64.NoReg, Index: x64.NoReg, Label: g.vals[step].lbl})
		})
	})
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(out)})
}

// largeRest reduces r by b times 2¹⁵⁰⁰, 2¹⁰⁰⁰, 2⁵⁰⁰ and 1, each until it is below: a quotient that is
// rounded leaves a rest that is a float and 2⁵² times as small at least.
func (g *gen) largeRest(r, b, out, level, step x64.Mem) {
	a := g.asm
	rest, by, q := g.kept(0), g.kept(1), g.kept(2)
	load := func(dst x64.Reg, m x64.Mem) {
		a.Vec(x64.Inst{Op: x64.MOVUPS, Len: 16, Reg: dst, V: x64.NoReg, Mem: &m})
	}
	store := func(m x64.Mem, src x64.Reg) {
		a.Vec(x64.Inst{Op: x64.MOVSDst, Len: 16, Reg: src, V: x64.NoReg, Mem: &m})
	}
	load(rest, r)
	store(out, rest)
	for l := restLevels; l >= 0; l-- {
		load(by, b)
		for range l {
			a.Vec(x64.Inst{Op: x64.MULPD, Len: 16, Reg: by, V: by, Mem: &step})
		}
		store(level, by)
		top, below := a.Label(), a.Label()
		a.Bind(top)
		a.MovLoad(x64.RAX, out)
		a.ShiftImm(x64.Shl, x64.RAX, 1)
		a.ShiftImm(x64.Shr, x64.RAX, 1)
		a.ArithLoad(x64.Cmp, x64.RAX, level)
		a.JumpIf(x64.Less, below)
		a.Vec(x64.Inst{Op: x64.DIVPD, Len: 16, Reg: q, V: rest, RM: by})
		a.Vec(x64.Inst{Op: x64.ROUNDPD, Len: 16, Reg: q, V: x64.NoReg, RM: q, Imm: 11})
		a.Vec(x64.Inst{Op: x64.FNMADD231PD, Len: 16, Reg: rest, V: q, RM: by})
		store(out, rest)
		a.Jump(top)
		a.Bind(below)
	}
}
