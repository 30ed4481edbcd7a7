package a64

import "github.com/loris-ml/loris/internal/native/x64"

// The encodings of general instructions, without registers.
const (
	addReg  = 0x8b000000
	subReg  = 0xcb000000
	addsReg = 0xab000000
	subsReg = 0xeb000000
	andsReg = 0xea000000
	orrReg  = 0xaa000000
	eorReg  = 0xca000000
	addImm  = 0x91000000
	subImm  = 0xd1000000
	addsImm = 0xb1000000
	subsImm = 0xf1000000
	movz    = 0xd2800000
	movn    = 0x92800000
	movk    = 0xf2800000
	mul     = 0x9b007c00
	umulh   = 0x9bc07c00
	sdiv    = 0x9ac00c00
	msub    = 0x9b008000
	ubfm    = 0xd3400000
	sbfm    = 0x93400000
	adr     = 0x10000000
	branch  = 0x14000000
	branchC = 0x54000000
	ret     = 0xd65f03c0
	fence   = 0xd5033abf // dmb ishst
	pldl1   = 0xf9800000 // prfm pldl1keep

	load1  = 0x39400000
	load2  = 0x79400000
	load4  = 0xb9400000
	load8  = 0xf9400000
	store1 = 0x39000000
	store2 = 0x79000000
	store4 = 0xb9000000
	store8 = 0xf9000000
	// unsignedForm is the bit of loads and stores whose offset is unsigned and in units of their size.
	unsignedForm = 1 << 24
)

var (
	loads  = [9]uint32{1: load1, 2: load2, 4: load4, 8: load8}
	stores = [9]uint32{1: store1, 2: store2, 4: store4, 8: store8}
)

// mov is d = imm.
func (a *Asm) mov(d uint32, imm int64) {
	first, skip := uint32(movz), uint64(0)
	u := uint64(imm)
	if imm < 0 {
		first, skip = movn, 0xffff
	}
	started := false
	for i := range uint32(4) {
		part := u >> (16 * i) & 0xffff
		switch {
		case part == skip && (started || i < 3):
		case started:
			a.word(movk | i<<21 | uint32(part)<<5 | d)
		default:
			a.word(first | i<<21 | uint32(part^skip)<<5 | d)
			started = true
		}
	}
}

// MovLoad is a load of 64 bits.
func (a *Asm) MovLoad(dst x64.Reg, m x64.Mem) { a.LoadSize(dst, m, 8) }

// MovStore is a store of 64 bits.
func (a *Asm) MovStore(m x64.Mem, src x64.Reg) { a.StoreSize(m, src, 8) }

// LoadSize is a load of size bytes, 1, 2, 4 or 8, with zeros above.
func (a *Asm) LoadSize(dst x64.Reg, m x64.Mem, size int) {
	a.access(loads[size], uint32(dst), int32(size), a.resolve(&m, int32(size)), 0)
}

// StoreSize is a store of size bytes: 1, 2, 4 or 8.
func (a *Asm) StoreSize(m x64.Mem, src x64.Reg, size int) {
	a.access(stores[size], uint32(src), int32(size), a.resolve(&m, int32(size)), 0)
}

// Lea is dst = the address.
func (a *Asm) Lea(dst x64.Reg, m x64.Mem) {
	d := uint32(dst)
	if m.Label != 0 {
		a.far(adr|d, bytes21, m.Label, m.Disp)
		return
	}
	n := uint32(m.Base)
	if m.Index != x64.NoReg {
		a.rrr(addReg|logs[m.Scale]<<10, d, n, uint32(m.Index))
		if n = d; m.Disp == 0 {
			return
		}
	}
	a.addImm(d, n, m.Disp)
}

// Mov is dst = src.
func (a *Asm) Mov(dst, src x64.Reg) { a.rrr(orrReg, uint32(dst), zero, uint32(src)) }

// MovImm is dst = imm, sign-extended to 64 bits.
func (a *Asm) MovImm(dst x64.Reg, imm int32) { a.mov(uint32(dst), int64(imm)) }

// Arith is dst = dst op src, and sets the flags.
func (a *Asm) Arith(op x64.Arith, dst, src x64.Reg) {
	a.arith(op, uint32(dst), uint32(dst), uint32(src))
}

// ArithImm is Arith with a number.
func (a *Asm) ArithImm(op x64.Arith, dst x64.Reg, imm int32) {
	d := uint32(dst)
	if 0 <= imm && imm < 4096 {
		switch op {
		case x64.Add:
			a.added = true
			a.rr(addsImm|uint32(imm)<<10, d, d)
			return
		case x64.Sub:
			a.added = false
			a.rr(subsImm|uint32(imm)<<10, d, d)
			return
		case x64.Cmp:
			a.added = false
			a.rr(subsImm|uint32(imm)<<10, zero, d)
			return
		}
	}
	a.mov(number, int64(imm))
	a.arith(op, d, d, number)
}

// ArithLoad is Arith with a source in memory.
func (a *Asm) ArithLoad(op x64.Arith, dst x64.Reg, m x64.Mem) {
	a.access(load8, number, 8, a.resolve(&m, 8), 0)
	a.arith(op, uint32(dst), uint32(dst), number)
}

// ArithStore is Arith with a destination in memory.
func (a *Asm) ArithStore(op x64.Arith, m x64.Mem, src x64.Reg) {
	p := a.resolve(&m, 8)
	a.access(load8, number, 8, p, 0)
	a.arith(op, number, number, uint32(src))
	a.access(store8, number, 8, p, 0)
}

func (a *Asm) arith(op x64.Arith, d, n, m uint32) {
	a.added = op == x64.Add
	switch op {
	case x64.Add:
		a.rrr(addsReg, d, n, m)
	case x64.Sub:
		a.rrr(subsReg, d, n, m)
	case x64.Cmp:
		a.rrr(subsReg, zero, n, m)
	case x64.And:
		a.rrr(andsReg, d, n, m)
	case x64.Or:
		a.rrr(orrReg, d, n, m)
		a.rrr(andsReg, zero, d, d)
	case x64.Xor:
		a.rrr(eorReg, d, n, m)
		a.rrr(andsReg, zero, d, d)
	}
}

// TestImm sets the flags to those of the low 32 bits of dst and imm.
func (a *Asm) TestImm(dst x64.Reg, imm int32) {
	a.mov(number, int64(uint32(imm)))
	a.rrr(andsReg, zero, uint32(dst), number)
}

// conditions has the numbers of those of x64, after a subtraction.
var conditions = map[x64.Cond]uint32{
	x64.Below: 3, x64.AboveEq: 2, x64.Zero: 0, x64.NotZero: 1, x64.Less: 11, x64.GreatEq: 10, x64.LessEq: 13, x64.Greater: 12,
}

// Jump is a jump.
func (a *Asm) Jump(l x64.Label) { a.far(branch, words26, l, 0) }

// JumpIf is a jump on the flags of the last Arith or TestImm. The carry of a subtraction is set where
// nothing is borrowed.
func (a *Asm) JumpIf(c x64.Cond, l x64.Label) {
	n := conditions[c]
	if a.added && (c == x64.Below || c == x64.AboveEq) {
		n ^= 1
	}
	a.far(branchC|n, words19, l, 0)
}

// Ret returns.
func (a *Asm) Ret() { a.word(ret) }

// Sfence orders stores.
func (a *Asm) Sfence() { a.word(fence) }

// VZeroUpper does nothing.
func (a *Asm) VZeroUpper() {}

// IMul is dst = dst·src.
func (a *Asm) IMul(dst, src x64.Reg) { a.rrr(mul, uint32(dst), uint32(dst), uint32(src)) }

// IMulLoad is IMul with a source in memory.
func (a *Asm) IMulLoad(dst x64.Reg, m x64.Mem) {
	a.access(load8, number, 8, a.resolve(&m, 8), 0)
	a.rrr(mul, uint32(dst), uint32(dst), number)
}

// MulLoad is RDX:RAX = RAX times 64 bits of memory, unsigned.
func (a *Asm) MulLoad(m x64.Mem) {
	a.access(load8, number, 8, a.resolve(&m, 8), 0)
	a.rrr(umulh, uint32(x64.RDX), uint32(x64.RAX), number)
	a.rrr(mul, uint32(x64.RAX), uint32(x64.RAX), number)
}

// Neg is dst = -dst.
func (a *Asm) Neg(dst x64.Reg) { a.rrr(subReg, uint32(dst), zero, uint32(dst)) }

// Prefetch fetches a cache line and never faults.
func (a *Asm) Prefetch(m x64.Mem) { a.rr(pldl1, 0, a.register(&m)) }

// Cqo makes RDX the sign of RAX.
func (a *Asm) Cqo() { a.rr(sbfm|63<<16|63<<10, uint32(x64.RDX), uint32(x64.RAX)) }

// IDiv is RAX = RAX/src, RDX the rest, signed.
func (a *Asm) IDiv(src x64.Reg) {
	const rax, rdx = uint32(x64.RAX), uint32(x64.RDX)
	a.rrr(sdiv, number, rax, uint32(src))
	a.rrr(msub|rax<<10, rdx, number, uint32(src))
	a.rrr(orrReg, rax, zero, number)
}

// ShiftImm is a shift of 64 bits by a count from 1 to 63.
func (a *Asm) ShiftImm(s x64.Shift, dst x64.Reg, count byte) {
	d, n := uint32(dst), uint32(count)
	switch s {
	case x64.Shl:
		a.rr(ubfm|(64-n)<<16|(63-n)<<10, d, d)
	case x64.Shr:
		a.rr(ubfm|n<<16|63<<10, d, d)
	case x64.Sar:
		a.rr(sbfm|n<<16|63<<10, d, d)
	}
}
