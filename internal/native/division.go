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
	quotient := onDoubles( // of x, y and the remainder
		func(g *gen, x []val) val { return g.floorDivide(x[0], x[1], x[2]) },
		func(g *gen, x []val) val { return g.floorDivide(x[0], x[1], x[2]) }).f
	return map[ir.Op]emitters{
		aten.FloorDivide: row(true, false, emitters{f: func(g *gen, w int, x []val) val {
			return quotient(g, w, []val{x[0], x[1], g.fmod(w, x[0], x[1])})
		}}),
		aten.TruncDivide: row(false, false, emitters{f: func(g *gen, w int, x []val) val {
			if w == 8 {
				return g.trunc(w, g.div(w, x[0], x[1]))
			}
			return g.truncDivide32(x[0], x[1])
		}}),
		aten.Remainder: row(true, true, emitters{f: func(g *gen, w int, x []val) val {
			return g.floorRest(w, x[1], g.fmod(w, x[0], x[1]))
		}}),
		aten.Fmod: row(false, true, emitters{f: func(g *gen, w int, x []val) val { return g.fmod(w, x[0], x[1]) }}),
	}
}

// truncDivide32 is x/y without its fraction. Below 2²⁴ the quotient q of f32s is the right integer, or rounded to the one
// above it. Larger ones are integers, h from the middle to the next below: the fraction made a difference where the
// quotient is above that middle by less than 1, which without it rounds to the even one of both. q is too large by
// less than h then, and by more than h-1, of which the remainder tells; below 2²⁴ by more than 0. A middle is in f32s'
// reach of 2⁻⁴⁹ of a quotient, so that none is that near where h-1 has no bits of its own.
func (g *gen) truncDivide32(x, y val) val {
	const w = 4
	n := g.vl(w)
	q := g.div(w, x, y)
	whole := g.trunc(w, q)
	power := g.op2(x64.PANDD, n, q, g.konst(w, 0x7f800000))
	half := g.op2(x64.MAXPS, n, g.mulF(w, power, g.num(w, 0x1p-24)), g.num(w, 1))
	rest := g.op2(x64.PXORD, n, g.subMul(w, x, whole, y), g.sign(w, x))
	above := g.cmpF(w, cmpLT, g.mulAdd(w, g.subF(w, half, g.num(w, 1)), g.abs(w, y), rest), g.konst(w, 0))
	less := g.blend(w, above, g.subF(w, whole, g.signedAs(w, half, q)), whole)
	return g.signedAs(w, less, q)
}

// opposite returns where a remainder is not 0 and has another sign than y.
func (g *gen) opposite(w int, rest, y val) val {
	zero := g.konst(w, 0)
	return g.and(g.cmpF(w, cmpNE, rest, zero), g.xor(g.cmpF(w, cmpLT, rest, zero), g.cmpF(w, cmpLT, y, zero)))
}

// floorRest is m, the fmod of some x and y, with the sign of y.
func (g *gen) floorRest(w int, y, m val) val {
	return g.blend(w, g.opposite(w, m, y), g.addF(w, m, y), m)
}

// floorDivide is ATen's div_floor_floating, as ir has it; m is the fmod.
func (g *gen) floorDivide(x, y, m val) val {
	const w = 8
	zero, one, ratio := g.konst(w, 0), g.num(w, 1), g.div(w, x, y)
	q := g.div(w, g.subF(w, x, m), y)
	q = g.blend(w, g.opposite(w, m, y), g.subF(w, q, one), q)
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
