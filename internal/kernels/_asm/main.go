// Command asm writes the elementary functions of package kernels for amd64.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is one width of vectors of float64; two of them make a step.
type isa struct {
	suffix string
	lanes  int
	vec    func() reg.VecVirtual
	narrow func(v, half Op)
	half   func() reg.VecVirtual
}

var isas = []*isa{
	{"AVX512", 8, ZMM, func(v, h Op) { VCVTPD2PS(v, h) }, YMM},
	{"AVX2", 4, YMM, func(v, h Op) { VCVTPD2PSY(v, h) }, XMM},
}

// constants are repeated for the widest vector.
var (
	table   Mem
	offsets = map[uint64]int{}
	order   []uint64
)

// bits returns the memory of a constant given by its bits.
func bits(b uint64) Mem {
	at, ok := offsets[b]
	if !ok {
		at = 64 * len(order)
		offsets[b] = at
		order = append(order, b)
	}
	return table.Offset(at)
}

func number(x float64) Mem { return bits(math.Float64bits(x)) }

func (s *isa) constant(m Mem) reg.VecVirtual {
	v := s.vec()
	VMOVUPD(m, v)
	return v
}

func (s *isa) copied(x Op) reg.VecVirtual {
	v := s.vec()
	VMOVAPD(x, v)
	return v
}

// atMost and atLeast bound x in place; a NaN stays.
func (s *isa) atMost(x reg.VecVirtual, most float64)   { VMINPD(x, s.constant(number(most)), x) }
func (s *isa) atLeast(x reg.VecVirtual, least float64) { VMAXPD(x, s.constant(number(least)), x) }

const roundMagic = 0x1.8p52

// exp returns e to the x, which it overwrites.
func (s *isa) exp(x reg.VecVirtual) reg.VecVirtual {
	s.atMost(x, 709.9)
	s.atLeast(x, -709)
	magic := s.constant(number(roundMagic))
	t := s.copied(x)
	VFMADD132PD(number(math.Log2E), magic, t)
	k := s.vec()
	VSUBPD(magic, t, k)
	VFNMADD231PD(number(math.Ln2), k, x)
	factor := 1.0
	for i := 2; i <= 9; i++ {
		factor *= float64(i)
	}
	p := s.constant(number(1 / factor))
	for i := 9; i > 1; i-- {
		factor /= float64(i)
		VFMADD213PD(number(1/factor), x, p)
	}
	VMULPD(x, p, p)
	VPADDQ(bits(1023), t, t)
	VPSLLQ(Imm(52), t, t)
	VADDPD(number(1), p, p)
	VMULPD(t, p, p) // far out by 0 or an infinity
	return p
}

func (s *isa) function(name string, body func(x reg.VecVirtual) reg.VecVirtual) {
	TEXT(name+s.suffix, NOSPLIT, "func(dst, src *float32, n int)")
	Doc(fmt.Sprintf("%s%s computes n elements, a multiple of %d above zero.", name, s.suffix, 2*s.lanes))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("next")
	for i := range 2 {
		x, out := s.vec(), s.half()
		at := i * s.lanes * 4
		VCVTPS2PD(Mem{Base: src, Disp: at}, x)
		s.narrow(body(x), out)
		VMOVUPS(out, Mem{Base: dst, Disp: at})
	}
	ADDQ(Imm(uint64(8*s.lanes)), src)
	ADDQ(Imm(uint64(8*s.lanes)), dst)
	SUBQ(Imm(uint64(2*s.lanes)), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

func main() {
	ConstraintExpr("amd64,!noasm")
	table = NewDataAddr(NewStaticSymbol("elementaryConstants"), 0)
	for _, s := range isas {
		s.function("exp", s.exp)
	}
	for _, s := range singles {
		s.function("sigmoid", s.sigmoid)
		s.function("tanh", s.tanh)
		s.function("silu", s.silu)
		s.function("gelu", s.gelu)
		s.function("geluTanh", s.geluTanh)
	}
	for _, w := range ways() {
		combine(w)
		if w.rows {
			rows(w)
		}
	}
	ramps()
	indexed()
	takeRows()
	places()
	GLOBL("elementaryConstants", RODATA|NOPTR)
	for i, b := range order {
		for lane := range 8 {
			DATA(64*i+8*lane, U64(b))
		}
	}
	Generate()
}
