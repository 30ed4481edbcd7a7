package native

import "github.com/loris-ml/loris/internal/native/x64"

// largeRests replaces the rests of the lanes of a mask, of f32s, by r less a multiple of b, between -b and b. A quotient
// of two f32s is below 2²⁷⁷, and each step leaves a rest that is exact and smaller by 2⁵² at least: b has 24 bits.
func (g *gen) largeRests(large, r, b, rest val) val {
	n := g.vl(4)
	s := restSlots{g.newSlot(), g.newSlot(), g.newSlot(), g.newSlot(), [3]int32{g.newSlot(), g.newSlot(), g.newSlot()}}
	g.add(vop{op: x64.MOVUPSst, len: n, b: r, mem: g.slot(s.r), store: true})
	g.add(vop{op: x64.MOVUPSst, len: n, b: b, mem: g.slot(s.b), store: true})
	g.storeMask(large, n, g.slot(s.mask))
	g.scalar(func() { g.reduceLarge(int(n), s) })
	// Where no lane is large the slot has something else, of which no lane is taken.
	return g.blend(4, large, g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(s.out)}), rest)
}

// restSlots is where remainders of f32s are computed in f64.
type restSlots struct {
	r, b, mask, out int32
	keep            [3]int32
}

// reduceLarge emits a jump where the mask is empty, and before it the steps in f64 of all lanes of a vector of n bytes.
func (g *gen) reduceLarge(n int, s restSlots) {
	a := g.asm
	end := a.Label()
	g.unlessAny(s.mask, n, end)
	whole := 32
	if g.evex() {
		whole = 64
	}
	long := min(whole, 2*n)
	mem := func(op x64.Op, bytes int, r x64.Reg, m x64.Mem) {
		a.Vec(x64.Inst{Op: op, Len: uint8(bytes), Reg: r, V: x64.NoReg, Mem: &m, EVEX: g.evex()})
	}
	reg := func(op x64.Op, r, v, from x64.Reg, imm byte) {
		a.Vec(x64.Inst{Op: op, Len: uint8(long), Reg: r, V: v, RM: from, Imm: imm, EVEX: g.evex()})
	}
	for i, at := range s.keep {
		mem(x64.MOVUPSst, whole, g.kept(i), inSpill(at))
	}
	r, b, q := g.kept(0), g.kept(1), g.kept(2)
	for part := range 2 * n / long {
		at := int32(part * long / 2)
		mem(x64.MOVUPS, long/2, r, inSpill(s.r+at))
		mem(x64.MOVUPS, long/2, b, inSpill(s.b+at))
		reg(x64.CVTPS2PD, r, x64.NoReg, r, 0)
		reg(x64.CVTPS2PD, b, x64.NoReg, b, 0)
		for range 6 {
			reg(x64.DIVPD, q, r, b, 0)
			reg(x64.ROUNDPD, q, x64.NoReg, q, 11)
			reg(x64.FNMADD231PD, r, q, b, 0)
		}
		reg(x64.CVTPD2PS, r, x64.NoReg, r, 0)
		mem(x64.MOVUPSst, long/2, r, inSpill(s.out+at))
	}
	for i, at := range s.keep {
		mem(x64.MOVUPS, whole, g.kept(i), inSpill(at))
	}
	a.Bind(end)
}

// storeMask keeps a mask of lanes of f32s for scalar code.
func (g *gen) storeMask(mask val, n uint8, at addr) {
	if g.evex() {
		g.add(vop{op: x64.KMOVWst, len: 16, b: mask, mem: at, store: true})
		return
	}
	g.add(vop{op: x64.MOVUPSst, len: n, b: mask, mem: at, store: true})
}

// unlessAny emits a jump for a mask that storeMask kept of a vector of n bytes, if it has no lane.
func (g *gen) unlessAny(mask int32, n int, none x64.Label) {
	a := g.asm
	if g.evex() {
		a.LoadSize(x64.RAX, inSpill(mask), 2)
		a.ArithImm(x64.Cmp, x64.RAX, 0)
	} else {
		a.MovLoad(x64.RAX, inSpill(mask))
		for at := int32(8); at < int32(n); at += 8 {
			a.ArithLoad(x64.Or, x64.RAX, inSpill(mask+at))
		}
	}
	a.JumpIf(x64.Zero, none)
}
