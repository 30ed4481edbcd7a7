package x64

// enc is how an instruction is encoded.
type enc struct {
	name string
	pp   byte // 0 none, 1 66, 2 F3, 3 F2
	m    byte // 1 0F, 2 0F38, 3 0F3A
	opc  byte
	vw   byte // W of the VEX form
	ew   byte // W of the EVEX form
	// bc is the size of the elements that EVEX can broadcast from memory, 0 if
	// it can't.
	bc byte
	// ext is, for instructions with one register and an immediate, 8 plus the
	// number that takes the place of the register field.
	ext   byte
	flags byte
}

const (
	onlyVEX     = 1 << iota // has no EVEX form
	onlyEVEX                // has no VEX form
	hasImm                  // takes an immediate byte
	noMem                   // rm must be a register
	fixed256                // VEX.L is 1 whatever the length
	vectorIndex             // the address has a vector register as its index
)

// Inst is a vector or mask instruction with its operands.
type Inst struct {
	Op Op
	// Len is the vector length in bytes: 16, 32 or 64.
	Len uint8
	// EVEX selects that encoding; registers above 15, masks and broadcasts need it.
	EVEX bool
	// Reg is the destination, or the source of a store; V the first source, NoReg
	// for none; RM the second unless Mem is set. For instructions with an
	// immediate shift the destination is V, and Reg is not used. For gathers V is the
	// mask of the VEX form, and the index of Mem a vector register of the elements'
	// 32-bit offsets.
	Reg, V, RM Reg
	Mem        *Mem
	// Bcast reads one element from Mem for all.
	Bcast bool
	// Mask is the register of the write mask, NoReg or 0 for none, Zero clears
	// what it excludes.
	Mask Reg
	Zero bool
	Imm  byte
	// Is4 is the fourth register of vblendv, in the immediate.
	Is4 Reg
}

// Name returns the mnemonic.
func (o Op) Name() string { return ops[o].name }

// Bcast returns the size of the elements that the EVEX form can broadcast.
func (o Op) Bcast() int { return int(ops[o].bc) }

// RegOnly reports whether the last source can't be memory.
func (o Op) RegOnly() bool { return ops[o].flags&noMem != 0 }

// Gathers reports whether the operation's address has a vector register as its
// index.
func (o Op) Gathers() bool { return ops[o].flags&vectorIndex != 0 }

// ByCount reports whether the operation is a shift by an immediate count, whose
// destination takes the place of the first source.
func (o Op) ByCount() bool { return ops[o].ext != 0 }

// Vec appends an instruction.
func (a *Asm) Vec(in Inst) {
	e := ops[in.Op]
	reg, v := in.Reg, in.V
	if e.ext != 0 {
		reg = Reg(e.ext - 8)
	}
	tail := 0
	if e.flags&hasImm != 0 {
		tail = 1
	}
	base, index := in.RM, NoReg
	if in.Mem != nil {
		base, index = in.Mem.Base, in.Mem.Index
		if in.Mem.Label != 0 {
			base, index = NoReg, NoReg
		}
	}
	if e.flags&vectorIndex != 0 && index >= 16 {
		v = 16 // where EVEX has the highest bit of the index
	}
	evex := (in.EVEX || e.flags&onlyEVEX != 0) && e.flags&onlyVEX == 0
	if evex {
		a.evex(e, &in, reg, v, index, base)
	} else {
		l := byte(0)
		if in.Len == 32 || e.flags&fixed256 != 0 {
			l = 1
		}
		a.vex(e, l, reg, v, index, base)
	}
	a.buf = append(a.buf, e.opc)
	if in.Mem != nil {
		a.modrm(reg, *in.Mem, tail, evex)
	} else {
		a.buf = append(a.buf, 0xc0|byte(reg&7)<<3|byte(in.RM&7))
	}
	if tail != 0 {
		if in.Is4 > 0 {
			in.Imm = byte(in.Is4) << 4
		}
		a.buf = append(a.buf, in.Imm)
	}
}

func inverted(v Reg) byte {
	if v < 0 {
		return 0xf
	}
	return ^byte(v) & 0xf
}

func (a *Asm) vex(e enc, l byte, reg, v, index, base Reg) {
	r, x, b := high(reg, 3)^1, high(index, 3)^1, high(base, 3)^1
	last := inverted(v)<<3 | l<<2 | e.pp
	if x == 1 && b == 1 && e.vw == 0 && e.m == 1 {
		a.buf = append(a.buf, 0xc5, r<<7|last)
		return
	}
	a.buf = append(a.buf, 0xc4, r<<7|x<<6|b<<5|e.m, e.vw<<7|last)
}

func (a *Asm) evex(e enc, in *Inst, reg, v, index, base Reg) {
	r, r2 := high(reg, 3)^1, high(reg, 4)^1
	b, x := high(base, 3)^1, high(index, 3)^1
	if in.Mem == nil {
		x = high(base, 4) ^ 1
	}
	l := in.Len >> 5 // 16, 32 and 64 give 0, 1 and 2
	p2 := l<<5 | (high(v, 4)^1)<<3
	if in.Mask > 0 {
		p2 |= byte(in.Mask)
	}
	if in.Zero {
		p2 |= 0x80
	}
	if in.Bcast {
		p2 |= 0x10
	}
	a.buf = append(a.buf, 0x62, r<<7|x<<6|b<<5|r2<<4|e.m, e.ew<<7|inverted(v)<<3|4|e.pp, p2)
}
