package native

import (
	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
)

// assembler writes the operations of package x64 as code of the processor that a kernel is for. What
// its methods do is said there.
type assembler interface {
	Use(memory []byte)
	Label() x64.Label
	Bind(l x64.Label)
	Align(n int)
	Data(b ...byte)
	Vec(in x64.Inst)
	MovLoad(dst x64.Reg, m x64.Mem)
	MovStore(m x64.Mem, src x64.Reg)
	LoadSize(dst x64.Reg, m x64.Mem, size int)
	StoreSize(m x64.Mem, src x64.Reg, size int)
	Lea(dst x64.Reg, m x64.Mem)
	Mov(dst, src x64.Reg)
	MovImm(dst x64.Reg, imm int32)
	Arith(op x64.Arith, dst, src x64.Reg)
	ArithImm(op x64.Arith, dst x64.Reg, imm int32)
	ArithLoad(op x64.Arith, dst x64.Reg, m x64.Mem)
	ArithStore(op x64.Arith, m x64.Mem, src x64.Reg)
	TestImm(dst x64.Reg, imm int32)
	Jump(l x64.Label)
	JumpIf(c x64.Cond, l x64.Label)
	Ret()
	Sfence()
	VZeroUpper()
	IMul(dst, src x64.Reg)
	IMulLoad(dst x64.Reg, m x64.Mem)
	MulLoad(m x64.Mem)
	Neg(dst x64.Reg)
	Prefetch(m x64.Mem)
	Cqo()
	IDiv(src x64.Reg)
	ShiftImm(s x64.Shift, dst x64.Reg, count byte)
}

func newAssembler(isa ISA) assembler {
	if isa == NEON {
		return new(a64.Asm)
	}
	return new(x64.Asm)
}

// finish fails for code that is too long for its processor, or has what that lacks.
func finish(asm assembler) []byte {
	neon, ok := asm.(*a64.Asm)
	if !ok {
		return asm.(*x64.Asm).Finish()
	}
	text, err := neon.Finish()
	if err != nil {
		fail("%v", err)
	}
	return text
}
