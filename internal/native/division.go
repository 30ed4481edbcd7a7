package native

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The processor has no instruction that divides vectors of integers. Integers of up to 32 bits are
// divided as f64s, which never round a fraction to an integer, since the two differ by more than
// 2⁻³² of the quotient. Those of 64 bits are, too, unless they are large. A divisor of 0 is noted in the
// spill memory, and Run panics.

// divisions returns the rows of integer division and its kin on floats.
func divisions() map[ir.Op]emitters {
	row := func(floor, rest bool, f emitters) emitters {
		return emitters{f: f.f, wrap: true, i: func(g *gen, w int, x []val) val {
			g.noteZeros(w, x[1])
			if w == 8 {
				return g.divide64(x[0], x[1], floor, rest)
			}
			q := g.quotient32(x[0], x[1], floor)
			if !rest {
				return q
			}
			n := g.vl(4)
			return g.op2(x64.PSUBD, n, x[0], g.op2(x64.PMULLD, n, q, x[1]))
		}}
	}
	trunc := func(g *gen, x []val) val { return g.trunc(g.div(8, x[0], x[1])) }
	return map[ir.Op]emitters{
		aten.FloorDivide: row(true, false, onDoubles(
			func(g *gen, x []val) val { return g.floorDivide(x[0], x[1], g.fmod(x[0], x[1])) },
			func(g *gen, x []val) val { return g.floorDivide(x[0], x[1], g.fmod64(x[0], x[1])) })),
		aten.TruncDivide: row(false, false, onDoubles(trunc, trunc)),
		aten.Remainder: row(true, true, onDoubles(
			func(g *gen, x []val) val { return g.floorRest(x[1], g.fmod(x[0], x[1])) },
			func(g *gen, x []val) val { return g.floorRest(x[1], g.fmod64(x[0], x[1])) })),
		aten.Fmod: row(false, true, onDoubles(
			func(g *gen, x []val) val { return g.fmod(x[0], x[1]) },
			func(g *gen, x []val) val { return g.fmod64(x[0], x[1]) })),
	}
}

// fmod is x less the multiple of y that leaves a rest below |y| with the sign of
// x, of f32s in f64s. A quotient of them is below 2²⁷⁷, and each step leaves a
// rest that is exact and smaller by 2⁵² at least: y has 24 bits.
func (g *gen) fmod(x, y val) val {
	const w = 8
	// Of an infinite y the rest is x, as it is of one that is large.
	r, b := g.abs(w, x), g.atMost(w, g.abs(w, y), 0x1p200)
	inverse := g.div(w, g.num(w, 1), b)
	for range 6 {
		r = g.subMul(w, r, g.trunc(g.mulF(w, r, inverse)), b)
	}
	// The last quotient may be off by one.
	r = g.blend(w, g.cmpF(w, cmpLT, r, g.konst(w, 0)), g.addF(w, r, b), r)
	r = g.blend(w, g.cmpF(w, cmpGE, r, b), g.subF(w, r, b), r)
	return g.signed(w, r, g.sign(w, x))
}

// opposite returns where a remainder is not 0 and has another sign than y.
func (g *gen) opposite(rest, y val) val {
	zero := g.konst(8, 0)
	return g.and(g.cmpF(8, cmpNE, rest, zero), g.xor(g.cmpF(8, cmpLT, rest, zero), g.cmpF(8, cmpLT, y, zero)))
}

// floorRest is m, the fmod of some x and y, with the sign of y.
func (g *gen) floorRest(y, m val) val {
	return g.blend(8, g.opposite(m, y), g.addF(8, m, y), m)
}

// floorDivide is ATen's div_floor_floating, as ir has it; m is the fmod.
func (g *gen) floorDivide(x, y, m val) val {
	const w = 8
	zero, one, ratio := g.konst(w, 0), g.num(w, 1), g.div(w, x, y)
	q := g.div(w, g.subF(w, x, m), y)
	q = g.blend(w, g.opposite(m, y), g.subF(w, q, one), q)
	f := g.op1i(x64.ROUNDPD, g.vl(w), q, 9)
	f = g.blend(w, g.cmpF(w, cmpGT, g.subF(w, q, f), g.num(w, 0.5)), g.addF(w, f, one), f)
	f = g.blend(w, g.cmpF(w, cmpEQ, q, zero), g.sign(w, ratio), f)
	return g.blend(w, g.cmpF(w, cmpEQ, y, zero), ratio, f)
}

// quotient32 is x/y rounded down or towards zero; the one that overflows is the
// least integer, as ir has it.
func (g *gen) quotient32(x, y val, floor bool) val {
	a, b := g.halves(x64.CVTDQ2PD, x), g.halves(x64.CVTDQ2PD, y)
	for i := range a {
		a[i] = g.div(8, a[i], b[i])
		if floor {
			a[i] = g.op1i(x64.ROUNDPD, g.vl(8), a[i], 9)
		}
	}
	return g.joined(x64.CVTTPD2DQ, a)
}

// noteZeros keeps the number of the instruction if an element of y is 0.
func (g *gen) noteZeros(w int, y val) {
	zeros := g.not(g.nonZero(w, y))
	if g.tail {
		zeros = g.and(zeros, g.tails[0])
	}
	n := max(g.vl(4), 16)
	g.add(vop{op: x64.MOVUPSst, len: n, b: g.pick(zeros, 4, 1), mem: bounce, store: true})
	v := int32(g.now)
	g.scalar(func() {
		a := g.asm
		a.MovLoad(x64.RAX, inSpill(atBounce))
		for at := int32(8); at < int32(n); at += 8 {
			a.ArithLoad(x64.Or, x64.RAX, inSpill(atBounce+at))
		}
		none := a.Label()
		a.JumpIf(x64.Zero, none)
		a.MovImm(x64.RAX, v+1)
		a.MovStore(inSpill(atFault), x64.RAX)
		a.Bind(none)
	})
}
