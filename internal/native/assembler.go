package native

import (
	"github.com/loris-ml/loris/internal/native/a64"
	"github.com/loris-ml/loris/internal/native/x64"
)

// assembler writes the operations of package x64 as code of the processor that a kernel is for. What
// its methods do is said there.
type assembler struct {
	x64  x64.Asm
	a64  a64.Asm
	neon bool // the code is for a64
}

func (a *assembler) Use(memory []byte) {
	if a.neon {
		a.a64.Use(memory)
	} else {
		a.x64.Use(memory)
	}
}

func (a *assembler) Label() x64.Label {
	if a.neon {
		return a.a64.Label()
	}
	return a.x64.Label()
}

func (a *assembler) Bind(l x64.Label) {
	if a.neon {
		a.a64.Bind(l)
	} else {
		a.x64.Bind(l)
	}
}

func (a *assembler) Align(n int) {
	if a.neon {
		a.a64.Align(n)
	} else {
		a.x64.Align(n)
	}
}

func (a *assembler) Data(b ...byte) {
	if a.neon {
		a.a64.Data(b...)
	} else {
		a.x64.Data(b...)
	}
}

func (a *assembler) Vec(in x64.Inst) {
	if a.neon {
		a.a64.Vec(in)
	} else {
		a.x64.Vec(in)
	}
}

func (a *assembler) MovLoad(dst x64.Reg, m x64.Mem) {
	if a.neon {
		a.a64.MovLoad(dst, m)
	} else {
		a.x64.MovLoad(dst, m)
	}
}

func (a *assembler) MovStore(m x64.Mem, src x64.Reg) {
	if a.neon {
		a.a64.MovStore(m, src)
	} else {
		a.x64.MovStore(m, src)
	}
}

func (a *assembler) LoadSize(dst x64.Reg, m x64.Mem, size int) {
	if a.neon {
		a.a64.LoadSize(dst, m, size)
	} else {
		a.x64.LoadSize(dst, m, size)
	}
}

func (a *assembler) StoreSize(m x64.Mem, src x64.Reg, size int) {
	if a.neon {
		a.a64.StoreSize(m, src, size)
	} else {
		a.x64.StoreSize(m, src, size)
	}
}

func (a *assembler) Lea(dst x64.Reg, m x64.Mem) {
	if a.neon {
		a.a64.Lea(dst, m)
	} else {
		a.x64.Lea(dst, m)
	}
}

func (a *assembler) Mov(dst, src x64.Reg) {
	if a.neon {
		a.a64.Mov(dst, src)
	} else {
		a.x64.Mov(dst, src)
	}
}

func (a *assembler) MovImm(dst x64.Reg, imm int32) {
	if a.neon {
		a.a64.MovImm(dst, imm)
	} else {
		a.x64.MovImm(dst, imm)
	}
}

func (a *assembler) Arith(op x64.Arith, dst, src x64.Reg) {
	if a.neon {
		a.a64.Arith(op, dst, src)
	} else {
		a.x64.Arith(op, dst, src)
	}
}

func (a *assembler) ArithImm(op x64.Arith, dst x64.Reg, imm int32) {
	if a.neon {
		a.a64.ArithImm(op, dst, imm)
	} else {
		a.x64.ArithImm(op, dst, imm)
	}
}

func (a *assembler) ArithLoad(op x64.Arith, dst x64.Reg, m x64.Mem) {
	if a.neon {
		a.a64.ArithLoad(op, dst, m)
	} else {
		a.x64.ArithLoad(op, dst, m)
	}
}

func (a *assembler) ArithStore(op x64.Arith, m x64.Mem, src x64.Reg) {
	if a.neon {
		a.a64.ArithStore(op, m, src)
	} else {
		a.x64.ArithStore(op, m, src)
	}
}

func (a *assembler) TestImm(dst x64.Reg, imm int32) {
	if a.neon {
		a.a64.TestImm(dst, imm)
	} else {
		a.x64.TestImm(dst, imm)
	}
}

func (a *assembler) Jump(l x64.Label) {
	if a.neon {
		a.a64.Jump(l)
	} else {
		a.x64.Jump(l)
	}
}

func (a *assembler) JumpIf(c x64.Cond, l x64.Label) {
	if a.neon {
		a.a64.JumpIf(c, l)
	} else {
		a.x64.JumpIf(c, l)
	}
}

func (a *assembler) Ret() {
	if a.neon {
		a.a64.Ret()
	} else {
		a.x64.Ret()
	}
}

func (a *assembler) Sfence() {
	if a.neon {
		a.a64.Sfence()
	} else {
		a.x64.Sfence()
	}
}

func (a *assembler) VZeroUpper() {
	if a.neon {
		a.a64.VZeroUpper()
	} else {
		a.x64.VZeroUpper()
	}
}

func (a *assembler) IMul(dst, src x64.Reg) {
	if a.neon {
		a.a64.IMul(dst, src)
	} else {
		a.x64.IMul(dst, src)
	}
}

func (a *assembler) IMulLoad(dst x64.Reg, m x64.Mem) {
	if a.neon {
		a.a64.IMulLoad(dst, m)
	} else {
		a.x64.IMulLoad(dst, m)
	}
}

func (a *assembler) MulLoad(m x64.Mem) {
	if a.neon {
		a.a64.MulLoad(m)
	} else {
		a.x64.MulLoad(m)
	}
}

func (a *assembler) Neg(dst x64.Reg) {
	if a.neon {
		a.a64.Neg(dst)
	} else {
		a.x64.Neg(dst)
	}
}

func (a *assembler) Prefetch(m x64.Mem) {
	if a.neon {
		a.a64.Prefetch(m)
	} else {
		a.x64.Prefetch(m)
	}
}

func (a *assembler) Cqo() {
	if a.neon {
		a.a64.Cqo()
	} else {
		a.x64.Cqo()
	}
}

func (a *assembler) IDiv(src x64.Reg) {
	if a.neon {
		a.a64.IDiv(src)
	} else {
		a.x64.IDiv(src)
	}
}

func (a *assembler) ShiftImm(s x64.Shift, dst x64.Reg, count byte) {
	if a.neon {
		a.a64.ShiftImm(s, dst, count)
	} else {
		a.x64.ShiftImm(s, dst, count)
	}
}

// Bzhi is for code with masks of AVX-512.
func (a *assembler) Bzhi(dst, src, count x64.Reg) { a.x64.Bzhi(dst, src, count) }

// Finish fails for code that is too long for its processor, or has what that lacks.
func (a *assembler) Finish() []byte {
	if !a.neon {
		return a.x64.Finish()
	}
	text, err := a.a64.Finish()
	if err != nil {
		fail("%v", err)
	}
	return text
}
