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
	even   uint64 // makes both parts the real one
	odds   uint64 // makes both the imaginary one
	group  int    // pairs of results that a pass of an odd radix sums at a time
	vec    func() reg.VecVirtual

	add, sub, mul, xor, muladdsub, muladd func(ops ...Op)
	mulsub, muladdback                    func(ops ...Op) // c - a·b and a·b - c
	permute                               func(ops ...Op)
	load, broadcast                       func(ops ...Op)
	pair                                  func(ops ...Op) // broadcasts two elements
}

func broadcastF128(ops ...Op) { VBROADCASTF128(ops[0], ops[1]) }

func zmm() reg.VecVirtual { return ZMM() }
func ymm() reg.VecVirtual { return YMM() }

var isas = []*isa{
	{"AVX512F32", "float32", 4, 64, 0xb1, 0xa0, 0xf5, 4, zmm, VADDPS, VSUBPS, VMULPS, VXORPS, VFMADDSUB213PS, VFMADD231PS, VFNMADD231PS, VFMSUB231PS, VPERMILPS, VMOVUPS, VBROADCASTSS, VBROADCASTSD},
	{"AVX2F32", "float32", 4, 32, 0xb1, 0xa0, 0xf5, 2, ymm, VADDPS, VSUBPS, VMULPS, VXORPS, VFMADDSUB213PS, VFMADD231PS, VFNMADD231PS, VFMSUB231PS, VPERMILPS, VMOVUPS, VBROADCASTSS, VBROADCASTSD},
	{"AVX512F64", "float64", 8, 64, 0x55, 0x00, 0xff, 4, zmm, VADDPD, VSUBPD, VMULPD, VXORPD, VFMADDSUB213PD, VFMADD231PD, VFNMADD231PD, VFMSUB231PD, VPERMILPD, VMOVUPD, VBROADCASTSD, VBROADCASTF64X2},
	{"AVX2F64", "float64", 8, 32, 0x5, 0x0, 0xf, 2, ymm, VADDPD, VSUBPD, VMULPD, VXORPD, VFMADDSUB213PD, VFMADD231PD, VFNMADD231PD, VFMSUB231PD, VPERMILPD, VMOVUPD, VBROADCASTSD, broadcastF128},
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
	c := s.turns(4)
	part := GP64()
	MOVQ(m, part)
	IMULQ(row, part)
	from, to := parts(src, part, 4), parts(dst, row, 4)
	row3 := to[3].Index.(reg.GPVirtual)
	var w [3]factor
	s.blocks(dst, src, tw, m, row, row3, len(w), func() {
		for i := range w {
			w[i] = s.factor(Mem{Base: tw, Disp: 2 * i * s.size})
		}
	}, func() {
		s.dft(s.loadedAll(from), c, func(k int, y reg.VecVirtual) {
			if k > 0 {
				y = s.times(y, w[k-1])
			}
			s.load(y, to[k])
		})
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

// small does a pass of a small odd radix r: all parts are in registers at once.
func (s *isa) small(r int) {
	s.text(fmt.Sprint("pass", r), fmt.Sprintf("does a pass of radix %d over m blocks of row bytes.", r), "dst, src, tw, sign, cs *%s, m, row int")
	dst, src, tw, cs, m, row := param("dst"), param("src"), param("tw"), param("cs"), param("m"), param("row")
	sign := s.loaded(Mem{Base: param("sign")})
	part, at, skip := GP64(), GP64(), GP64()
	MOVQ(m, part)
	IMULQ(row, part)
	MOVQ(row, skip)
	IMUL3Q(Imm(uint64(r-1)), skip, skip)
	h := r / 2
	s.blocks(dst, src, tw, m, row, skip, r-1, func() {}, func() {
		x := s.loaded(Mem{Base: src})
		total := s.vec()
		s.load(x, total)
		up, down := GP64(), GP64()
		MOVQ(part, down)
		IMUL3Q(Imm(uint64(r-1)), down, down)
		ADDQ(src, down)
		LEAQ(Mem{Base: src, Index: part, Scale: 1}, up)
		sums, diffs := make([]reg.VecVirtual, h), make([]reg.VecVirtual, h)
		for j := range h {
			diffs[j] = s.loaded(Mem{Base: up})
			b := s.loaded(Mem{Base: down})
			sums[j] = s.plus(diffs[j], b)
			s.sub(b, diffs[j], diffs[j])
			s.permute(Imm(s.swap), diffs[j], diffs[j])
			s.xor(sign, diffs[j], diffs[j])
			s.add(sums[j], total, total)
			if j+1 < h {
				ADDQ(part, up)
				SUBQ(part, down)
			}
		}
		s.load(total, Mem{Base: dst})
		LEAQ(Mem{Base: dst, Index: row, Scale: 1}, up)
		MOVQ(skip, at)
		ADDQ(dst, at)
		for k := 1; k <= h; k++ {
			even, odd := s.vec(), s.vec()
			s.load(x, even)
			s.xor(odd, odd, odd)
			for j := range h {
				c := s.factor(Mem{Base: cs, Disp: 2 * s.size * ((k-1)*h + j)})
				s.muladd(sums[j], c.re, even)
				s.muladd(diffs[j], c.im, odd)
			}
			y := s.minus(even, odd)
			s.add(odd, even, even)
			s.load(s.times(even, s.factor(Mem{Base: tw, Disp: 2 * s.size * (k - 1)})), Mem{Base: up})
			s.load(s.times(y, s.factor(Mem{Base: tw, Disp: 2 * s.size * (r - 1 - k)})), Mem{Base: at})
			if k < h {
				ADDQ(row, up)
				SUBQ(row, at)
			}
		}
	})
}

// odd does one block of a pass of an odd radix 2h+1, two vectors at a time: pairs of parts are added and
// subtracted, into scratch, and their sums by the cosines and sines of cs are the results. Of these
// group pairs are summed at a time, as long as so many are left, and then one: so many sums hide how
// long each product takes, and use what is loaded more than once.
func (s *isa) odd() {
	s.text("odd", "does a block of row bytes of a pass of radix 2h+1 over parts that are part bytes apart.",
		"dst, src, tw, sign, cs, scratch *%s, h, part, row int")
	dst, src, q := param("dst"), param("src"), param("row")
	step := Imm(uint64(2 * s.bytes))
	Label("next")
	s.sums(src, dst)
	cs, k, first, last, up, down := param("cs"), param("h"), GP64(), GP64(), GP64(), GP64()
	row := param("row")
	MOVQ(k, last)
	MOVQ(k, down)
	IMULQ(row, down)
	LEAQ(Mem{Base: dst, Index: down, Scale: 2}, down)
	LEAQ(Mem{Base: dst, Index: row, Scale: 1}, up)
	Load(Param("tw"), first)
	SHLQ(Imm(uint64(map[int]int{4: 4, 8: 5}[s.size])), last) // 2h factors
	ADDQ(first, last)
	SUBQ(Imm(uint64(2*s.size)), last)
	for _, count := range []int{s.group, 1} {
		name := fmt.Sprint("results", count)
		CMPQ(k, Imm(uint64(count)))
		JLT(LabelRef(name + "end"))
		Label(name)
		s.pairs(count, src, cs, first, last, up, down, row)
		SUBQ(Imm(uint64(count)), k)
		CMPQ(k, Imm(uint64(count)))
		JGE(LabelRef(name))
		Label(name + "end")
	}
	ADDQ(step, src)
	ADDQ(step, dst)
	SUBQ(step, q)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// sums writes the sums and the turned differences of pairs to scratch, and the sum of all parts to dst.
func (s *isa) sums(src, dst reg.GPVirtual) {
	sign := s.loaded(Mem{Base: param("sign")})
	totals := [2]reg.VecVirtual{s.loaded(Mem{Base: src}), s.loaded(Mem{Base: src, Disp: s.bytes})}
	part, j, pairs := param("part"), param("h"), param("scratch")
	up, down := GP64(), GP64()
	MOVQ(j, down)
	IMULQ(part, down)
	LEAQ(Mem{Base: src, Index: down, Scale: 2}, down)
	LEAQ(Mem{Base: src, Index: part, Scale: 1}, up)
	Label("sums")
	for i, total := range totals {
		a, b := s.loaded(Mem{Base: up, Disp: i * s.bytes}), s.loaded(Mem{Base: down, Disp: i * s.bytes})
		t := s.plus(a, b)
		s.add(t, total, total)
		s.load(t, Mem{Base: pairs, Disp: i * s.bytes})
		s.load(s.turned(s.minus(a, b), sign), Mem{Base: pairs, Disp: (2 + i) * s.bytes})
	}
	ADDQ(part, up)
	SUBQ(part, down)
	ADDQ(U32(4*s.bytes), pairs)
	DECQ(j)
	JNZ(LabelRef("sums"))
	for i, total := range totals {
		s.load(total, Mem{Base: dst, Disp: i * s.bytes})
	}
}

// pairs computes count results at up and as many at down from the pairs in scratch, and moves on.
func (s *isa) pairs(count int, src, cs, first, last, up, down, row reg.GPVirtual) {
	even, odd := make([]reg.VecVirtual, 2*count), make([]reg.VecVirtual, 2*count)
	for i := range even {
		even[i], odd[i] = s.loaded(Mem{Base: src, Disp: i % 2 * s.bytes}), s.vec()
		s.xor(odd[i], odd[i], odd[i])
	}
	pairs, j := param("scratch"), param("h")
	name := fmt.Sprint("terms", count)
	Label(name)
	for part, sum := range [][]reg.VecVirtual{even, odd} {
		v := [2]reg.VecVirtual{s.loaded(Mem{Base: pairs, Disp: 2 * part * s.bytes}), s.loaded(Mem{Base: pairs, Disp: (2*part + 1) * s.bytes})}
		for k := range count {
			c := s.vec()
			s.broadcast(Mem{Base: cs, Disp: (2*k + part) * s.size}, c)
			s.muladd(v[0], c, sum[2*k])
			s.muladd(v[1], c, sum[2*k+1])
		}
	}
	ADDQ(Imm(uint64(2*s.size*count)), cs)
	ADDQ(U32(4*s.bytes), pairs)
	DECQ(j)
	JNZ(LabelRef(name))
	for k := range count {
		f, l := s.factor(Mem{Base: first}), s.factor(Mem{Base: last})
		for i := range 2 {
			e, o := even[2*k+i], odd[2*k+i]
			y := s.minus(e, o)
			s.add(o, e, e)
			s.load(s.times(e, f), Mem{Base: up, Disp: i * s.bytes})
			s.load(s.times(y, l), Mem{Base: down, Disp: i * s.bytes})
		}
		ADDQ(row, up)
		SUBQ(row, down)
		ADDQ(Imm(uint64(2*s.size)), first)
		SUBQ(Imm(uint64(2*s.size)), last)
	}
}

// tangle turns rows of the transform of half the length into those of the transform of reals, or the
// other way round: count pairs of rows, up and a from the first and down and b from the last on.
func (s *isa) tangle() {
	s.text("tangle", "sets up and down to h·(a+b̄) ± tw·(a-b̄), the second conjugated, in count rows of row bytes, of which those of down and b are one before the other; conj has the sign bits of imaginary parts.",
		"up, down, a, b, tw, conj, h *%s, row, count int")
	up, down, a, b, tw, row, count := param("up"), param("down"), param("a"), param("b"), param("tw"), param("row"), param("count")
	conj, h := s.loaded(Mem{Base: param("conj")}), s.vec()
	s.broadcast(Mem{Base: param("h")}, h)
	at := GP64()
	Label("rows")
	w := s.factor(Mem{Base: tw})
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
	ADDQ(row, up)
	ADDQ(row, a)
	SUBQ(row, down)
	SUBQ(row, b)
	ADDQ(Imm(uint64(2*s.size)), tw)
	DECQ(count)
	JNZ(LabelRef("rows"))
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

// products multiplies complex numbers by one each.
func (s *isa) products() {
	s.text("products", "sets m rows of row bytes of dst to those of a times those of w, number by number; w's begin step bytes apart.", "dst, a, w *%s, m, row, step int")
	dst, a, w, m, row, step := param("dst"), param("a"), param("w"), param("m"), param("row"), param("step")
	at := GP64()
	Label("row")
	XORQ(at, at)
	Label("next")
	v := s.loaded(Mem{Base: w, Index: at, Scale: 1})
	f := factor{s.vec(), s.vec()}
	s.permute(Imm(s.even), v, f.re)
	s.permute(Imm(s.odds), v, f.im)
	s.load(s.times(s.loaded(Mem{Base: a, Index: at, Scale: 1}), f), Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(uint64(s.bytes)), at)
	CMPQ(at, row)
	JLT(LabelRef("next"))
	ADDQ(row, dst)
	ADDQ(row, a)
	ADDQ(step, w)
	DECQ(m)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// window multiplies the parts of rows by two real numbers each.
func (s *isa) window() {
	s.text("window", "multiplies the parts of the numbers in m rows of row bytes of x by two numbers of w for each row.", "x, w *%s, m, row int")
	x, w, m, row, q, f := param("x"), param("w"), param("m"), param("row"), GP64(), s.vec()
	Label("row")
	s.pair(Mem{Base: w}, f)
	MOVQ(row, q)
	Label("next")
	v := s.vec()
	s.mul(Mem{Base: x}, f, v)
	s.load(v, Mem{Base: x})
	ADDQ(Imm(uint64(s.bytes)), x)
	SUBQ(Imm(uint64(s.bytes)), q)
	JNZ(LabelRef("next"))
	ADDQ(Imm(uint64(2*s.size)), w)
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

// square moves blocks of two by two complex numbers of 16 bytes: what lies across in src lies down in dst.
// There are outer times inner blocks; in bytes, sources are srcOuter and srcInner apart, and so on, and
// the two lines of a block srcLine and dstLine.
func square() {
	TEXT("squareAVX", NOSPLIT, "func(dst, src *float64, srcLine, dstLine, srcOuter, srcInner, dstOuter, dstInner, outer, inner int)")
	Doc("squareAVX transposes outer times inner blocks of two by two numbers of 16 bytes.")
	Pragma("noescape")
	dst, src, srcLine, dstLine := param("dst"), param("src"), param("srcLine"), param("dstLine")
	srcInner, dstInner, outer := param("srcInner"), param("dstInner"), param("outer")
	to, from, n := GP64(), GP64(), GP64()
	Label("outer")
	MOVQ(dst, to)
	MOVQ(src, from)
	Load(Param("inner"), n)
	Label("inner")
	a, b, x, y := YMM(), YMM(), YMM(), YMM()
	VMOVUPD(Mem{Base: from}, a)
	VMOVUPD(Mem{Base: from, Index: srcLine, Scale: 1}, b)
	VINSERTF128(Imm(1), b.AsX(), a, x)
	VPERM2F128(Imm(0x31), b, a, y)
	VMOVUPD(x, Mem{Base: to})
	VMOVUPD(y, Mem{Base: to, Index: dstLine, Scale: 1})
	ADDQ(srcInner, from)
	ADDQ(dstInner, to)
	DECQ(n)
	JNZ(LabelRef("inner"))
	ADDQ(param("srcOuter"), src)
	ADDQ(param("dstOuter"), dst)
	DECQ(outer)
	JNZ(LabelRef("outer"))
	VZEROUPPER()
	RET()
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.pass2()
		s.pass4()
		s.pass8()
		s.last(2)
		s.last(4)
		s.last(8)
		s.first()
		s.tangleLine()
		s.mirror()
		s.reals()
		s.spread()
		s.opposite()
		s.small(3)
		s.small(5)
		s.small(7)
		s.odd()
		s.tangle()
		s.rows()
		s.products()
		s.window()
		s.scale()
	}
	square()
	prefetch()
	Generate()
}
