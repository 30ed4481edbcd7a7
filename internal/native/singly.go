package native

import (
	"math"

	"github.com/loris-ml/loris/internal/native/x64"
)

// lanewise computes integers of 64 bits lane by lane: one emits what makes RAX, x's element,
// and RBX, y's, the result in RAX. y is the element of y in memory; RDX is free. Where all lanes of
// some are 0, nothing is computed, and the result is x.
func (g *gen) lanewise(x, y, some val, one func(a assembler, y x64.Mem)) val {
	const w = 8
	n := max(g.vl(w), 16)
	xs, ys, ss := g.newSlot(), g.newSlot(), g.newSlot()
	g.add(vop{op: x64.MOVUPSst, len: n, b: x, mem: g.slot(xs), store: true})
	g.add(vop{op: x64.MOVUPSst, len: n, b: y, mem: g.slot(ys), store: true})
	g.add(vop{op: x64.MOVUPSst, len: n, b: some, mem: g.slot(ss), store: true})
	lane := func(at int32) x64.Mem {
		return x64.Mem{Base: spillBase, Index: x64.R8, Scale: uint8(w), Disp: at}
	}
	g.scalar(func() {
		a := g.asm
		top, end := a.Label(), a.Label()
		g.orWords(ss, n)
		a.JumpIf(x64.Zero, end)
		a.MovImm(x64.R8, 0)
		a.Bind(top)
		a.LoadSize(x64.RAX, lane(xs), w)
		a.LoadSize(x64.RBX, lane(ys), w)
		one(a, lane(ys))
		a.StoreSize(lane(xs), x64.RAX, w)
		a.ArithImm(x64.Add, x64.R8, 1)
		a.ArithImm(x64.Cmp, x64.R8, int32(g.lanes))
		a.JumpIf(x64.Less, top)
		a.Bind(end)
	})
	return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(xs)})
}

// divide64 divides as f64s, in which quotients of numbers below 2⁵¹ never round to an integer that they
// do not have, and lane by lane where there are larger ones.
func (g *gen) divide64(x, y val, floor, rest bool) val {
	const w = 8
	half := g.konst(w, 1<<51)
	beyond := g.op2(x64.PORQ, g.vl(w), g.op2(x64.PADDQ, g.vl(w), x, half), g.op2(x64.PADDQ, g.vl(w), y, half))
	beyond = g.op1i(x64.PSRLQ, g.vl(w), beyond, 52)
	magic, bits := g.num(w, 0x1.8p52), g.konst(w, math.Float64bits(0x1.8p52))
	float := func(v val) val { return g.subF(w, g.op2(x64.PADDQ, g.vl(w), v, bits), magic) }
	a, b := float(x), float(y)
	mode := byte(11)
	if floor {
		mode = 9
	}
	q := g.op1i(x64.ROUNDPD, g.vl(w), g.div(w, a, b), mode)
	if rest {
		q = g.subMul(w, a, q, b)
	}
	fast := g.op2(x64.PSUBQ, g.vl(w), g.addF(w, q, magic), bits)
	return g.blend(w, g.nonZero(w, beyond), g.divideSingly(x, y, beyond, floor, rest), fast)
}

// divideSingly divides the lanes of x by those of y in a loop, if one of some is not 0.
func (g *gen) divideSingly(x, y, some val, floor, rest bool) val {
	return g.lanewise(x, y, some, func(a assembler, lane x64.Mem) {
		next, minus, done := a.Label(), a.Label(), a.Label()
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
			a.ArithLoad(x64.Add, x64.RDX, lane)
		}
		a.Jump(done)
		a.Bind(minus)
		a.Neg(x64.RAX)
		a.MovImm(x64.RDX, 0)
		a.Bind(done)
		if rest {
			a.Mov(x64.RAX, x64.RDX)
		}
		a.Bind(next)
	})
}
