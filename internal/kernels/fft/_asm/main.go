// Command asm writes the passes of package fft for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width and an element type with their instructions. Vectors hold complex numbers,
// the real part first.
type isa struct {
	suffix string
	elem   string
	size   int // of an element
	bytes  int // of a vector
	swap   uint64
	vec    func() reg.VecVirtual

	add, sub, mul, xor, muladdsub, muladd func(ops ...Op)
	permute                               func(ops ...Op)
	load, broadcast                       func(ops ...Op)
}

func zmm() reg.VecVirtual { return ZMM() }
func ymm() reg.VecVirtual { return YMM() }

var isas = []*isa{
	{"AVX512F32", "float32", 4, 64, 0xb1, zmm, VADDPS, VSUBPS, VMULPS, VXORPS, VFMADDSUB213PS, VFMADD231PS, VPERMILPS, VMOVUPS, VBROADCASTSS},
	{"AVX2F32", "float32", 4, 32, 0xb1, ymm, VADDPS, VSUBPS, VMULPS, VXORPS, VFMADDSUB213PS, VFMADD231PS, VPERMILPS, VMOVUPS, VBROADCASTSS},
	{"AVX512F64", "float64", 8, 64, 0x55, zmm, VADDPD, VSUBPD, VMULPD, VXORPD, VFMADDSUB213PD, VFMADD231PD, VPERMILPD, VMOVUPD, VBROADCASTSD},
	{"AVX2F64", "float64", 8, 32, 0x5, ymm, VADDPD, VSUBPD, VMULPD, VXORPD, VFMADDSUB213PD, VFMADD231PD, VPERMILPD, VMOVUPD, VBROADCASTSD},
}

// op returns a new vector f(a, b), where f is in Intel's order reversed: b - a for sub.
func (s *isa) op(f func(ops ...Op), b, a Op) reg.VecVirtual {
	v := s.vec()
	f(b, a, v)
	return v
}

func (s *isa) plus(a, b Op) reg.VecVirtual  { return s.op(s.add, b, a) }
func (s *isa) minus(a, b Op) reg.VecVirtual { return s.op(s.sub, b, a) }

func (s *isa) loaded(m Mem) reg.VecVirtual {
	v := s.vec()
	s.load(m, v)
	return v
}

// turned returns x times -i or i: sign has the sign bits of the one or of the other.
func (s *isa) turned(x, sign reg.VecVirtual) reg.VecVirtual {
	v := s.vec()
	s.permute(Imm(s.swap), x, v)
	s.xor(sign, v, v)
	return v
}

// factor is a complex number in all places of two vectors.
type factor struct{ re, im reg.VecVirtual }

func (s *isa) factor(m Mem) factor {
	f := factor{s.vec(), s.vec()}
	s.broadcast(m, f.re)
	s.broadcast(m.Offset(s.size), f.im)
	return f
}

// times returns x·f; x is spent.
func (s *isa) times(x reg.VecVirtual, f factor) reg.VecVirtual {
	t := s.vec()
	s.permute(Imm(s.swap), x, t)
	s.mul(f.im, t, t)
	s.muladdsub(t, f.re, x)
	return x
}

func (s *isa) text(name, doc, args string) {
	TEXT(name+s.suffix, NOSPLIT, fmt.Sprintf("func("+args+")", s.elem))
	Doc(name + s.suffix + " " + doc)
	Pragma("noescape")
}

func param(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

// pass2 and pass4 are passes of a transform over rows: for each of m blocks of row bytes in each of
// the 2 or 4 parts of src, the transform of the parts, times the block's factors, to 2 or 4 blocks of
// dst that follow each other.
func (s *isa) pass2() {
	s.text("pass2", "does a pass of radix 2 over m blocks of row bytes.", "dst, src, tw *%s, m, row int")
	dst, src, tw, m, row := param("dst"), param("src"), param("tw"), param("m"), param("row")
	part := GP64()
	MOVQ(m, part)
	IMULQ(row, part)
	var w factor
	s.blocks(dst, src, tw, m, row, row, 1, func() { w = s.factor(Mem{Base: tw}) }, func() {
		a, b := s.loaded(Mem{Base: src}), s.loaded(Mem{Base: src, Index: part, Scale: 1})
		y := s.minus(a, b)
		s.add(b, a, a)
		s.load(a, Mem{Base: dst})
		s.load(s.times(y, w), Mem{Base: dst, Index: row, Scale: 1})
	})
}

func (s *isa) pass4() {
	s.text("pass4", "does a pass of radix 4 over m blocks of row bytes.", "dst, src, tw, sign *%s, m, row int")
	dst, src, tw, m, row := param("dst"), param("src"), param("tw"), param("m"), param("row")
	sign := s.loaded(Mem{Base: param("sign")})
	part, part3, row3 := GP64(), GP64(), GP64()
	MOVQ(m, part)
	IMULQ(row, part)
	LEAQ(Mem{Base: part, Index: part, Scale: 2}, part3)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	var w [3]factor
	s.blocks(dst, src, tw, m, row, row3, len(w), func() {
		for i := range w {
			w[i] = s.factor(Mem{Base: tw, Disp: 2 * i * s.size})
		}
	}, func() {
		a, b := s.loaded(Mem{Base: src}), s.loaded(Mem{Base: src, Index: part, Scale: 1})
		c, d := s.loaded(Mem{Base: src, Index: part, Scale: 2}), s.loaded(Mem{Base: src, Index: part3, Scale: 1})
		ac, bd := s.plus(a, c), s.plus(b, d)
		s.sub(c, a, a)
		s.sub(d, b, b)
		b = s.turned(b, sign)
		s.load(s.plus(ac, bd), Mem{Base: dst})
		s.load(s.times(s.plus(a, b), w[0]), Mem{Base: dst, Index: row, Scale: 1})
		s.load(s.times(s.minus(ac, bd), w[1]), Mem{Base: dst, Index: row, Scale: 2})
		s.load(s.times(s.minus(a, b), w[2]), Mem{Base: dst, Index: row3, Scale: 1})
	})
}

// blocks writes the loops of a pass and the end of the function: first for each of m blocks, next for
// each vector of its row bytes. Behind a block dst goes on by skip more bytes and tw by count factors.
func (s *isa) blocks(dst, src, tw, m, row, skip reg.GPVirtual, count int, first, next func()) {
	q := GP64()
	Label("block")
	first()
	MOVQ(row, q)
	Label("next")
	next()
	ADDQ(Imm(uint64(s.bytes)), src)
	ADDQ(Imm(uint64(s.bytes)), dst)
	SUBQ(Imm(uint64(s.bytes)), q)
	JNZ(LabelRef("next"))
	ADDQ(skip, dst)
	ADDQ(Imm(uint64(2*s.size*count)), tw)
	DECQ(m)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// odd does one block of a pass of an odd radix 2h+1: pairs of parts are added and subtracted, into
// scratch, and their sums by the cosines and sines of cs are the results.
func (s *isa) odd() {
	s.text("odd", "does a block of row bytes of a pass of radix 2h+1 over parts that are part bytes apart.",
		"dst, src, tw, sign, cs, scratch *%s, h, part, row int")
	dst, src, q := param("dst"), param("src"), param("row")
	sign := s.loaded(Mem{Base: param("sign")})
	step := Imm(uint64(s.bytes))
	Label("next")
	x := s.loaded(Mem{Base: src})
	s.sums(x, src, dst, sign)
	s.pairs(x, dst)
	ADDQ(step, src)
	ADDQ(step, dst)
	SUBQ(step, q)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// sums writes the sums and the turned differences of pairs to scratch, and the sum of all parts to dst.
func (s *isa) sums(x reg.VecVirtual, src, dst reg.GPVirtual, sign reg.VecVirtual) {
	total := s.vec()
	s.load(x, total)
	part, j, pairs := param("part"), param("h"), param("scratch")
	up, down := GP64(), GP64()
	MOVQ(j, down)
	IMULQ(part, down)
	LEAQ(Mem{Base: src, Index: down, Scale: 2}, down)
	LEAQ(Mem{Base: src, Index: part, Scale: 1}, up)
	Label("sums")
	a, b := s.loaded(Mem{Base: up}), s.loaded(Mem{Base: down})
	t := s.plus(a, b)
	s.add(t, total, total)
	s.load(t, Mem{Base: pairs})
	s.load(s.turned(s.minus(a, b), sign), Mem{Base: pairs, Disp: s.bytes})
	ADDQ(part, up)
	SUBQ(part, down)
	ADDQ(Imm(uint64(2*s.bytes)), pairs)
	DECQ(j)
	JNZ(LabelRef("sums"))
	s.load(total, Mem{Base: dst})
}

// pairs computes results k and 2h+1-k from the pairs in scratch.
func (s *isa) pairs(x reg.VecVirtual, dst reg.GPVirtual) {
	row, cs, k := param("row"), param("cs"), param("h")
	up, down, first, last := GP64(), GP64(), GP64(), GP64()
	MOVQ(k, down)
	MOVQ(k, last)
	IMULQ(row, down)
	LEAQ(Mem{Base: dst, Index: down, Scale: 2}, down)
	LEAQ(Mem{Base: dst, Index: row, Scale: 1}, up)
	Load(Param("tw"), first)
	SHLQ(Imm(uint64(map[int]int{4: 4, 8: 5}[s.size])), last) // 2h factors
	ADDQ(first, last)
	SUBQ(Imm(uint64(2*s.size)), last)
	Label("results")
	even, odd := s.vec(), s.vec()
	s.load(x, even)
	s.xor(odd, odd, odd)
	pairs, j := param("scratch"), param("h")
	Label("terms")
	c := s.factor(Mem{Base: cs})
	s.muladd(Mem{Base: pairs}, c.re, even)
	s.muladd(Mem{Base: pairs, Disp: s.bytes}, c.im, odd)
	ADDQ(Imm(uint64(2*s.size)), cs)
	ADDQ(Imm(uint64(2*s.bytes)), pairs)
	DECQ(j)
	JNZ(LabelRef("terms"))
	s.load(s.times(s.plus(even, odd), s.factor(Mem{Base: first})), Mem{Base: up})
	s.load(s.times(s.minus(even, odd), s.factor(Mem{Base: last})), Mem{Base: down})
	ADDQ(row, up)
	SUBQ(row, down)
	ADDQ(Imm(uint64(2*s.size)), first)
	SUBQ(Imm(uint64(2*s.size)), last)
	DECQ(k)
	JNZ(LabelRef("results"))
}

// tangle turns two rows of the transform of half the length into two of the transform of reals, or the
// other way round.
func (s *isa) tangle() {
	s.text("tangle", "sets up and down to h·(a+b̄) ± tw·(a-b̄), the second conjugated, in rows of row bytes; conj has the sign bits of imaginary parts.",
		"up, down, a, b, tw, conj, h *%s, row int")
	up, down, a, b, row := param("up"), param("down"), param("a"), param("b"), param("row")
	w, conj, h := s.factor(Mem{Base: param("tw")}), s.loaded(Mem{Base: param("conj")}), s.vec()
	s.broadcast(Mem{Base: param("h")}, h)
	at := GP64()
	XORQ(at, at)
	Label("next")
	x, y := s.loaded(Mem{Base: a, Index: at, Scale: 1}), s.loaded(Mem{Base: b, Index: at, Scale: 1})
	s.xor(conj, y, y)
	sum, diff := s.plus(x, y), s.times(s.minus(x, y), w)
	s.mul(h, sum, sum)
	out := s.minus(sum, diff)
	s.add(diff, sum, sum)
	s.xor(conj, out, out)
	s.load(sum, Mem{Base: up, Index: at, Scale: 1})
	s.load(out, Mem{Base: down, Index: at, Scale: 1})
	ADDQ(Imm(uint64(s.bytes)), at)
	CMPQ(at, row)
	JLT(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// rows multiplies rows by a complex number each.
func (s *isa) rows() {
	s.text("rows", "multiplies m rows of row bytes of x by tw, one number each.", "x, tw *%s, m, row int")
	x, tw, m, row, q := param("x"), param("tw"), param("m"), param("row"), GP64()
	Label("row")
	w := s.factor(Mem{Base: tw})
	MOVQ(row, q)
	Label("next")
	s.load(s.times(s.loaded(Mem{Base: x}), w), Mem{Base: x})
	ADDQ(Imm(uint64(s.bytes)), x)
	SUBQ(Imm(uint64(s.bytes)), q)
	JNZ(LabelRef("next"))
	ADDQ(Imm(uint64(2*s.size)), tw)
	DECQ(m)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// scale multiplies elements by a real number.
func (s *isa) scale() {
	s.text("scale", "multiplies n bytes of x by f.", "x, f *%s, n int")
	x, n, f := param("x"), param("n"), s.vec()
	s.broadcast(Mem{Base: param("f")}, f)
	Label("next")
	v := s.loaded(Mem{Base: x})
	s.mul(f, v, v)
	s.load(v, Mem{Base: x})
	ADDQ(Imm(uint64(s.bytes)), x)
	SUBQ(Imm(uint64(s.bytes)), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.pass2()
		s.pass4()
		s.odd()
		s.tangle()
		s.rows()
		s.scale()
	}
	Generate()
}
