// Command asm writes the elementary functions of package kernels for amd64.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// erfcx is a polynomial in t = (z-3)/(z+3) for erfc(z)·exp(z²), z ≥ 0, found by
// interpolation in the Chebyshev points for 0 ≤ z ≤ 10, with a relative error
// below 4e-9.
var erfcx = []float64{0.17900115109369216, -0.32623356613000387, 0.2456038158856748, -0.15011571090354672, 0.07166559312983732, -0.024394935000193955, 0.004270022622114113, 0.0007186958658782891, -0.0005953980082213134, 2.4406856577869703e-05, 5.3706684237646615e-05}

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

func (s *isa) negate(x reg.VecVirtual) { VXORPD(number(math.Copysign(0, -1)), x, x) }

const roundMagic = 0x1.8p52

// parts splits e to the x, which it overwrites, into (1+p)·scale; p keeps its
// relative accuracy for small x. Far out scale is 0 or infinite.
func (s *isa) parts(x reg.VecVirtual) (p, scale reg.VecVirtual) {
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
	p = s.constant(number(1 / factor))
	for i := 9; i > 1; i-- {
		factor /= float64(i)
		VFMADD213PD(number(1/factor), x, p)
	}
	VMULPD(x, p, p)
	VPADDQ(bits(1023), t, t)
	VPSLLQ(Imm(52), t, t)
	return p, t
}

// exp returns e to the x, which it overwrites.
func (s *isa) exp(x reg.VecVirtual) reg.VecVirtual {
	p, scale := s.parts(x)
	VADDPD(number(1), p, p)
	VMULPD(scale, p, p) // no difference of infinities
	return p
}

// logistic returns num/(1+e to the x).
func (s *isa) logistic(num, x reg.VecVirtual) reg.VecVirtual {
	e := s.exp(x)
	VADDPD(number(1), e, e)
	VDIVPD(e, num, e)
	return e
}

func (s *isa) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	s.negate(x)
	return s.logistic(s.constant(number(1)), x)
}

func (s *isa) silu(x reg.VecVirtual) reg.VecVirtual {
	y := s.copied(x)
	s.negate(y)
	return s.logistic(x, y)
}

// geluTanh is x·(1+tanh u)/2 = x/(1+exp(-2u)).
func (s *isa) geluTanh(x reg.VecVirtual) reg.VecVirtual {
	slope := math.Sqrt2 / math.SqrtPi
	u := s.vec()
	VMULPD(x, x, u)
	VMULPD(number(-2*slope*0.044715), u, u)
	VADDPD(number(-2*slope), u, u)
	VMULPD(x, u, u)
	return s.logistic(x, u)
}

func (s *isa) tanh(x reg.VecVirtual) reg.VecVirtual {
	sign := s.vec()
	VANDPD(number(math.Copysign(0, -1)), x, sign)
	VANDPD(bits(1<<63-1), x, x)
	s.atMost(x, 20)
	VADDPD(x, x, x)
	p, scale := s.parts(x)
	less := s.vec()
	VADDPD(number(-1), scale, less)
	VFMADD213PD(less, scale, p) // e^2x - 1
	VADDPD(number(2), p, less)
	VDIVPD(less, p, p)
	VORPD(sign, p, p)
	return p
}

// gelu is x·erfc(-x/√2)/2.
func (s *isa) gelu(x reg.VecVirtual) reg.VecVirtual {
	z, t, below := s.vec(), s.vec(), s.vec()
	VANDPD(bits(1<<63-1), x, z)
	VMULPD(number(1/math.Sqrt2), z, z)
	s.atMost(z, 40)
	VADDPD(number(-3), z, t)
	VADDPD(number(3), z, below)
	VDIVPD(below, t, t)
	q := s.constant(number(erfcx[len(erfcx)-1]))
	for i := len(erfcx) - 2; i >= 0; i-- {
		VFMADD213PD(number(erfcx[i]), t, q)
	}
	VMULPD(z, z, z)
	s.negate(z)
	e := s.exp(z)
	VMULPD(q, e, e)
	upper := s.constant(number(2))
	VSUBPD(e, upper, upper)
	if s.lanes == 8 {
		VPMOVQ2M(x, reg.K1)
		VMOVAPD(e, reg.K1, upper)
	} else {
		VBLENDVPD(x, e, upper, upper)
	}
	VMULPD(x, upper, upper)
	VMULPD(number(0.5), upper, upper)
	return upper
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
		s.function("sigmoid", s.sigmoid)
		s.function("tanh", s.tanh)
		s.function("silu", s.silu)
		s.function("gelu", s.gelu)
		s.function("geluTanh", s.geluTanh)
	}
	GLOBL("elementaryConstants", RODATA|NOPTR)
	for i, b := range order {
		for lane := range 8 {
			DATA(64*i+8*lane, U64(b))
		}
	}
	Generate()
}
