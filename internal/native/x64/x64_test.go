package x64

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// listing asks TestGoldens to write the instructions as text, for golden.sh.
var listing = flag.String("listing", "", "write the instructions of the goldens, as GNU as reads them, to this file")

type golden struct {
	text string
	emit func(a *Asm)
}

var vecNames = map[uint8]string{16: "xmm", 32: "ymm", 64: "zmm"}

// intNames are the mnemonics whose EVEX form has the element size in its name
// and whose VEX form has not.
var intNames = map[Op]string{PANDD: "pand", PANDQ: "pand", PANDND: "pandn", PORD: "por", PORQ: "por", PXORD: "pxor", PXORQ: "pxor"}

// threeOperand has an instruction of each kind of encoding.
var threeOperand = []Op{ADDPS, ADDPD, SUBPS, MULPD, DIVPS, MINPS, MAXPD, FMADD213PS, FMADD231PD, FNMADD231PS, FMSUB213PD, PADDD, PADDQ, PSUBQ,
	PMULLD, PMULUDQ, PANDD, PANDQ, PANDND, PORQ, PXORD, PMINSD, PMAXSD, PMINUD, PMAXUD, PSLLVD, PSRLVD, PSRLVQ, PSRAVD}

var evexThree = []Op{SCALEFPS, SCALEFPD, PMULLQ, PMINSQ, PMAXSQ, PSRAVQ}

var twoOperand = []Op{SQRTPS, SQRTPD, CVTDQ2PS, CVTTPS2DQ, PABSD}

func vecText(op Op, n uint8, evex bool, rest string) string {
	name := op.Name()
	if s, ok := intNames[op]; ok && !evex {
		name = s
	}
	prefix := ""
	if evex {
		prefix = "{evex} "
	}
	if strings.Contains(rest, "0x1234") {
		prefix += "{disp32} "
	}
	return prefix + "v" + name + " " + rest
}

func goldens() (all []golden) {
	add := func(text string, in Inst) {
		if in.Mask == 0 {
			in.Mask = NoReg
		}
		all = append(all, golden{text, func(a *Asm) { a.Vec(in) }})
	}
	reg := func(n uint8, r Reg) string { return fmt.Sprintf("%%%s%d", vecNames[n], r) }
	for _, op := range threeOperand {
		for _, r := range [][3]Reg{{1, 2, 3}, {9, 10, 11}, {0, 15, 8}} {
			add(vecText(op, 32, false, reg(32, r[2])+", "+reg(32, r[1])+", "+reg(32, r[0])), Inst{Op: op, Len: 32, Reg: r[0], V: r[1], RM: r[2]})
		}
		add(vecText(op, 16, false, "-8(%rsi,%rcx,4), "+reg(16, 5)+", "+reg(16, 4)),
			Inst{Op: op, Len: 16, Reg: 4, V: 5, Mem: &Mem{Base: RSI, Index: RCX, Scale: 4, Disp: -8}})
	}
	for _, op := range append(threeOperand[:len(threeOperand):len(threeOperand)], evexThree...) {
		for _, r := range [][3]Reg{{1, 2, 3}, {31, 16, 24}, {8, 23, 15}} {
			add(vecText(op, 64, true, reg(64, r[2])+", "+reg(64, r[1])+", "+reg(64, r[0])), Inst{Op: op, Len: 64, EVEX: true, Reg: r[0], V: r[1], RM: r[2]})
		}
		add(vecText(op, 64, true, "0x1234(%r13,%r9,8), "+reg(64, 17)+", "+reg(64, 9)+"{%k3}{z}"),
			Inst{Op: op, Len: 64, EVEX: true, Reg: 9, V: 17, Mask: 3, Zero: true, Mem: &Mem{Base: R13, Index: R9, Scale: 8, Disp: 0x1234}})
		add(vecText(op, 64, true, fmt.Sprintf("(%%r12){1to%d}, ", 64/op.Bcast())+reg(64, 17)+", "+reg(64, 9)+"{%k7}"),
			Inst{Op: op, Len: 64, EVEX: true, Reg: 9, V: 17, Mask: 7, Bcast: true, Mem: &Mem{Base: R12, Index: NoReg}})
	}
	for _, op := range twoOperand {
		add(vecText(op, 32, false, "%ymm9, %ymm2"), Inst{Op: op, Len: 32, Reg: 2, V: NoReg, RM: 9})
		add(vecText(op, 32, true, "%ymm29, %ymm22{%k1}"), Inst{Op: op, Len: 32, EVEX: true, Reg: 22, V: NoReg, RM: 29, Mask: 1})
	}
	singles(add)
	scalars(func(text string, f func(a *Asm)) { all = append(all, golden{text, f}) })
	return all
}

func singles(add func(text string, in Inst)) {
	m := &Mem{Base: R10, Index: RCX, Scale: 2}
	add("vmovups 127(%rbp), %ymm3", Inst{Op: MOVUPS, Len: 32, Reg: 3, V: NoReg, Mem: &Mem{Base: RBP, Index: NoReg, Disp: 127}})
	add("vmovups %ymm13, (%r10,%rcx,2)", Inst{Op: MOVUPSst, Len: 32, Reg: 13, V: NoReg, Mem: m})
	add("{evex} vmovntps %zmm13, (%r10,%rcx,2)", Inst{Op: MOVNTPS, Len: 64, EVEX: true, Reg: 13, V: NoReg, Mem: m})
	add("vmovdqu8 (%r10,%rcx,2), %xmm20{%k7}{z}", Inst{Op: MOVDQU8, Len: 16, EVEX: true, Reg: 20, V: NoReg, Mem: m, Mask: 7, Zero: true})
	add("vmovdqu16 %ymm20, (%r10,%rcx,2){%k7}", Inst{Op: MOVDQU16st, Len: 32, EVEX: true, Reg: 20, V: NoReg, Mem: m, Mask: 7})
	add("vmaskmovps (%r10,%rcx,2), %ymm2, %ymm14", Inst{Op: MASKMOVPS, Len: 32, Reg: 14, V: 2, Mem: m})
	add("vmaskmovpd %ymm14, %ymm2, (%r10,%rcx,2)", Inst{Op: MASKMOVPDst, Len: 32, Reg: 14, V: 2, Mem: m})
	add("vcmpps $17, %zmm30, %zmm1, %k5", Inst{Op: CMPPS, Len: 64, EVEX: true, Reg: 5, V: 1, RM: 30, Imm: 17})
	add("vcmppd $3, %ymm12, %ymm1, %ymm5", Inst{Op: CMPPD, Len: 32, Reg: 5, V: 1, RM: 12, Imm: 3})
	add("vrndscaleps $9, %zmm1, %zmm31", Inst{Op: ROUNDPS, Len: 64, EVEX: true, Reg: 31, V: NoReg, RM: 1, Imm: 9})
	add("vroundpd $9, %ymm1, %ymm3", Inst{Op: ROUNDPD, Len: 32, Reg: 3, V: NoReg, RM: 1, Imm: 9})
	add("vblendvps %ymm12, %ymm3, %ymm2, %ymm1", Inst{Op: BLENDVPS, Len: 32, Reg: 1, V: 2, RM: 3, Is4: 12})
	add("vpblendmd %zmm3, %zmm2, %zmm1{%k4}", Inst{Op: PBLENDMD, Len: 64, EVEX: true, Reg: 1, V: 2, RM: 3, Mask: 4})
	add("vpslld $16, %ymm3, %ymm12", Inst{Op: PSLLD, Len: 32, V: 12, RM: 3, Imm: 16})
	add("{evex} vpsrlq $52, %zmm23, %zmm30", Inst{Op: PSRLQ, Len: 64, EVEX: true, V: 30, RM: 23, Imm: 52})
	add("vpmovdb %zmm3, %xmm22", Inst{Op: PMOVDB, Len: 64, EVEX: true, Reg: 3, V: NoReg, RM: 22})
	add("vptestmb %xmm3, %xmm22, %k2", Inst{Op: PTESTMB, Len: 16, EVEX: true, Reg: 2, V: 22, RM: 3})
	add("vmovdqu8 %xmm3, %xmm20{%k7}{z}", Inst{Op: MOVDQU8, Len: 16, EVEX: true, Reg: 20, V: NoReg, RM: 3, Mask: 7, Zero: true})
	add("vptestmd %zmm3, %zmm22, %k2", Inst{Op: PTESTMD, Len: 64, EVEX: true, Reg: 2, V: 22, RM: 3})
	add("vpmovzxbd (%r10,%rcx,2), %ymm4", Inst{Op: PMOVZXBD, Len: 32, Reg: 4, V: NoReg, Mem: m})
	add("vcvtph2ps %ymm9, %zmm24", Inst{Op: CVTPH2PS, Len: 64, EVEX: true, Reg: 24, V: NoReg, RM: 9})
	add("vcvtps2ph $4, %zmm24, %ymm9", Inst{Op: CVTPS2PH, Len: 64, EVEX: true, Reg: 24, V: NoReg, RM: 9, Imm: 4})
	add("vextracti128 $1, %ymm4, %xmm12", Inst{Op: EXTRACTI128, Len: 32, Reg: 4, V: NoReg, RM: 12, Imm: 1})
	add("vshuff64x2 $0x4e, %zmm4, %zmm4, %zmm12", Inst{Op: SHUFF64X2, Len: 64, EVEX: true, Reg: 12, V: 4, RM: 4, Imm: 0x4e})
	add("vextracti64x4 $1, %zmm4, %ymm12", Inst{Op: EXTRACTI64X4, Len: 64, EVEX: true, Reg: 4, V: NoReg, RM: 12, Imm: 1})
	add("vgetmantps $2, %zmm4, %zmm12", Inst{Op: GETMANTPS, Len: 64, EVEX: true, Reg: 12, V: NoReg, RM: 4, Imm: 2})
	add("vfixupimmps $0, (%r12){1to16}, %zmm4, %zmm12", Inst{Op: FIXUPIMMPS, Len: 64, EVEX: true, Reg: 12, V: 4, Bcast: true, Mem: &Mem{Base: R12, Index: NoReg}})
	add("vpternlogq $0xf8, (%r12){1to8}, %zmm24, %zmm12", Inst{Op: PTERNLOGQ, Len: 64, EVEX: true, Reg: 12, V: 24, Bcast: true, Mem: &Mem{Base: R12, Index: NoReg}, Imm: 0xf8})
	for _, op := range []Op{RCP14PS, RCP14PD, RSQRT14PS, RSQRT14PD} {
		add("v"+op.Name()+" %zmm9, %zmm22", Inst{Op: op, Len: 64, EVEX: true, Reg: 22, V: NoReg, RM: 9})
	}
	add("vfixupimmpd $0, %zmm3, %zmm24, %zmm12", Inst{Op: FIXUPIMMPD, Len: 64, EVEX: true, Reg: 12, V: 24, RM: 3})
	add("vcvttsd2si (%r10,%rcx,2), %rax", Inst{Op: CVTTSD2SI, Len: 16, Reg: RAX, V: NoReg, Mem: m})
	add("vpermq $8, %ymm4, %ymm12", Inst{Op: PERMQ, Len: 32, Reg: 12, V: NoReg, RM: 4, Imm: 8})
	add("vpermq %zmm3, %zmm22, %zmm12", Inst{Op: PERMQV, Len: 64, EVEX: true, Reg: 12, V: 22, RM: 3})
	add("vpermt2w %ymm3, %ymm22, %ymm12", Inst{Op: PERMT2W, Len: 32, EVEX: true, Reg: 12, V: 22, RM: 3})
	add("vpermt2d %zmm3, %zmm22, %zmm12", Inst{Op: PERMT2D, Len: 64, EVEX: true, Reg: 12, V: 22, RM: 3})
	add("vpermt2q (%r10,%rcx,2), %ymm22, %ymm12", Inst{Op: PERMT2Q, Len: 32, EVEX: true, Reg: 12, V: 22, Mem: m})
	add("vpgatherdd (%rax,%zmm21,1), %zmm3{%k1}", Inst{Op: PGATHERDD, Len: 64, EVEX: true, Reg: 3, V: NoReg, Mask: 1, Mem: &Mem{Base: RAX, Index: 21, Scale: 1}})
	add("vpgatherdq (%rax,%ymm4,1), %zmm30{%k2}", Inst{Op: PGATHERDQ, Len: 64, EVEX: true, Reg: 30, V: NoReg, Mask: 2, Mem: &Mem{Base: RAX, Index: 4, Scale: 1}})
	add("vpgatherdd %ymm3, (%rax,%ymm14,1), %ymm9", Inst{Op: PGATHERDD, Len: 32, Reg: 9, V: 3, Mem: &Mem{Base: RAX, Index: 14, Scale: 1}})
	add("vpgatherdq %ymm3, (%rax,%xmm4,1), %ymm1", Inst{Op: PGATHERDQ, Len: 32, Reg: 1, V: 3, Mem: &Mem{Base: RAX, Index: 4, Scale: 1}})
	add("kandw %k1, %k2, %k3", Inst{Op: KANDW, Len: 16, Reg: 3, V: 2, RM: 1})
	add("knotw %k1, %k3", Inst{Op: KNOTW, Len: 16, Reg: 3, V: NoReg, RM: 1})
	add("kmovw %k1, %k3", Inst{Op: KMOVW, Len: 16, Reg: 3, V: NoReg, RM: 1})
	add("kmovw %eax, %k7", Inst{Op: KMOVWr, Len: 16, Reg: 7, V: NoReg, RM: RAX})
	add("kmovw %k4, (%r10,%rcx,2)", Inst{Op: KMOVWst, Len: 16, Reg: 4, V: NoReg, Mem: m})
}

func scalars(add func(text string, f func(a *Asm))) {
	sib := Mem{Base: R9, Index: R13, Scale: 8, Disp: 64}
	add("mov 64(%r9,%r13,8), %rbx", func(a *Asm) { a.MovLoad(RBX, sib) })
	add("mov %r8, (%r13)", func(a *Asm) { a.MovStore(At(R13, 0), R8) })
	add("lea (%r12), %rax", func(a *Asm) { a.Lea(RAX, At(R12, 0)) })
	add("movzbl 64(%r9,%r13,8), %r15d", func(a *Asm) { a.LoadSize(R15, sib, 1) })
	add("movzwl 64(%r9,%r13,8), %eax", func(a *Asm) { a.LoadSize(RAX, sib, 2) })
	add("mov (%rax), %ebx", func(a *Asm) { a.LoadSize(RBX, At(RAX, 0), 4) })
	add("mov %sil, (%rax)", func(a *Asm) { a.StoreSize(At(RAX, 0), RSI, 1) })
	add("mov %r9w, 512(%rax)", func(a *Asm) { a.StoreSize(At(RAX, 512), R9, 2) })
	add("mov %r9, %rbx", func(a *Asm) { a.Mov(RBX, R9) })
	add("mov $-3, %r10", func(a *Asm) { a.MovImm(R10, -3) })
	add("add %r9, %rbx", func(a *Asm) { a.Arith(Add, RBX, R9) })
	add("cmp $5, %r9", func(a *Asm) { a.ArithImm(Cmp, R9, 5) })
	add("sub $500, %rbx", func(a *Asm) { a.ArithImm(Sub, RBX, 500) })
	add("add 8(%rdi), %r15", func(a *Asm) { a.ArithLoad(Add, R15, At(RDI, 8)) })
	add("add %rax, 512(%rsi)", func(a *Asm) { a.ArithStore(Add, At(RSI, 512), RAX) })
	add("test $63, %r8d", func(a *Asm) { a.TestImm(R8, 63) })
	add("bzhi %rcx, %r9, %rax", func(a *Asm) { a.Bzhi(RAX, R9, RCX) })
	add("imul 8(%rdi), %r15", func(a *Asm) { a.IMulLoad(R15, At(RDI, 8)) })
	add("imul %r15, %rax", func(a *Asm) { a.IMul(RAX, R15) })
	add("mulq 8(%r9,%r13,8)", func(a *Asm) { a.MulLoad(Mem{Base: R9, Index: R13, Scale: 8, Disp: 8}) })
	add("prefetcht0 64(%r9,%r13,8)", func(a *Asm) { a.Prefetch(sib) })
	add("prefetcht0 (%rax,%rcx,4)", func(a *Asm) { a.Prefetch(Mem{Base: RAX, Index: RCX, Scale: 4}) })
	add("cqto", func(a *Asm) { a.Cqo() })
	add("idiv %rbx", func(a *Asm) { a.IDiv(RBX) })
	add("idiv %r9", func(a *Asm) { a.IDiv(R9) })
	add("neg %r8", func(a *Asm) { a.Neg(R8) })
	add("shr $62, %rdx", func(a *Asm) { a.ShiftImm(Shr, RDX, 62) })
	add("shl $2, %r8", func(a *Asm) { a.ShiftImm(Shl, R8, 2) })
	add("sfence", func(a *Asm) { a.Sfence() })
	add("vzeroupper", func(a *Asm) { a.VZeroUpper() })
	add("ret", func(a *Asm) { a.Ret() })
}

// TestGoldens compares each instruction with what GNU as made of its text.
func TestGoldens(t *testing.T) {
	all := goldens()
	if *listing != "" {
		var s strings.Builder
		for _, g := range all {
			s.WriteString(g.text + "\n")
		}
		if err := os.WriteFile(*listing, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := readGoldens(t)
	for _, g := range all {
		var a Asm
		g.emit(&a)
		w, ok := want[g.text]
		if !ok {
			t.Fatalf("%s has no golden; run testdata/golden.sh", g.text)
		}
		if got := hex.EncodeToString(a.Finish()); got != w {
			t.Errorf("%s: %s, as gives %s", g.text, got, w)
		}
	}
}

func readGoldens(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := map[string]string{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		bytes, text, _ := strings.Cut(sc.Text(), "\t")
		want[text] = bytes
	}
	return want
}

func TestLabels(t *testing.T) {
	var a Asm
	top, end, data := a.Label(), a.Label(), a.Label()
	a.Bind(top)
	a.JumpIf(Zero, end)                                                                          // 6 bytes
	a.Vec(Inst{Op: ADDPS, Len: 32, Reg: 0, V: 1, Mem: &Mem{Index: NoReg, Label: data, Disp: 4}}) // 8
	a.Jump(top)                                                                                  // 5
	a.Bind(end)
	a.Ret() // 1
	a.Bind(data)
	got := hex.EncodeToString(a.Finish())
	if want := "0f840d000000" + "c5f458050a000000" + "e9edffffff" + "c3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
