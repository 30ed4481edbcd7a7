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

// single is one width of vectors of float32.
type single struct {
	suffix string
	lanes  int
	vec    func() reg.VecVirtual
}

var singles = []*single{{"AVX512", 16, ZMM}, {"AVX2", 8, YMM}}

// f32 returns the memory of a constant.
func f32(x float64) Mem {
	b := uint64(math.Float32bits(float32(x)))
	return bits(b<<32 | b)
}

func (s *single) constant(x float64) reg.VecVirtual {
	v := s.vec()
	VMOVUPS(f32(x), v)
	return v
}

func (s *single) copied(x Op) reg.VecVirtual {
	v := s.vec()
	VMOVAPS(x, v)
	return v
}

// and sets x to its bits that are in a constant as well.
func (s *single) and(x reg.VecVirtual, b uint32) {
	VANDPS(bits(uint64(b)<<32|uint64(b)), x, x)
}

// polynomial is c[0] + c[1]·x + c[2]·x² + ….
func (s *single) polynomial(x reg.VecVirtual, c []float64) reg.VecVirtual {
	p := s.constant(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PS(f32(c[i]), x, p)
	}
	return p
}

const singleMagic = 0x1.8p23

// exp returns e to the x, which it overwrites, within 1.1 units in the last place;
// a NaN stays.
func (s *single) exp(x reg.VecVirtual) reg.VecVirtual {
	VMINPS(x, s.constant(89), x)
	VMAXPS(x, s.constant(-104), x)
	magic := s.constant(singleMagic)
	t := s.copied(x)
	VFMADD132PS(f32(math.Log2E), magic, t)
	k := s.vec()
	VSUBPS(magic, t, k)
	const ln2 = 0x1.62e4p-1 // the product with k is exact
	VFNMADD231PS(f32(ln2), k, x)
	VFNMADD231PS(f32(math.Ln2-ln2), k, x)
	// (eˣ - 1 - x)/x² for |x| ≤ ln 2 / 2.
	p := s.polynomial(x, []float64{0.5000000095602040833, 0.1666651827302404444, 0.04166620457316091456, 0.008368956573390653146, 0.001395057068818627899})
	square := s.vec()
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(f32(1), p, p)
	if s.lanes == 16 {
		VSCALEFPS(k, p, p)
		return p
	}
	// In two steps, because 2ᵏ alone may not be a number.
	half := s.vec()
	VPSUBD(magic, t, t)
	VPSRAD(Imm(1), t, half)
	VPSUBD(half, t, t)
	for _, n := range []reg.VecVirtual{half, t} {
		VPADDD(bits(127<<32|127), n, n)
		VPSLLD(Imm(23), n, n)
		VMULPS(n, p, p)
	}
	return p
}

// logistic returns x/(1+e to the y), which it overwrites.
func (s *single) logistic(x, y reg.VecVirtual) reg.VecVirtual {
	e := s.exp(y)
	VADDPS(f32(1), e, e)
	VDIVPS(e, x, e)
	return e
}

func (s *single) silu(x reg.VecVirtual) reg.VecVirtual {
	y := s.copied(x)
	VXORPS(bits(1<<63|1<<31), y, y)
	return s.logistic(x, y)
}

// geluTanh is x·(1+tanh u)/2 = x/(1+exp(-2u)).
func (s *single) geluTanh(x reg.VecVirtual) reg.VecVirtual {
	slope := math.Sqrt2 / math.SqrtPi
	u, w := s.vec(), s.constant(-2*slope*0.044715)
	VMULPS(x, x, u)
	VFMADD213PS(f32(-2*slope), u, w)
	VMULPS(x, w, u)
	return s.logistic(x, u)
}

// gelu is x·Φ(x), where Φ is the exponential of tail for negative x and 1 less
// that for positive.
func (s *single) gelu(x reg.VecVirtual) reg.VecVirtual {
	a := s.copied(x)
	s.and(a, 1<<31-1)
	e := s.exp(s.polynomial(a, tail))
	upper := s.constant(1)
	VSUBPS(e, upper, upper)
	if s.lanes == 16 {
		VPMOVD2M(x, reg.K1)
		VMOVAPS(e, reg.K1, upper)
	} else {
		VBLENDVPS(x, e, upper, upper)
	}
	VMULPS(x, upper, upper)
	return upper
}

func (s *single) function(name string, body func(x reg.VecVirtual) reg.VecVirtual) {
	TEXT(name+s.suffix, NOSPLIT, "func(dst, src *float32, n int)")
	Doc(fmt.Sprintf("%s%s computes n elements, a multiple of %d above zero.", name, s.suffix, s.lanes))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("next")
	x := s.vec()
	VMOVUPS(Mem{Base: src}, x)
	VMOVUPS(body(x), Mem{Base: dst})
	ADDQ(Imm(uint64(4*s.lanes)), src)
	ADDQ(Imm(uint64(4*s.lanes)), dst)
	SUBQ(Imm(uint64(s.lanes)), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}
