package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tail is a polynomial in a for log(erfc(a/√2)/2), 0 ≤ a ≤ 5.7, whose exponential is
// off by 2⁻³⁰ at most and by 2⁻²⁶ of itself for a ≤ 2. Above, where the exponential
// is below 2⁻²⁷, it goes on down.
var tail = []float64{-0.6931471794608468, -0.7978846367084961, -0.3183090644732518, -0.03633872620276084, 0.004786862582277363, 3.619038458666132e-05,
	-0.00021915868684290143, 6.315651894816506e-05, -9.930469062054936e-06, 8.779261258881433e-07, -3.405693633559866e-08}

// single is one width of vectors of float32. A step works on several vectors,
// instruction by instruction, because each waits for the one before on the same
// vector.
type single struct {
	suffix string
	lanes  int
	copies int // as many as there are registers for
	vec    func() reg.VecVirtual
}

var singles = []*single{{"AVX512", 16, 4, ZMM}, {"AVX2", 8, 2, YMM}}

func (s *single) wide() bool { return s.lanes == 16 }

// vecs is the vectors of a step.
type vecs []reg.VecVirtual

func (x vecs) each(f func(x reg.VecVirtual)) {
	for _, v := range x {
		f(v)
	}
}

// pairs gives the vectors of x and y to f.
func (x vecs) pairs(y vecs, f func(x, y reg.VecVirtual)) {
	for i := range x {
		f(x[i], y[i])
	}
}

func (s *single) like(x vecs) vecs {
	y := make(vecs, len(x))
	for i := range y {
		y[i] = s.vec()
	}
	return y
}

// f32 returns the memory of a constant.
func f32(x float64) Mem {
	b := uint64(math.Float32bits(float32(x)))
	return bits(b<<32 | b)
}

// i32 returns the memory of a constant given by its bits.
func i32(b uint32) Mem { return bits(uint64(b)<<32 | uint64(b)) }

func (s *single) constant(x float64) reg.VecVirtual {
	v := s.vec()
	VMOVUPS(f32(x), v)
	return v
}

func (s *single) copied(x vecs) vecs {
	y := s.like(x)
	x.pairs(y, func(x, y reg.VecVirtual) { VMOVAPS(x, y) })
	return y
}

// filled returns vectors of a constant.
func (s *single) filled(x vecs, c float64) vecs {
	y := s.like(x)
	y.each(func(y reg.VecVirtual) { VMOVUPS(f32(c), y) })
	return y
}

const signBit = 1 << 31

// magnitude returns |x| and leaves x.
func (s *single) magnitude(x vecs) vecs {
	y := s.like(x)
	x.pairs(y, func(x, y reg.VecVirtual) { VANDPS(i32(signBit-1), x, y) })
	return y
}

// polynomial is c[0] + c[1]·x + c[2]·x² + ….
func (s *single) polynomial(x vecs, c []float64) vecs {
	p := s.filled(x, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		x.pairs(p, func(x, p reg.VecVirtual) { VFMADD213PS(f32(c[i]), x, p) })
	}
	return p
}

const singleMagic = 0x1.8p23

// expQ and em1Q are (eʳ - 1 - r)/r² for |r| ≤ ln 2 / 2, the second precise enough
// for eʳ - 1.
var (
	expQ = []float64{0.5000000095602040833, 0.1666651827302404444, 0.04166620457316091456, 0.008368956573390653146, 0.001395057068818627899}
	em1Q = []float64{0.5000000044838073767, 0.1666666638902122595, 0.04166635869473365693, 0.008333384765963314935, 0.001394078548009879268,
		0.0001984855542490515611}
)

// atMost bounds x in place; a NaN stays.
func (s *single) atMost(x vecs, most float64) {
	b := s.constant(most)
	x.each(func(x reg.VecVirtual) { VMINPS(x, b, x) })
}

// parts splits e to the x, which it overwrites, into (1+p)·2ᵏ; the low bits of t
// are k.
func (s *single) parts(x vecs, q []float64) (p, t, k vecs) {
	t = s.copied(x)
	magic := s.constant(singleMagic)
	t.each(func(t reg.VecVirtual) { VFMADD132PS(f32(math.Log2E), magic, t) })
	k = s.like(x)
	k.pairs(t, func(k, t reg.VecVirtual) { VSUBPS(magic, t, k) })
	const ln2 = 0x1.62e4p-1 // the product with k is exact
	x.pairs(k, func(x, k reg.VecVirtual) { VFNMADD231PS(f32(ln2), k, x) })
	x.pairs(k, func(x, k reg.VecVirtual) { VFNMADD231PS(f32(math.Ln2-ln2), k, x) })
	p = s.polynomial(x, q)
	for i := range x {
		square := s.vec()
		VMULPS(x[i], x[i], square)
		VFMADD213PS(x[i], square, p[i])
	}
	return p, t, k
}

// power replaces integers in the low bits by powers of 2.
func (s *single) power(n vecs) {
	n.each(func(n reg.VecVirtual) { VPADDD(i32(127), n, n) })
	n.each(func(n reg.VecVirtual) { VPSLLD(Imm(23), n, n) })
}

// smallest and normal are below where e to the x is 0, and below where it is subnormal.
const (
	smallest = -104
	normal   = -87.3
)

// exp returns e to the x, which it overwrites, within 1.1 units in the last place, and 0 for x below the least; a NaN
// stays. Intel's processors take more than a hundred cycles for what is rounded to 0 or to a subnormal number, so no
// lane computes that.
func (s *single) exp(x vecs, least float64) vecs {
	s.atMost(x, 89)
	above := make([]Op, len(x))
	low := s.constant(least)
	for i := range x {
		if s.wide() {
			k := K()
			VCMPPS(Imm(notLess), low, x[i], k)
			above[i] = k
			continue
		}
		m := s.vec()
		VCMPPS(Imm(notLess), low, x[i], m)
		VANDPS(m, x[i], x[i])
		above[i] = m
	}
	p, t, k := s.parts(x, expQ)
	p.each(func(p reg.VecVirtual) { VADDPS(f32(1), p, p) })
	if s.wide() {
		for i := range p {
			VSCALEFPS_Z(k[i], p[i], above[i], p[i])
		}
		return p
	}
	// In two steps, because 2ᵏ alone may not be a number.
	t.each(func(t reg.VecVirtual) { VPSUBD(f32(singleMagic), t, t) })
	t.pairs(k, func(t, half reg.VecVirtual) { VPSRAD(Imm(1), t, half) })
	t.pairs(k, func(t, half reg.VecVirtual) { VPSUBD(half, t, t) })
	for _, n := range []vecs{k, t} {
		s.power(n)
		p.pairs(n, func(p, n reg.VecVirtual) { VMULPS(n, p, p) })
	}
	for i := range p {
		VANDPS(above[i], p[i], p[i])
	}
	return p
}

// notLess is the predicate of comparisons that is true of NaN.
const notLess = 0x15

// logistic returns x/(1+e to the y), which it overwrites.
func (s *single) logistic(x, y vecs) vecs {
	e := s.exp(y, normal)
	e.each(func(e reg.VecVirtual) { VADDPS(f32(1), e, e) })
	x.pairs(e, func(x, e reg.VecVirtual) { VDIVPS(e, x, e) })
	return e
}

func (s *single) silu(x vecs) vecs {
	y := s.like(x)
	x.pairs(y, func(x, y reg.VecVirtual) { VXORPS(i32(signBit), x, y) })
	return s.logistic(x, y)
}

// ratio is a/(c+b) for a ≤ c+b, b ≥ 0 and c of 1 or 2, as if the sum were not
// rounded: the remainder that corrects the quotient takes c and b apart.
func (s *single) ratio(a vecs, c float64, b vecs) vecs {
	y, rest := s.like(a), s.copied(a)
	b.pairs(y, func(b, y reg.VecVirtual) { VADDPS(f32(c), b, y) })
	if s.wide() {
		y.each(func(y reg.VecVirtual) { VRCP14PS(y, y) })
	} else {
		one := s.constant(1)
		y.each(func(y reg.VecVirtual) { VDIVPS(y, one, y) })
	}
	q := a
	q.pairs(y, func(q, y reg.VecVirtual) { VMULPS(y, q, q) })
	q.pairs(rest, func(q, rest reg.VecVirtual) { VFNMADD231PS(f32(c), q, rest) })
	s.subTimes(rest, q, b)
	for i := range q {
		VFMADD231PS(y[i], rest[i], q[i])
	}
	return q
}

// subTimes subtracts q·b where b is not so small that the product may be subnormal, which takes some processors a hundred
// cycles.
func (s *single) subTimes(rest, q, b vecs) {
	const notBelow = 0x1d
	least := s.constant(0x1p-60)
	for i := range q {
		if s.wide() {
			k := K()
			VCMPPS(Imm(notBelow), least, b[i], k)
			VFNMADD231PS(b[i], q[i], k, rest[i])
			continue
		}
		m := s.vec()
		VCMPPS(Imm(notBelow), least, b[i], m)
		VANDPS(m, b[i], m)
		VFNMADD231PS(m, q[i], rest[i])
	}
}

// sigmoid is 1/(1+e to the -x), or, which loses nothing, e to the x/(1+e to the x)
// for negative x.
func (s *single) sigmoid(x vecs) vecs {
	minus := s.like(x)
	x.pairs(minus, func(x, minus reg.VecVirtual) { VORPS(i32(signBit), x, minus) })
	e := s.exp(minus, smallest)
	above := s.filled(x, 1)
	for i := range x {
		s.ifNegative(x[i], e[i], above[i])
	}
	return s.ratio(above, 1, e)
}

// tanh is (e²ᵃ-1)/(e²ᵃ+1) of a = |x|, with the sign of x.
func (s *single) tanh(x vecs) vecs {
	a := s.magnitude(x)
	a.each(func(a reg.VecVirtual) { VADDPS(a, a, a) })
	s.atMost(a, 18.5)
	e, scale, less := s.parts(a, em1Q)
	scale.each(func(n reg.VecVirtual) { VPSUBD(f32(singleMagic), n, n) })
	s.power(scale)
	scale.pairs(less, func(scale, less reg.VecVirtual) { VADDPS(f32(-1), scale, less) })
	for i := range e {
		VFMADD213PS(less[i], scale[i], e[i])
	}
	x.each(func(x reg.VecVirtual) { VANDPS(i32(signBit), x, x) })
	y := s.ratio(s.copied(e), 2, e)
	x.pairs(y, func(x, y reg.VecVirtual) { VORPS(x, y, y) })
	return y
}

// geluTanh is x·(1+tanh u)/2 = x/(1+exp(-2u)).
func (s *single) geluTanh(x vecs) vecs {
	slope := math.Sqrt2 / math.SqrtPi
	u, w := s.like(x), s.filled(x, -2*slope*0.044715)
	x.pairs(u, func(x, u reg.VecVirtual) { VMULPS(x, x, u) })
	u.pairs(w, func(u, w reg.VecVirtual) { VFMADD213PS(f32(-2*slope), u, w) })
	x.pairs(w, func(x, w reg.VecVirtual) { VMULPS(x, w, w) })
	return s.logistic(x, w)
}

// gelu is x·Φ(x), where Φ is the exponential of tail for negative x and 1 less
// that for positive.
func (s *single) gelu(x vecs) vecs {
	e := s.exp(s.polynomial(s.magnitude(x), tail), normal)
	upper := s.filled(x, 1)
	upper.pairs(e, func(upper, e reg.VecVirtual) { VSUBPS(e, upper, upper) })
	for i := range x {
		s.ifNegative(x[i], e[i], upper[i])
	}
	x.pairs(upper, func(x, upper reg.VecVirtual) { VMULPS(x, upper, upper) })
	return upper
}

// ifNegative replaces y by a where x has its sign bit set.
func (s *single) ifNegative(x, a, y reg.VecVirtual) {
	if s.wide() {
		VPMOVD2M(x, reg.K1)
		VMOVAPS(a, reg.K1, y)
		return
	}
	VBLENDVPS(x, a, y, y)
}

func (s *single) function(name string, body func(x vecs) vecs) {
	TEXT(name+s.suffix, NOSPLIT, "func(dst, src *float32, n int)")
	Doc(fmt.Sprintf("%s%s computes n elements, a multiple of %d above zero.", name, s.suffix, s.lanes))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	for _, copies := range []int{s.copies, 1} {
		next, end := fmt.Sprintf("next%d", copies), fmt.Sprintf("end%d", copies)
		step := uint64(copies * s.lanes)
		Label(next)
		CMPQ(n, Imm(step))
		JL(LabelRef(end))
		x := make(vecs, copies)
		for i := range x {
			x[i] = s.vec()
			VMOVUPS(Mem{Base: src, Disp: 4 * s.lanes * i}, x[i])
		}
		for i, y := range body(x) {
			VMOVUPS(y, Mem{Base: dst, Disp: 4 * s.lanes * i})
		}
		ADDQ(U32(uint32(4*step)), src)
		ADDQ(U32(uint32(4*step)), dst)
		SUBQ(Imm(step), n)
		JMP(LabelRef(next))
		Label(end)
	}
	VZEROUPPER()
	RET()
}
