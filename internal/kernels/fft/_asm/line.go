package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes returns how many complex numbers a vector holds.
func (s *isa) lanes() int { return s.bytes / s.size / 2 }

// turns are the constants of transforms of 4 and 8, in the order in which they lie behind each other,
// 64 bytes for each: what turns numbers whose parts have changed places by -i or i, that times √½, and √½.
type turns struct{ turn, half, root Op }

// turns returns the constants at sign that a radix needs; where registers are few they stay in memory.
func (s *isa) turns(radix int) (c turns) {
	if radix == 2 {
		return c
	}
	sign := param("sign")
	at := func(i int) Op {
		m := Mem{Base: sign, Disp: 64 * i}
		if s.bytes < 64 {
			return m
		}
		return s.loaded(m)
	}
	if c.turn = at(1); radix == 8 {
		c.half, c.root = at(2), at(3)
	}
	return c
}

// beside returns x plus and minus y times f; x is spent.
func (s *isa) beside(x, y reg.VecVirtual, f Op) (sum, diff reg.VecVirtual) {
	sum = s.vec()
	s.load(x, sum)
	s.muladd(f, y, sum)
	s.mulsub(f, y, x)
	return sum, x
}

func (s *isa) swapped(x reg.VecVirtual) reg.VecVirtual {
	s.permute(Imm(s.swap), x, x)
	return x
}

// dft calls out for each number of the transform of 2, 4 or 8 vectors, which are spent.
func (s *isa) dft(x []reg.VecVirtual, c turns, out func(k int, y reg.VecVirtual)) {
	n := len(x)
	diffs := make([]reg.VecVirtual, n/2)
	for j := range n / 2 {
		diffs[j] = s.minus(x[j], x[j+n/2])
		s.add(x[j+n/2], x[j], x[j])
	}
	if n == 2 {
		out(0, x[0])
		out(1, diffs[0])
		return
	}
	s.dft(x[:n/2], c, func(k int, y reg.VecVirtual) { out(2*k, y) })
	if n == 4 {
		y1, y3 := s.beside(diffs[0], s.swapped(diffs[1]), c.turn)
		out(1, y1)
		out(3, y3)
		return
	}
	a, b := s.beside(diffs[0], s.swapped(diffs[2]), c.turn)
	for j, f := range []func(ops ...Op){1: s.muladd, 3: s.muladdback} {
		if f != nil {
			t := s.vec()
			s.permute(Imm(s.swap), diffs[j], t)
			f(c.turn, t, diffs[j])
		}
	}
	v := s.minus(diffs[1], diffs[3])
	s.add(diffs[3], diffs[1], diffs[1])
	y1, y5 := s.beside(a, diffs[1], c.root)
	out(1, y1)
	out(5, y5)
	y3, y7 := s.beside(b, s.swapped(v), c.half)
	out(3, y3)
	out(7, y7)
}

// parts returns where n parts that are part bytes apart have the vector at base.
func parts(base, part reg.GPVirtual, n int) []Mem {
	m := make([]Mem, n)
	multiple := map[int]reg.GPVirtual{1: part}
	for j := range n {
		scale := 1
		odd := j
		for odd > 1 && odd%2 == 0 {
			odd, scale = odd/2, 2*scale
		}
		if m[j] = (Mem{Base: base}); j == 0 {
			continue
		}
		if multiple[odd] == nil {
			r := GP64()
			if odd == 7 {
				LEAQ(Mem{Base: multiple[3], Index: part, Scale: 4}, r)
			} else {
				LEAQ(Mem{Base: part, Index: part, Scale: uint8(odd - 1)}, r)
			}
			multiple[odd] = r
		}
		m[j].Index, m[j].Scale = multiple[odd], uint8(scale)
	}
	return m
}

func (s *isa) loadedAll(m []Mem) []reg.VecVirtual {
	v := make([]reg.VecVirtual, len(m))
	for i := range v {
		v[i] = s.loaded(m[i])
	}
	return v
}

// pass8 is like pass4.
func (s *isa) pass8() {
	const radix = 8
	s.text("pass8", "does a pass of radix 8 over m blocks of row bytes.", "dst, src, tw, sign *%s, m, row int")
	dst, src, tw, m, row := param("dst"), param("src"), param("tw"), param("m"), param("row")
	c := s.turns(radix)
	part := GP64()
	MOVQ(m, part)
	IMULQ(row, part)
	from, to := parts(src, part, radix), parts(dst, row, radix)
	skip := to[radix-1].Index.(reg.GPVirtual)
	few := s.bytes < 64
	var w [radix]factor
	get := func(k int) { w[k] = s.factor(Mem{Base: tw, Disp: 2 * (k - 1) * s.size}) }
	s.blocks(dst, src, tw, m, row, skip, radix-1, func() {
		for k := 1; k < radix && !few; k++ {
			get(k)
		}
	}, func() {
		s.dft(s.loadedAll(from), c, func(k int, y reg.VecVirtual) {
			if few && k > 0 {
				get(k)
			}
			if k > 0 {
				y = s.times(y, w[k])
			}
			s.load(y, to[k])
		})
	})
}

// last does the last pass of a transform, whose factors are 1.
func (s *isa) last(radix int) {
	s.text(fmt.Sprint("last", radix), fmt.Sprintf("does a pass of radix %d over one block of row bytes, without factors.", radix), "dst, src, sign *%s, row int")
	dst, src, row := param("dst"), param("src"), param("row")
	c := s.turns(radix)
	from, to := parts(src, row, radix), parts(dst, row, radix)
	left := GP64()
	MOVQ(row, left)
	Label("next")
	s.dft(s.loadedAll(from), c, func(k int, y reg.VecVirtual) { s.load(y, to[k]) })
	ADDQ(Imm(uint64(s.bytes)), src)
	ADDQ(Imm(uint64(s.bytes)), dst)
	SUBQ(Imm(uint64(s.bytes)), left)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// first does the first pass of a transform of one line, of as large a radix as a vector has numbers:
// each block takes a vector of each part, transforms them, and writes as many numbers for each lane one
// lane after the other. So the next passes have whole vectors whose factors are the same.
func (s *isa) first() {
	n := s.lanes()
	s.text("first", "does the first pass of a line over count vectors of each of its parts, which are part bytes apart, as are the factors of results.",
		"dst, src, tw, sign *%s, part, count int")
	dst, src, tw, part, count := param("dst"), param("src"), param("tw"), param("part"), param("count")
	c := s.turns(n)
	from, factors := parts(src, part, n), parts(tw, part, n-1)
	Label("next")
	y := make([]reg.VecVirtual, n)
	s.dft(s.loadedAll(from), c, func(k int, v reg.VecVirtual) {
		if k > 0 {
			v = s.times(v, s.factors(factors[k-1]))
		}
		y[k] = v
	})
	for p, v := range s.transposed(y) {
		s.load(v, Mem{Base: dst, Disp: p * s.bytes})
	}
	ADDQ(Imm(uint64(s.bytes)), src)
	ADDQ(Imm(uint64(s.bytes)), tw)
	ADDQ(U32(uint32(n*s.bytes)), dst)
	DECQ(count)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// factors returns the parts of the numbers at m, each in both places. Loads of 8 bytes repeat the first of
// two, so that they begin at the second for the imaginary parts.
func (s *isa) factors(m Mem) factor {
	f := factor{s.vec(), s.vec()}
	if s.size == 4 {
		VMOVSLDUP(m, f.re)
		VMOVSHDUP(m, f.im)
		return f
	}
	VMOVDDUP(m, f.re)
	VMOVDDUP(m.Offset(8), f.im)
	return f
}

// transposed returns vectors that have the first numbers of all of y, and so on.
func (s *isa) transposed(y []reg.VecVirtual) []reg.VecVirtual {
	two := func(f func(ops ...Op), a, b reg.VecVirtual) reg.VecVirtual {
		v := s.vec()
		f(b, a, v)
		return v
	}
	if s.size == 8 {
		return s.quarters(y)
	}
	n := len(y)
	even, odd := make([]reg.VecVirtual, n/2), make([]reg.VecVirtual, n/2)
	for i := range even {
		even[i] = two(VUNPCKLPD, y[2*i], y[2*i+1])
		odd[i] = two(VUNPCKHPD, y[2*i], y[2*i+1])
	}
	even, odd = s.quarters(even), s.quarters(odd)
	rows := make([]reg.VecVirtual, 0, n)
	for i := range even {
		rows = append(rows, even[i], odd[i])
	}
	return rows
}

// quarters transposes vectors of as many parts of 16 bytes.
func (s *isa) quarters(y []reg.VecVirtual) []reg.VecVirtual {
	mix := func(i uint64, a, b reg.VecVirtual) reg.VecVirtual {
		v := s.vec()
		if len(y) == 2 {
			VPERM2F128(Imm(i), b, a, v)
		} else {
			VSHUFF64X2(Imm(i), b, a, v)
		}
		return v
	}
	if len(y) == 2 {
		return []reg.VecVirtual{mix(0x20, y[0], y[1]), mix(0x31, y[0], y[1])}
	}
	a, b := mix(0x44, y[0], y[1]), mix(0xee, y[0], y[1])
	c, d := mix(0x44, y[2], y[3]), mix(0xee, y[2], y[3])
	return []reg.VecVirtual{
		mix(0x88, a, c), mix(0xdd, a, c),
		mix(0x88, b, d), mix(0xdd, b, d),
	}
}

// reversed returns the numbers at m, the last first.
func (s *isa) reversed(m Op) reg.VecVirtual {
	v := s.vec()
	switch {
	case s.bytes == 64 && s.size == 4:
		VSHUFF64X2(Imm(0x1b), m, m, v)
		VPERMILPD(Imm(0x55), v, v)
	case s.bytes == 64:
		VSHUFF64X2(Imm(0x1b), m, m, v)
	case s.size == 4:
		VPERMPD(Imm(0x1b), m, v)
	default:
		VPERM2F128(Imm(1), m, m, v)
	}
	return v
}

// tangleLine is tangle along one line.
func (s *isa) tangleLine() {
	s.text("tangleLine", "sets numbers of up and, conjugated and backwards, of down to h·(a+b̄) ± tw·(a-b̄), in count vectors, of which those of down and b are one before the other; conj has the sign bits of imaginary parts.",
		"up, down, a, b, tw, conj, h *%s, count int")
	up, down, a, b, tw, count := param("up"), param("down"), param("a"), param("b"), param("tw"), param("count")
	conj, h := s.loaded(Mem{Base: param("conj")}), s.vec()
	s.broadcast(Mem{Base: param("h")}, h)
	Label("next")
	x, y := s.loaded(Mem{Base: a}), s.reversed(s.loaded(Mem{Base: b}))
	s.xor(conj, y, y)
	sum, diff := s.plus(x, y), s.times(s.minus(x, y), s.factors(Mem{Base: tw}))
	s.mul(h, sum, sum)
	out := s.minus(sum, diff)
	s.add(diff, sum, sum)
	s.xor(conj, out, out)
	s.load(sum, Mem{Base: up})
	s.load(s.reversed(out), Mem{Base: down})
	for _, r := range []reg.GPVirtual{up, a, tw} {
		ADDQ(Imm(uint64(s.bytes)), r)
	}
	SUBQ(Imm(uint64(s.bytes)), down)
	SUBQ(Imm(uint64(s.bytes)), b)
	DECQ(count)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// mirror writes conjugates backwards.
func (s *isa) mirror() {
	s.text("mirror", "sets count vectors of dst to the conjugates of those of src backwards, of which one is before the other; conj has the sign bits of imaginary parts.",
		"dst, src, conj *%s, count int")
	dst, src, count := param("dst"), param("src"), param("count")
	conj := s.loaded(Mem{Base: param("conj")})
	Label("next")
	v := s.reversed(s.loaded(Mem{Base: src}))
	s.xor(conj, v, v)
	s.load(v, Mem{Base: dst})
	ADDQ(Imm(uint64(s.bytes)), dst)
	SUBQ(Imm(uint64(s.bytes)), src)
	DECQ(count)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// reals multiplies complex numbers by real ones.
func (s *isa) reals() {
	s.text("reals", "sets count vectors of dst to those of w times half as many real numbers of x.", "dst, x, w *%s, count int")
	dst, x, w, count := param("dst"), param("x"), param("w"), param("count")
	Label("next")
	v := s.twice(Mem{Base: x})
	s.mul(Mem{Base: w}, v, v)
	s.load(v, Mem{Base: dst})
	ADDQ(Imm(uint64(s.bytes/2)), x)
	ADDQ(Imm(uint64(s.bytes)), dst)
	ADDQ(Imm(uint64(s.bytes)), w)
	DECQ(count)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// twice returns each of the real numbers at m in both places of a complex one.
func (s *isa) twice(m Mem) reg.VecVirtual {
	v := s.vec()
	switch {
	case s.size == 4:
		VPMOVZXDQ(m, v)
		VMOVSLDUP(v, v)
	case s.bytes == 64:
		VBROADCASTF64X4(m, v)
		VSHUFF64X2(Imm(0x50), v, v, v)
		VPERMILPD(Imm(0xcc), v, v)
	default:
		VBROADCASTF128(m, v)
		VPERMILPD(Imm(0xc), v, v)
	}
	return v
}

// spread writes the real numbers in the second halves of rows over the rows, as complex ones.
func (s *isa) spread() {
	s.text("spread", "makes the second halves of m rows of 128 bytes the real parts of the whole.", "x *%s, m int")
	const row = 128
	x, m, zero := param("x"), param("m"), s.vec()
	s.xor(zero, zero, zero)
	Label("row")
	v := make([]reg.VecVirtual, row/s.bytes)
	for i := range v {
		from := Mem{Base: x, Disp: row/2 + i*s.bytes/2}
		if v[i] = s.vec(); s.size == 4 {
			VPMOVZXDQ(from, v[i])
		} else {
			v[i] = s.twice(from)
			VUNPCKLPD(zero, v[i], v[i])
		}
	}
	for i := range v {
		s.load(v[i], Mem{Base: x, Disp: i * s.bytes})
	}
	ADDQ(U32(row), x)
	DECQ(m)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// opposite writes conjugates of rows, from the last to the first.
func (s *isa) opposite() {
	s.text("opposite", "sets m rows of 128 bytes of dst to the conjugates of those of src, of which one is before the other; conj has the sign bits of imaginary parts.", "dst, src, conj *%s, m int")
	const row = 128
	dst, src, m := param("dst"), param("src"), param("m")
	conj := s.loaded(Mem{Base: param("conj")})
	Label("row")
	for i := range row / s.bytes {
		v := s.loaded(Mem{Base: src, Disp: i * s.bytes})
		s.xor(conj, v, v)
		s.load(v, Mem{Base: dst, Disp: i * s.bytes})
	}
	ADDQ(U32(row), dst)
	SUBQ(U32(row), src)
	DECQ(m)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// prefetch brings rows to the second cache.
func prefetch() {
	TEXT("prefetchRows", NOSPLIT, "func(p *byte, stride, bytes, rows int)")
	Doc("prefetchRows brings rows of so many bytes, which are stride bytes apart, to the second cache.")
	Pragma("noescape")
	p, stride, bytes, rows, at := param("p"), param("stride"), param("bytes"), param("rows"), GP64()
	Label("row")
	XORQ(at, at)
	Label("next")
	PREFETCHT1(Mem{Base: p, Index: at, Scale: 1})
	ADDQ(Imm(64), at)
	CMPQ(at, bytes)
	JLT(LabelRef("next"))
	ADDQ(stride, p)
	DECQ(rows)
	JNZ(LabelRef("row"))
	RET()
}
