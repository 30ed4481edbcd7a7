// Command asm writes the loops of package vec for amd64.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width with its instructions.
type isa struct {
	suffix string
	lanes  int
	wide   bool // AVX-512
	vec    func() reg.VecVirtual
}

var isas = []*isa{
	{"AVX512", 16, true, func() reg.VecVirtual { return ZMM() }},
	{"AVX2", 8, false, func() reg.VecVirtual { return YMM() }},
}

// consts are vectors of equal numbers in read-only memory, by their bits.
var consts = map[uint32]Mem{}

func bits(b uint32) Mem {
	if m, ok := consts[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("vec%08x", b), RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(b))
	}
	consts[b] = m
	return m
}

func f32(x float64) Mem { return bits(math.Float32bits(float32(x))) }

// exp returns eˣ for x of at most 1 ulp of error; x is spent.
//
//	n = ⌊x·log₂e⌉, r = x − n·ln 2, eˣ = 2ⁿ·(1 + r + r²·p(r))
//
// with the polynomial p of Cephes. A NaN stays one. It is 0 where it would be subnormal: what is rounded to that or to 0
// takes Intel's processors more than a hundred cycles, and most scores of masked attention are −Inf.
func (s *isa) exp(x reg.VecVirtual) reg.VecVirtual {
	low := s.vec()
	VMOVUPS(f32(-87.3), low)
	if s.wide {
		above := K()
		VCMPPS(Imm(notLess), low, x, above)
		p, n := s.expm1(x)
		VADDPS(f32(1), p, p)
		VSCALEFPS_Z(n, p, above, p)
		return p
	}
	above := s.vec()
	VCMPPS(Imm(notLess), low, x, above)
	VANDPS(above, x, x)
	p, n := s.expm1(x)
	VADDPS(f32(1), p, p)
	// In two steps, since 2ⁿ alone may not be a float.
	half := s.vec()
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, k := range []reg.VecVirtual{half, n} {
		VPADDD(bits(127), k, k)
		VPSLLD(Imm(23), k, k)
		VMULPS(k, p, p)
	}
	VANDPS(above, p, p)
	return p
}

// notLess is the predicate of comparisons that is true of NaN.
const notLess = 0x15

// expm1 returns eʳ − 1 and n.
func (s *isa) expm1(x reg.VecVirtual) (p, n reg.VecVirtual) {
	n, r2 := s.vec(), s.vec()
	p = s.vec()
	b := s.vec()
	VMOVUPS(f32(150), b)
	VMINPS(x, b, x) // a NaN passes
	VMULPS(f32(math.Log2E), x, n)
	if s.wide {
		VRNDSCALEPS(Imm(8), n, n)
	} else {
		VROUNDPS(Imm(8), n, n)
	}
	VFNMADD231PS(f32(0.693359375), n, x)
	VFNMADD231PS(f32(-2.12194440e-4), n, x)
	VMULPS(x, x, r2)
	VMOVUPS(f32(1.9875691500e-4), p)
	for _, c := range []float64{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		VFMADD213PS(f32(c), x, p)
	}
	VFMADD213PS(x, r2, p)
	return p, n
}

// sigmoid returns 1/(1+e⁻ˣ); x is spent.
func (s *isa) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	s.xor(bits(1<<31), x, x)
	e := s.exp(x)
	VADDPS(f32(1), e, e)
	one := s.vec()
	VMOVUPS(f32(1), one)
	VDIVPS(e, one, e)
	return e
}

// tanh returns (e²ˣ−1)/(e²ˣ+1) of the magnitude, with the sign of x; x is spent.
func (s *isa) tanh(x reg.VecVirtual) reg.VecVirtual {
	sign := s.vec()
	s.and(bits(1<<31), x, sign)
	s.xor(sign, x, x)
	b := s.vec()
	VMOVUPS(f32(20), b) // tanh is 1 from 9.1 on
	VMINPS(x, b, x)
	VADDPS(x, x, x)
	p, n := s.expm1(x)
	// e²ˣ−1 = 2ⁿ·(eʳ−1) + (2ⁿ−1), without cancellation where x is small.
	power := s.vec()
	VCVTPS2DQ(n, power)
	VPADDD(bits(127), power, power)
	VPSLLD(Imm(23), power, power)
	rest, below := s.vec(), s.vec()
	VSUBPS(f32(1), power, rest)
	VFMADD213PS(rest, power, p)
	VADDPS(f32(2), p, below)
	VDIVPS(below, p, p)
	s.xor(sign, p, p)
	return p
}

func (s *isa) xor(a Op, b, dst reg.VecVirtual) {
	if s.wide {
		VPXORD(a, b, dst)
	} else {
		VXORPS(a, b, dst)
	}
}

func (s *isa) and(a Op, b, dst reg.VecVirtual) {
	if s.wide {
		VPANDD(a, b, dst)
	} else {
		VANDPS(a, b, dst)
	}
}

func (s *isa) bytes() int { return 4 * s.lanes }

// param reads a parameter into a register of its own.
func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// broadcast returns a vector of a parameter of 32 bits.
func (s *isa) broadcast(name string) reg.VecVirtual {
	addr, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := s.vec()
	VBROADCASTSS(addr.Addr, v)
	return v
}

// loop writes body for each vector of n elements, which the pointers go along, and the end of the
// function.
func (s *isa) loop(n reg.GPVirtual, pointers []reg.GPVirtual, body func()) {
	Label("loop")
	body()
	for _, p := range pointers {
		ADDQ(U32(s.bytes()), p)
	}
	SUBQ(Imm(uint64(s.lanes)), n)
	JG(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.scale()
		for _, double := range []bool{false, true} {
			f := &float{s, double}
			f.softmax(4)
			f.softmax(1)
			f.softmaxGradient(2)
			f.softmaxGradient(1)
			f.dot()
		}
		s.lstm()
		s.gru()
		s.greater(false)
		s.greater(true)
		s.most()
		s.add()
		s.sumBags()
	}
	halves()
	for _, k := range kinds {
		greatest(k)
	}
	Generate()
}

// scale writes the product of a vector with a number.
func (s *isa) scale() {
	name := "scale" + s.suffix
	TEXT(name, NOSPLIT, "func(dst, src *float32, n int, f float32)")
	Doc(fmt.Sprintf("%s sets dst to src·f, n > 0 elements, a multiple of %d.", name, s.lanes))
	Pragma("noescape")
	dst, src, n := param("dst"), param("src"), param("n")
	f := s.broadcast("f")
	s.loop(n, []reg.GPVirtual{src, dst}, func() {
		v := s.vec()
		VMULPS(Mem{Base: src}, f, v)
		VMOVUPS(v, Mem{Base: dst})
	})
}

// lstm writes the update of the state of one vector of hidden units in each row.
func (s *isa) lstm() {
	name := "lstm" + s.suffix
	TEXT(name, NOSPLIT, "func(gates, h, c *float32, rows, step int)")
	Doc(fmt.Sprintf("%s is LSTM of at least one row of %d hidden units; step is in bytes.", name, s.lanes))
	Pragma("noescape")
	gates, h, c, n, step := param("gates"), param("h"), param("c"), param("rows"), param("step")
	Label("row")
	cell := s.sigmoid(s.gate(gates, 1))
	VMULPS(Mem{Base: c}, cell, cell)
	VMOVUPS(cell, Mem{Base: c})
	i := s.sigmoid(s.gate(gates, 0))
	VMOVUPS(i, Mem{Base: h})
	g := s.tanh(s.gate(gates, 2))
	VMOVUPS(Mem{Base: c}, cell)
	VFMADD231PS(Mem{Base: h}, g, cell)
	VMOVUPS(cell, Mem{Base: c})
	t := s.tanh(cell)
	VMOVUPS(t, Mem{Base: h})
	o := s.sigmoid(s.gate(gates, 3))
	VMULPS(Mem{Base: h}, o, o)
	VMOVUPS(o, Mem{Base: h})
	ADDQ(U32(s.bytes()), c)
	s.nextRow(gates, n, h, step)
}

// gru writes the same of a gated recurrent unit, whose new state goes elsewhere.
func (s *isa) gru() {
	name := "gru" + s.suffix
	TEXT(name, NOSPLIT, "func(gates, from, h *float32, rows, fromStep, step int)")
	Doc(fmt.Sprintf("%s is GRU of at least one row of %d hidden units; steps are in bytes.", name, s.lanes))
	Pragma("noescape")
	gates, from, h, n := param("gates"), param("from"), param("h"), param("rows")
	fromStep, step := param("fromStep"), param("step")
	Label("row")
	nh := s.sigmoid(s.gate(gates, 0))
	VMULPS(Mem{Base: gates, Disp: 3 * s.bytes()}, nh, nh)
	VADDPS(Mem{Base: gates, Disp: 2 * s.bytes()}, nh, nh)
	new := s.tanh(nh)
	VMOVUPS(new, Mem{Base: h})
	z, rest := s.sigmoid(s.gate(gates, 1)), s.vec()
	VMOVUPS(f32(1), rest)
	VSUBPS(z, rest, rest)
	VMULPS(Mem{Base: h}, rest, rest)
	VFMADD231PS(Mem{Base: from}, z, rest)
	VMOVUPS(rest, Mem{Base: h})
	ADDQ(fromStep, from)
	s.nextRow(gates, n, h, step)
}

// gate returns the j-th gate of a row.
func (s *isa) gate(gates reg.GPVirtual, j int) reg.VecVirtual {
	v := s.vec()
	VMOVUPS(Mem{Base: gates, Disp: j * s.bytes()}, v)
	return v
}

// nextRow writes the end of a loop over n rows of four gates and their states h, and of its function.
func (s *isa) nextRow(gates, n, h, step reg.GPVirtual) {
	ADDQ(U32(4*s.bytes()), gates)
	ADDQ(step, h)
	DECQ(n)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
