package native

import (
	"github.com/loris-ml/loris/internal/native/x64"
	"github.com/loris-ml/loris/ir"
)

// The processor divides no vectors of integers. Those of up to 32 bits go by way
// of f64, in which a quotient that is no integer is never rounded to one: it is
// further from the next than 2⁻³² of itself. Those of 64 bits are divided one by
// one. A divisor of 0 is noted in the spill memory, for Run to report.

// divisions returns the rows of integer division.
func divisions() map[ir.Op]emitters {
	row := func(floor, rest bool) emitters {
		return emitters{wrap: true, i: func(g *gen, w int, x []val) val {
			g.noteZeros(w, x[1])
			if w == 8 {
				return g.divideSingly(x[0], x[1], floor, rest)
			}
			q := g.quotient32(x[0], x[1], floor)
			if !rest {
				return q
			}
			n := g.vl(4)
			return g.op2(x64.PSUBD, n, x[0], g.op2(x64.PMULLD, n, q, x[1]))
		}}
	}
	return map[ir.Op]emitters{
		ir.OpFloorDivide: row(true, false), ir.OpTruncDivide: row(false, false), ir.OpRemainder: row(true, true), ir.OpFmod: row(false, true),
	}
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

// divideSingly divides the lanes of x by those of y in a loop.
func (g *gen) divideSingly(x, y val, floor, rest bool) val {
	n := g.vl(8)
	xs, ys := g.newSlot(), g.newSlot()
	slot := func(at int32) *place { return &place{arg: -1, mem: inSpill(at)} }
	g.add(vop{op: x64.MOVUPSst, len: n, b: x, mem: slot(xs), store: true})
	g.add(vop{op: x64.MOVUPSst, len: n, b: y, mem: slot(ys), store: true})
	lane := func(at int32) x64.Mem { return x64.Mem{Base: spillBase, Index: x64.R8, Scale: 8, Disp: at} }
	g.scalar(func() {
		a := &g.asm
		top, next, minus, done := a.Label(), a.Label(), a.Label(), a.Label()
		a.MovImm(x64.R8, 0)
		a.Bind(top)
		a.MovLoad(x64.RAX, lane(xs))
		a.MovLoad(x64.RBX, lane(ys))
		a.ArithImm(x64.Cmp, x64.RBX, 0)
		a.JumpIf(x64.Zero, next)
		// The least integer by -1 would trap.
		a.ArithImm(x64.Cmp, x64.RBX, -1)
		a.JumpIf(x64.Zero, minus)
		a.Cqo()
		a.IDiv(x64.RBX)
		if floor {
			a.ArithImm(x64.Cmp, x64.RDX, 0)
			a.JumpIf(x64.Zero, done)
			a.Arith(x64.Xor, x64.RBX, x64.RDX)
			a.JumpIf(x64.GreatEq, done) // the signs are the same
			a.ArithImm(x64.Sub, x64.RAX, 1)
			a.ArithLoad(x64.Add, x64.RDX, lane(ys))
		}
		a.Jump(done)
		a.Bind(minus)
		a.Neg(x64.RAX)
		a.MovImm(x64.RDX, 0)
		a.Bind(done)
		if rest {
			a.Mov(x64.RAX, x64.RDX)
		}
		a.MovStore(lane(xs), x64.RAX)
		a.Bind(next)
		a.ArithImm(x64.Add, x64.R8, 1)
		a.ArithImm(x64.Cmp, x64.R8, int32(n/8))
		a.JumpIf(x64.Less, top)
	})
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: slot(xs)})
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
		a := &g.asm
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
