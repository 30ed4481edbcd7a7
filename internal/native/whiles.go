package native

import "github.com/loris-ml/loris/internal/native/x64"

// Powers and greatest common divisors of integers take as many steps as the largest element of a
// vector needs, so they are loops inside of a region. What a loop carries from one turn to the next
// lies in cells of the spill memory. No register holds a val when a turn begins, so the code of a
// turn is right for each of them; after the loop registers are as the last turn left them.

// cell is a place in the spill memory with a vector of integers of w bytes.
type cell struct {
	g    *gen
	slot int32
	n    uint8
}

func (g *gen) newCell(w int, first val) cell {
	c := cell{g, g.newSlot(), max(g.vl(w), 16)}
	c.set(first)
	return c
}

func (c cell) addr() addr { return c.g.slot(c.slot) }

func (c cell) get() val {
	return c.g.add(vop{op: x64.MOVUPS, len: c.n, dst: c.g.temp(c.n), mem: c.addr()})
}

func (c cell) set(v val) {
	c.g.add(vop{op: x64.MOVUPSst, len: c.n, b: v, mem: c.addr(), store: true})
}

// orWords emits the disjunction, in RAX, of the words of the n bytes in a slot.
func (g *gen) orWords(slot int32, n uint8) {
	g.asm.MovLoad(x64.RAX, inSpill(slot))
	for at := int32(8); at < int32(n); at += 8 {
		g.asm.ArithLoad(x64.Or, x64.RAX, inSpill(slot+at))
	}
}

// while repeats what turn lowers, once at least, until all elements of c are 0.
func (g *gen) while(c cell, turn func()) {
	var top x64.Label
	g.scalar(func() {
		top = g.asm.Label()
		g.asm.Bind(top)
	})
	g.ops[len(g.ops)-1].loops = true
	turn()
	g.scalar(func() {
		g.orWords(c.slot, c.n)
		g.asm.JumpIf(x64.NotZero, top)
	})
}

// powInt is x to the power y by squaring. Negative powers of other numbers than 1 and -1 are 0; those
// of 1 and -1 are the first or the second power.
func powInt(g *gen, w int, in []val) val {
	n, one := g.vl(w), g.konst(w, 1)
	add, sub, and := by(w, x64.PADDD, x64.PADDQ), by(w, x64.PSUBD, x64.PSUBQ), by(w, x64.PANDD, x64.PANDQ)
	odd := func(y val) val { return g.op2(and, n, y, one) }
	zero, negative := g.konst(w, 0), g.cmpI(w, intLT, in[1], g.konst(w, 0))
	unit := g.cmpI(w, intEQ, absInt(g, w, in[:1]), one)
	x := g.newCell(w, g.blend(w, negative, g.blend(w, unit, in[0], zero), in[0]))
	y := g.newCell(w, g.blend(w, negative, g.op2(sub, n, g.konst(w, 2), odd(in[1])), in[1]))
	p := g.newCell(w, one)
	g.while(y, func() {
		base, power := x.get(), y.get()
		taken := g.op2(sub, n, zero, odd(power)) // all bits or none
		factor := g.op2(add, n, g.op2(and, n, g.op2(sub, n, base, one), taken), one)
		p.set(mulInt(g, w, []val{p.get(), factor}))
		x.set(mulInt(g, w, []val{base, base}))
		y.set(g.op1i(by(w, x64.PSRLD, x64.PSRLQ), n, power, 1))
	})
	return p.get()
}

// zeros returns how many zeros there are below the lowest bit that is set, from the exponent of that
// bit as a float. Of 0 it is negative, by which the processor shifts everything out.
func (g *gen) zeros(w int, x val) val {
	n := g.vl(w)
	low := g.op2(by(w, x64.PANDD, x64.PANDQ), n, x, g.op2(by(w, x64.PSUBD, x64.PSUBQ), n, g.konst(w, 0), x))
	bits, mask, bias := byte(23), uint64(0xff), uint64(127)
	if w == 8 {
		bits, mask, bias = 52, 0x7ff, 1023
	}
	e := g.op1i(by(w, x64.PSRLD, x64.PSRLQ), n, g.op1(by(w, x64.CVTDQ2PS, x64.CVTQQ2PD), n, low), bits)
	e = g.op2(by(w, x64.PANDD, x64.PANDQ), n, e, g.konst(w, mask))
	return g.op2(by(w, x64.PSUBD, x64.PSUBQ), n, e, g.konst(w, bias))
}

// gcdInt is Stein's algorithm: of two odd numbers the smaller one and the difference less its zeros
// have the same divisors. The elements that are done have 0 as b, which is made larger than any a by
// subtracting 1 where the smaller one is looked for.
func gcdInt(g *gen, w int, in []val) val {
	if w == 8 && !g.evex() {
		fail("the greatest common divisor of 64 bits with AVX2")
	}
	n, one := g.vl(w), g.konst(w, 1)
	add, sub := by(w, x64.PADDD, x64.PADDQ), by(w, x64.PSUBD, x64.PSUBQ)
	shifted := func(x val) val { return g.op2(by(w, x64.PSRLVD, x64.PSRLVQ), n, x, g.zeros(w, x)) }
	x, y := absInt(g, w, in[:1]), absInt(g, w, in[1:])
	common := g.zeros(w, g.op2(by(w, x64.PORD, x64.PORQ), n, x, y))
	a, b := g.newCell(w, shifted(x)), g.newCell(w, y)
	g.while(b, func() {
		v, u := a.get(), shifted(b.get())
		least := g.op2(by(w, x64.PMINUD, x64.PMINUQ), n, g.op2(sub, n, v, one), g.op2(sub, n, u, one))
		least = g.op2(add, n, least, one)
		a.set(least)
		b.set(g.op2(sub, n, g.op2(by(w, x64.PMAXUD, x64.PMAXUQ), n, v, u), least))
	})
	return g.op2(by(w, x64.PSLLVD, x64.PSLLVQ), n, a.get(), common)
}
