package x64

// Cond is a condition of a jump, by its number in the opcode.
type Cond byte

// The conditions, of signed comparisons and of zero.
const (
	Below    Cond = 2 // unsigned
	AboveEq  Cond = 3 // unsigned
	Zero     Cond = 4
	NotZero  Cond = 5
	Less     Cond = 0xc
	GreatEq  Cond = 0xd
	LessEq   Cond = 0xe
	Greater  Cond = 0xf
	rexW          = 8
	opLea         = 0x8d
	opLoad64      = 0x8b
	opStor64      = 0x89
)

// Arith is a two-operand integer instruction, by its number in the opcode.
type Arith byte

// The two-operand instructions.
const (
	Add Arith = 0
	Or  Arith = 1
	And Arith = 4
	Sub Arith = 5
	Xor Arith = 6
	Cmp Arith = 7
)

func (a *Asm) rex(w byte, reg, index, base Reg, always bool) {
	b := w | high(reg, 3)<<2 | high(index, 3)<<1 | high(base, 3)
	if b != 0 || always {
		a.buf = append(a.buf, 0x40|b)
	}
}

func (a *Asm) scalarMem(w byte, op byte, reg Reg, m Mem, tail int) {
	if m.Label != 0 {
		m.Base, m.Index = NoReg, NoReg
	}
	a.rex(w, reg, m.Index, m.Base, false)
	a.buf = append(a.buf, op)
	a.modrm(reg, m, tail, false)
}

// MovLoad is mov dst, [m] of 64 bits.
func (a *Asm) MovLoad(dst Reg, m Mem) { a.scalarMem(rexW, opLoad64, dst, m, 0) }

// MovStore is mov [m], src of 64 bits.
func (a *Asm) MovStore(m Mem, src Reg) { a.scalarMem(rexW, opStor64, src, m, 0) }

// Lea is lea dst, [m].
func (a *Asm) Lea(dst Reg, m Mem) { a.scalarMem(rexW, opLea, dst, m, 0) }

// LoadSize is mov or movzx dst, [m] of size bytes: 1, 2, 4 or 8.
func (a *Asm) LoadSize(dst Reg, m Mem, size int) {
	switch size {
	case 1, 2:
		a.rex(0, dst, m.Index, m.Base, false)
		a.buf = append(a.buf, 0x0f, 0xb6+byte(size-1))
		a.modrm(dst, m, 0, false)
	case 4:
		a.scalarMem(0, opLoad64, dst, m, 0)
	default:
		a.MovLoad(dst, m)
	}
}

// StoreSize is mov [m], src of size bytes: 1, 2, 4 or 8.
func (a *Asm) StoreSize(m Mem, src Reg, size int) {
	switch size {
	case 1:
		a.rex(0, src, m.Index, m.Base, src >= RSP)
		a.buf = append(a.buf, 0x88)
		a.modrm(src, m, 0, false)
	case 2:
		a.buf = append(a.buf, 0x66)
		a.scalarMem(0, opStor64, src, m, 0)
	case 4:
		a.scalarMem(0, opStor64, src, m, 0)
	default:
		a.MovStore(m, src)
	}
}

// Mov is mov dst, src of 64 bits.
func (a *Asm) Mov(dst, src Reg) { a.regReg(opStor64, src, dst) }

func (a *Asm) regReg(op byte, reg, rm Reg) {
	a.rex(rexW, reg, NoReg, rm, false)
	a.buf = append(a.buf, op, 0xc0|byte(reg&7)<<3|byte(rm&7))
}

// MovImm is mov dst, imm, sign-extended to 64 bits.
func (a *Asm) MovImm(dst Reg, imm int32) {
	a.rex(rexW, 0, NoReg, dst, false)
	a.buf = append(a.buf, 0xc7, 0xc0|byte(dst&7))
	a.u32(imm)
}

// Arith is op dst, src of 64 bits.
func (a *Asm) Arith(op Arith, dst, src Reg) { a.regReg(byte(op)<<3|1, src, dst) }

// ArithImm is op dst, imm of 64 bits.
func (a *Asm) ArithImm(op Arith, dst Reg, imm int32) {
	a.rex(rexW, 0, NoReg, dst, false)
	if imm == int32(int8(imm)) {
		a.buf = append(a.buf, 0x83, 0xc0|byte(op)<<3|byte(dst&7), byte(imm))
		return
	}
	a.buf = append(a.buf, 0x81, 0xc0|byte(op)<<3|byte(dst&7))
	a.u32(imm)
}

// ArithLoad is op dst, [m] of 64 bits.
func (a *Asm) ArithLoad(op Arith, dst Reg, m Mem) { a.scalarMem(rexW, byte(op)<<3|3, dst, m, 0) }

// ArithStore is op [m], src of 64 bits.
func (a *Asm) ArithStore(op Arith, m Mem, src Reg) { a.scalarMem(rexW, byte(op)<<3|1, src, m, 0) }

// TestImm is test dst, imm of 32 bits.
func (a *Asm) TestImm(dst Reg, imm int32) {
	a.rex(0, 0, NoReg, dst, false)
	a.buf = append(a.buf, 0xf7, 0xc0|byte(dst&7))
	a.u32(imm)
}

// Bzhi is bzhi dst, src, count: the low count bits of src. VEX, BMI2.
func (a *Asm) Bzhi(dst, src, count Reg) {
	a.vex(enc{m: 2, opc: 0xf5, vw: 1}, 0, dst, count, NoReg, src)
	a.buf = append(a.buf, 0xf5, 0xc0|byte(dst&7)<<3|byte(src&7))
}

// Jump is jmp label.
func (a *Asm) Jump(l Label) {
	a.buf = append(a.buf, 0xe9)
	a.label(l, 0, 0)
}

// JumpIf is a conditional jump.
func (a *Asm) JumpIf(c Cond, l Label) {
	a.buf = append(a.buf, 0x0f, 0x80|byte(c))
	a.label(l, 0, 0)
}

// Ret is ret.
func (a *Asm) Ret() { a.buf = append(a.buf, 0xc3) }

// Sfence is sfence.
func (a *Asm) Sfence() { a.buf = append(a.buf, 0x0f, 0xae, 0xf8) }

// VZeroUpper is vzeroupper.
func (a *Asm) VZeroUpper() { a.buf = append(a.buf, 0xc5, 0xf8, 0x77) }

// IMulLoad is imul dst, [m] of 64 bits.
func (a *Asm) IMulLoad(dst Reg, m Mem) {
	a.rex(rexW, dst, m.Index, m.Base, false)
	a.buf = append(a.buf, 0x0f, 0xaf)
	a.modrm(dst, m, 0, false)
}

// MulLoad is mul [m]: RDX:RAX = RAX times 64 bits of memory, unsigned.
func (a *Asm) MulLoad(m Mem) { a.scalarMem(rexW, 0xf7, 4, m, 0) }

// Neg is neg dst.
func (a *Asm) Neg(dst Reg) { a.regReg(0xf7, 3, dst) }

// Prefetch is prefetcht0 [m], which fetches a cache line and never faults.
func (a *Asm) Prefetch(m Mem) {
	a.rex(0, 0, m.Index, m.Base, false)
	a.buf = append(a.buf, 0x0f, 0x18)
	a.modrm(1, m, 0, false)
}

// Cqo is cqo: RDX becomes the sign of RAX.
func (a *Asm) Cqo() { a.buf = append(a.buf, 0x48, 0x99) }

// IDiv is idiv src of 64 bits: RAX = RDX:RAX / src, RDX the rest, signed.
func (a *Asm) IDiv(src Reg) { a.regReg(0xf7, 7, src) }

// Shift is an instruction that shifts by a count, by its number in the opcode.
type Shift byte

// The shifts.
const (
	Shl Shift = 4
	Shr Shift = 5
	Sar Shift = 7
)

// ShiftImm is a shift of 64 bits by a count.
func (a *Asm) ShiftImm(s Shift, dst Reg, count byte) {
	a.rex(rexW, 0, NoReg, dst, false)
	a.buf = append(a.buf, 0xc1, 0xc0|byte(s)<<3|byte(dst&7), count)
}

// IMul is imul dst, src of 64 bits.
func (a *Asm) IMul(dst, src Reg) {
	a.rex(rexW, dst, NoReg, src, false)
	a.buf = append(a.buf, 0x0f, 0xaf, 0xc0|byte(dst&7)<<3|byte(src&7))
}
