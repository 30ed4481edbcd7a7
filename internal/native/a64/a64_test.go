package a64

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/loris-ml/loris/internal/native/x64"
)

// TestEncodings compares operations with what llvm-mc makes of their instructions.
func TestEncodings(t *testing.T) {
	vec := func(in x64.Inst) func(a *Asm) { return func(a *Asm) { a.Vec(in) } }
	row := &x64.Mem{Base: x64.R9, Index: x64.RCX, Scale: 4, Disp: 32}
	for _, c := range []struct {
		text string
		emit func(a *Asm)
		want string
	}{
		{"fadd v2.4s, v4.4s, v6.4s; fadd v3.4s, v5.4s, v7.4s", vec(x64.Inst{Op: x64.ADDPS, Len: 32, Reg: 1, V: 2, RM: 3}),
			"82d4264ea3d4274e"},
		{"fmls v2.2d, v4.2d, v6.2d", vec(x64.Inst{Op: x64.FNMADD231PD, Len: 16, Reg: 1, V: 2, RM: 3}),
			"82cce64e"},
		{"mov v28.16b, v6.16b; fmla v28.4s, v2.4s, v4.4s; mov v2.16b, v28.16b", vec(x64.Inst{Op: x64.FMADD213PS, Len: 16, Reg: 1, V: 2, RM: 3}),
			"dc1ca64e5ccc244e821fbc4e"},
		{"fcmgt v2.4s, v6.4s, v4.4s; bsl v2.16b, v4.16b, v6.16b", vec(x64.Inst{Op: x64.MINPS, Len: 16, Reg: 1, V: 2, RM: 3}),
			"c2e4a46e821c666e"},
		{"fcmge v2.2d, v4.2d, v6.2d", vec(x64.Inst{Op: x64.CMPPD, Len: 16, Reg: 1, V: 2, RM: 3, Imm: 0x1d}),
			"82e4666e"},
		{"frintm v2.2d, v6.2d", vec(x64.Inst{Op: x64.ROUNDPD, Len: 16, Reg: 1, V: 2, RM: 3, Imm: 9}),
			"c298614e"},
		{"cmlt v2.4s, v8.4s, #0; bsl v2.16b, v6.16b, v4.16b", vec(x64.Inst{Op: x64.BLENDVPS, Len: 16, Reg: 1, V: 2, RM: 3, Is4: 4}),
			"02a9a04ec21c646e"},
		{"fcvtl2 v3.2d, v6.4s; fcvtl v2.2d, v6.2s", vec(x64.Inst{Op: x64.CVTPS2PD, Len: 32, Reg: 1, V: 2, RM: 3}),
			"c378614ec278610e"},
		{"fcvtn v6.4h, v2.4s; fcvtn2 v6.8h, v3.4s", vec(x64.Inst{Op: x64.CVTPS2PH, Len: 32, Reg: 1, V: 2, RM: 3}),
			"4668210e6668214e"},
		{"sshr v4.4s, v6.4s, #5", vec(x64.Inst{Op: x64.PSRAD, Len: 16, Reg: 1, V: 2, RM: 3, Imm: 5}),
			"c4043b4f"},
		{"shl v4.2d, v6.2d, #52", vec(x64.Inst{Op: x64.PSLLQ, Len: 16, Reg: 1, V: 2, RM: 3, Imm: 52}),
			"c454744f"},
		{"add x16, x9, x1, lsl #2; ldp q2, q3, [x16, #32]", vec(x64.Inst{Op: x64.MOVUPS, Len: 32, Reg: 1, V: x64.NoReg, Mem: row}),
			"3009018b020e41ad"},
		{"add x16, x9, x1, lsl #2; add x16, x16, #32; ld1r {v2.4s}, [x16]", vec(x64.Inst{Op: x64.BROADCASTSS, Len: 16, Reg: 1, V: x64.NoReg, Mem: row}),
			"3009018b1082009102ca404d"},
		{"ldr x17, [x6, #264]; subs xzr, x0, x17", func(a *Asm) { a.ArithLoad(x64.Cmp, x64.RAX, x64.At(x64.RSI, 264)) },
			"d18440f91f0011eb"},
		{"adds x1, x1, #8", func(a *Asm) { a.ArithImm(x64.Add, x64.RCX, 8) },
			"212000b1"},
		{"mov x17, #-2; ands x0, x0, x17", func(a *Asm) { a.ArithImm(x64.And, x64.RAX, -2) },
			"31008092000011ea"},
		{"lsr x2, x2, #62", func(a *Asm) { a.ShiftImm(x64.Shr, x64.RDX, 62) },
			"42fc7ed3"},
		{"sdiv x17, x0, x3; msub x2, x17, x3, x0; mov x0, x17", func(a *Asm) { a.IDiv(x64.RBX) },
			"110cc39a2282039be00311aa"},
		{"strb w2, [x0]", func(a *Asm) { a.StoreSize(x64.At(x64.RAX, 0), x64.RDX, 1) },
			"02000039"},
	} {
		var a Asm
		c.emit(&a)
		text, err := a.Finish()
		if got := hex.EncodeToString(text); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.text, got, err, c.want)
		}
	}
}

// TestFar has a jump over more than a megabyte.
func TestFar(t *testing.T) {
	for _, c := range []struct {
		between int
		want    error
	}{{1<<20 - 8, nil}, {1 << 20, ErrFar}} {
		var a Asm
		end := a.Label()
		a.JumpIf(x64.Zero, end)
		a.Data(make([]byte, c.between)...)
		a.Bind(end)
		a.Ret()
		if _, err := a.Finish(); !errors.Is(err, c.want) {
			t.Errorf("over %d bytes: %v, want %v", c.between, err, c.want)
		}
	}
}
