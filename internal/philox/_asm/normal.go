package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// float is number of a float.
func (s *isa) float(name string, x float64) Mem { return s.named(name, math.Float64bits(x)) }

func (s *isa) named(name string, n uint64) Mem {
	if s.constants == nil {
		s.constants = map[string]Mem{}
	}
	m, ok := s.constants[name]
	if !ok {
		m = s.number(name, n)
		s.constants[name] = m
	}
	return m
}

func (s *isa) load(m Mem) reg.VecVirtual {
	v := s.vec()
	VMOVUPD(m, v)
	return v
}

// The coefficients of log (of s² in log((1+s)/(1-s))), sine and cosine are those
// that FreeBSD's msun published and package math has.
var (
	logC = []float64{6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
		1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01}
	sinC = []float64{-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
		-2.50507602534068634195e-08, 1.58969099521155010221e-10}
	cosC = []float64{4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07,
		2.08757232129817482790e-09, -1.13596475577881948265e-11}
)

// poly is c[0] + c[1]·x + ….
func (s *isa) poly(name string, x reg.VecVirtual, c []float64) reg.VecVirtual {
	p := s.load(s.float(fmt.Sprint(name, len(c)-1), c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PD(s.float(fmt.Sprint(name, i), c[i]), x, p)
	}
	return p
}

func (s *isa) and(m Op, x, to reg.VecVirtual) {
	if s.wide {
		VPANDQ(m, x, to)
	} else {
		VPAND(m, x, to)
	}
}

func (s *isa) or(m Op, x, to reg.VecVirtual) {
	if s.wide {
		VPORQ(m, x, to)
	} else {
		VPOR(m, x, to)
	}
}

func (s *isa) xor(m Op, x, to reg.VecVirtual) {
	if s.wide {
		VPXORQ(m, x, to)
	} else {
		VPXOR(m, x, to)
	}
}

// unit makes uniform numbers of words, exactly: of the two halves of their upper
// 53 bits, with exponents put before them.
func (s *isa) unit(x reg.VecVirtual) {
	high := s.vec()
	VPSRLQ(Imm(11), x, x)
	VPSRLQ(Imm(32), x, high)
	s.or(s.float("exp84", 0x1p84), high, high)
	VSUBPD(s.float("exps", 0x1p84+0x1p52), high, high)
	s.and(s.named("low32", 0xffffffff), x, x)
	s.or(s.float("exp52", 0x1p52), x, x)
	VADDPD(high, x, x)
	VMULPD(s.float("ulp53", 0x1p-53), x, x)
}

// radius is √(-2 ln(1-u)).
func (s *isa) radius(u reg.VecVirtual) reg.VecVirtual {
	one := s.float("one", 1)
	a := s.load(one)
	VSUBPD(u, a, a)
	// a = 2ᵏ·m, √½ ≤ m < √2.
	k, m := s.vec(), s.vec()
	VPADDQ(s.named("expShift", 1023<<52-0x3FE6A09E667F3BCD), a, k)
	VPSRLQ(Imm(52), k, m)
	s.or(s.float("exp52", 0x1p52), m, m)
	VSUBPD(s.float("exp52b", 0x1p52+1023), m, m)
	s.and(s.named("expMask", 0xfff<<52), k, k)
	VPSUBQ(s.named("expBias", 1023<<52), k, k)
	VPSUBQ(k, a, a)
	k, m = m, a
	f, t, q := s.vec(), s.vec(), s.vec()
	VSUBPD(one, m, f)
	VADDPD(s.float("two", 2), f, t)
	VDIVPD(t, f, t) // s
	z := s.vec()
	VMULPD(t, t, z)
	r := s.poly("logCoef", z, logC)
	VMULPD(z, r, r)
	VMULPD(f, f, q)
	VMULPD(s.float("half", 0.5), q, q)
	// k·ln2 - ((q - (s·(q + R) + k·ln2low)) - f)
	VADDPD(q, r, r)
	VMULPD(t, r, r)
	VFMADD231PD(s.float("ln2low", 1.90821492927058770002e-10), k, r)
	VSUBPD(r, q, q)
	VSUBPD(f, q, q)
	VMULPD(s.float("ln2high", 6.93147180369123816490e-01), k, k)
	VSUBPD(q, k, k)
	VMULPD(s.float("minusTwo", -2), k, k)
	VSQRTPD(k, k)
	return k
}

// sincos are the sine and the cosine of 2π·u.
func (s *isa) sincos(u reg.VecVirtual) (sin, cos reg.VecVirtual) {
	theta, q, t := s.vec(), s.vec(), s.vec()
	VMULPD(s.float("twoPi", 2*math.Pi), u, theta)
	VMOVUPD(theta, t)
	VMOVUPD(s.load(s.float("magic", 0x1.8p52)), q)
	VFMADD231PD(s.float("twoOverPi", 2/math.Pi), t, q) // the quadrant in its low bits
	VSUBPD(s.float("magic", 0x1.8p52), q, t)
	VFNMADD231PD(s.float("pi2high", math.Pi/2), t, theta)
	VFNMADD231PD(s.float("pi2low", 6.123233995736766e-17), t, theta)
	z := s.vec()
	VMULPD(theta, theta, z)
	sin = s.poly("sinCoef", z, sinC)
	VMULPD(z, sin, sin)
	VFMADD213PD(theta, theta, sin)
	cos = s.poly("cosCoef", z, cosC)
	VMULPD(z, cos, cos)
	VMULPD(z, cos, cos)
	// 1 - z/2 and what it loses.
	VMULPD(s.float("half", 0.5), z, z)
	w := s.load(s.float("one", 1))
	VSUBPD(z, w, w)
	lost := s.load(s.float("one", 1))
	VSUBPD(w, lost, lost)
	VSUBPD(z, lost, lost)
	VADDPD(lost, cos, cos)
	VADDPD(w, cos, cos)
	return s.turned(sin, cos, q)
}

// turned takes sine and cosine on by a number of quadrants.
func (s *isa) turned(sin, cos, q reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	odd, sign, turnedSin, turnedCos := s.vec(), s.vec(), s.vec(), s.vec()
	// -1 where the quadrant is odd.
	s.and(s.named("bit0", 1), q, odd)
	zero := s.vec()
	s.xor(zero, zero, zero)
	VPSUBQ(odd, zero, odd)
	// sin ^ (sin^cos)&odd
	differ := s.vec()
	s.xor(sin, cos, differ)
	s.and(odd, differ, differ)
	s.xor(sin, differ, turnedSin)
	s.xor(cos, differ, turnedCos)
	VPSLLQ(Imm(62), q, sign)
	s.and(s.named("signBit", 1<<63), sign, sign)
	s.xor(sign, turnedSin, turnedSin)
	VPADDQ(s.named("bit0", 1), q, q)
	VPSLLQ(Imm(62), q, sign)
	s.and(s.named("signBit", 1<<63), sign, sign)
	s.xor(sign, turnedCos, turnedCos)
	return turnedSin, turnedCos
}

// normal writes the loop that makes normal numbers of so many bytes of words.
func (s *isa) normal(size int) {
	name := fmt.Sprintf("normal%d%s", 8*size, s.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float%d, words *uint64, n int)", 8*size))
	Doc(fmt.Sprintf("%s sets n times %d floats to the normal numbers of uint64 elements, by Box and Muller.", name, 2*s.counters))
	Pragma("noescape")
	dst, words, n := param("dst"), param("words"), param("n")
	Label("loop")
	first, second, u0, u1 := s.vec(), s.vec(), s.vec(), s.vec()
	VMOVUPD(Mem{Base: words}, first)
	VMOVUPD(Mem{Base: words, Disp: s.bytes()}, second)
	VPUNPCKLQDQ(second, first, u0)
	VPUNPCKHQDQ(second, first, u1)
	s.unit(u0)
	s.unit(u1)
	r := s.radius(u0)
	sin, cos := s.sincos(u1)
	VMULPD(r, sin, sin)
	VMULPD(r, cos, cos)
	VPUNPCKLQDQ(sin, cos, first)
	VPUNPCKHQDQ(sin, cos, second)
	if size == 8 {
		VMOVUPD(first, Mem{Base: dst})
		VMOVUPD(second, Mem{Base: dst, Disp: s.bytes()})
	} else {
		for i, v := range []reg.VecVirtual{first, second} {
			if s.wide {
				half := YMM()
				VCVTPD2PS(v, half)
				VMOVUPS(half, Mem{Base: dst, Disp: i * s.bytes() / 2})
			} else {
				half := XMM()
				VCVTPD2PSY(v, half)
				VMOVUPS(half, Mem{Base: dst, Disp: i * s.bytes() / 2})
			}
		}
	}
	ADDQ(U32(2*s.bytes()), words)
	ADDQ(U32(2*s.counters*size), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
