package a64

import "github.com/loris-ml/loris/internal/native/x64"

// long makes lanes twice as wide as those of the second source, then applies an operation to them if
// there is one. The upper half is made first, because the lower may take the place of the source.
func long(op, then uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		m := a.low(in, int(in.Len)/2)
		for h := halves(in) - 1; h >= 0; h-- {
			d := v(in.Reg, h)
			a.rr(op|uint32(h)*high, d, m)
			if then != 0 {
				a.rr(then, d, d)
			}
		}
	}
}

// fromBytes makes lanes of 32 bits of bytes.
func fromBytes(words, ints uint32) func(a *Asm, in *inst) {
	return func(a *Asm, in *inst) {
		a.rr(words, tmp0, a.low(in, int(in.Len)/4))
		for h := range halves(in) {
			a.rr(ints|uint32(h)*high, v(in.Reg, h), tmp0)
		}
	}
}

// narrow makes lanes half as wide, at the bottom of a register.
func (a *Asm) narrow(op uint32, dst, src x64.Reg, in *inst) {
	if in.inMemory {
		p := a.resolve(&in.mem, 16)
		for h := range halves(in) {
			a.access(loadQ, source, 16, p, int32(16*h))
			a.rr(op|uint32(h)*high, v(dst, 0), source)
		}
		return
	}
	for h := range halves(in) {
		a.rr(op|uint32(h)*high, v(dst, 0), v(src, h))
	}
}

// exchange swaps neighbouring lanes of 32 bits, or of 64.
func (a *Asm) exchange(in *inst) {
	a.each(in, func(d, _, m uint32) {
		switch in.Imm {
		case 0xb1:
			a.rr(rev64S, d, m)
		case 0x4e:
			a.rrr(ext|8<<11, d, m, m)
		default:
			a.lack("exchange %#x", in.Imm)
		}
	})
}

// evens takes the even lanes of 32 bits of both sources.
func (a *Asm) evens(in *inst) {
	if in.Imm != 0x88 {
		a.lack("choice of lanes %#x", in.Imm)
	}
	a.each(in, func(d, n, m uint32) { a.rrr(uzp1S, d, n, m) })
}

// quarters exchanges the halves of a vector of 32 bytes.
func (a *Asm) quarters(in *inst) {
	if in.Imm != 0x4e {
		a.lack("exchange of quarters %#x", in.Imm)
	}
	m := [2]uint32{v(in.RM, 0), v(in.RM, 1)}
	if in.inMemory {
		p := a.resolve(&in.mem, 16)
		m = [2]uint32{tmp0, tmp1}
		a.access(loadQ, tmp0, 16, p, 0)
		a.access(loadQ, tmp1, 16, p, 16)
	}
	a.move(source, m[0])
	a.move(v(in.Reg, 0), m[1])
	a.move(v(in.Reg, 1), source)
}

// look gives each lane the element of a table of 8 that the 3 lowest bits of the first source's lane
// count. NEON looks up bytes: those of a lane are at 4 times the number and 0 to 3 further on.
func (a *Asm) look(in *inst) {
	index := [2]uint32{tmp1, tmp2}
	n := halves(in)
	for h := range n {
		a.rr(shl|(32+29)<<16, index[h], v(in.V, h))
		a.rr(ushr|(64-27)<<16, index[h], index[h])
	}
	a.all(source, 4, 0x01010101)
	for h := range n {
		a.rrr(mulS, index[h], index[h], source)
	}
	a.all(source, 4, 0x03020100)
	for h := range n {
		a.rrr(addS, index[h], index[h], source)
	}
	table := v(in.RM, 0)
	if in.inMemory {
		table = source
		p := a.resolve(&in.mem, 16)
		a.access(loadQ, source, 16, p, 0)
		a.access(loadQ, source+1, 16, p, 16)
	}
	for h := range n {
		a.rrr(tblTwo, index[h], table, index[h])
	}
	for h := range n {
		a.move(v(in.Reg, h), index[h])
	}
}

// A conversion of floats to integers gives the least integer for NaN and for what is too large. NEON's
// gives 0 and the largest.

// The bits of -2³¹ and -2⁶³.
const (
	least32F = 0xcf000000
	least32D = 0xc1e0000000000000
	least64D = 0xc3e0000000000000
)

// convert makes tmp1 the integers of n, and tmp2 the mask of those that are right or least anyway.
func (a *Asm) convert(n uint32, w int, least uint64) {
	neg, gt, op := uint32(fnegS), uint32(fcmgtS), uint32(fcvtzsS)
	if w == 8 {
		neg, gt, op = fnegD, fcmgtD, fcvtzsD
	}
	a.all(tmp0, w, least)
	a.rr(neg, tmp2, tmp0)
	a.rrr(gt, tmp2, tmp2, n)
	a.rr(op, tmp1, n)
}

func (a *Asm) toInts(in *inst) {
	a.each(in, func(d, _, m uint32) {
		a.convert(m, 4, least32F)
		a.rr(moviTop|4<<16, tmp0, 0)
		a.rrr(bif, tmp1, tmp0, tmp2)
		a.move(d, tmp1)
	})
}

// doublesToInts narrows with saturation: the bits of the float -2³¹ are a small enough integer for
// that to give the least.
func (a *Asm) doublesToInts(in *inst) {
	h := uint32(0)
	a.each(in, func(_, _, m uint32) {
		a.convert(m, 8, least32D)
		a.rrr(bif, tmp1, tmp0, tmp2)
		a.rr(sqxtnS|h*high, v(in.Reg, 0), tmp1)
		h++
	})
}

func (a *Asm) toLongs(in *inst) {
	a.each(in, func(d, _, m uint32) { a.toLong(d, m) })
}

func (a *Asm) toLong(d, m uint32) {
	a.convert(m, 8, least64D)
	a.all(tmp0, 8, 1<<63)
	a.rrr(bif, tmp1, tmp0, tmp2)
	a.move(d, tmp1)
}

func (a *Asm) floatsToLongs(in *inst) {
	m := a.low(in, int(in.Len)/2)
	for h := halves(in) - 1; h >= 0; h-- {
		d := v(in.Reg, h)
		a.rr(fcvtlD|uint32(h)*high, d, m)
		a.toLong(d, d)
	}
}

// longsToFloats rounds once, which by way of f64 would be twice.
func (a *Asm) longsToFloats(in *inst) {
	lane := uint32(0)
	a.each(in, func(_, _, m uint32) {
		for i := range uint32(2) {
			a.rr(umov|laneD|i<<20, number, m)
			a.rr(scvtfSX, tmp0, number)
			a.rr(insS|lane<<19, tmp1, tmp0)
			lane++
		}
	})
	a.move(v(in.Reg, 0), tmp1)
}
