package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotCols is how many columns a dot tile has.
const dotCols = 4

// dot writes the inner loop for m rows and four columns of operands that both
// lie along the depth, their rows some bytes apart: sums of products in the lanes of vectors. Meanwhile it asks
// for the four columns after them, which lie as far apart: a stream that is read
// once ends where a column does, before the processor has seen that it is one.
func dot(e *elem, m int, from *stored) {
	name := fmt.Sprintf("dot%dx%d%s%s", m, dotCols, from.prefix, e.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(depth int, a *%[1]s, aRow int, b *%[2]s, bCol int, c *%[1]s, ldc int, alpha %[1]s, flags int)", e.goType, from.goType))
	Doc(fmt.Sprintf("%s computes a tile of %d rows and %d columns.", name, m, dotCols))
	Pragma("noescape")
	acc := make([][]reg.VecVirtual, m)
	for i := range acc {
		for range dotCols {
			v := e.vec()
			e.zero(v)
			acc[i] = append(acc[i], v)
		}
	}
	depth, aRow, bCol := param("depth"), param("aRow"), param("bCol")
	rows := newRows(param("a"), aRow, m)
	cols := newRows(param("b"), bCol, dotCols)
	after := &rowsOf{base: [2]reg.GPVirtual{GP64()}, r1: cols.r1, r3: cols.r3}
	LEAQ(Mem{Base: cols.base[0], Index: bCol, Scale: dotCols}, after.base[0])
	step := func(load, loadCol func(m Mem, v Op)) {
		w := make([]reg.VecVirtual, dotCols)
		for j := range w {
			w[j] = e.vec()
			loadCol(cols.at(j), w[j])
		}
		for i := range acc {
			x := e.vec()
			load(rows.at(i), x)
			for j, v := range acc[i] {
				e.accumulate(w[j], x, v)
			}
		}
	}
	SUBQ(U32(uint32(e.lanes)), depth)
	JL(LabelRef("tail"))
	Label("whole")
	step(func(m Mem, v Op) { e.load(m, v) }, func(m Mem, v Op) { from.load(m, v) })
	for j := range dotCols {
		PREFETCHT1(after.at(j))
	}
	after.advance(U32(uint32(e.lanes * from.size)))
	rows.advance(U32(uint32(e.lanes * e.size)))
	cols.advance(U32(uint32(e.lanes * from.size)))
	SUBQ(U32(uint32(e.lanes)), depth)
	JGE(LabelRef("whole"))
	Label("tail")
	if e.masked {
		ADDQ(U32(uint32(e.lanes)), depth)
		JZ(LabelRef("done"))
		all := GP64()
		MOVQ(I64(-1), all)
		BZHIQ(depth, all, all)
		KMOVW(all.As32(), reg.K1)
		step(func(m Mem, v Op) { e.loadK(m, reg.K1, v) }, func(m Mem, v Op) { from.loadK(m, reg.K1, v) })
		Label("done")
	}
	c, ldc, flags := param("c"), param("ldc"), param("flags")
	e.bytes(ldc)
	alpha := alphaOf(e)
	TESTQ(U32(flagAdd), flags)
	JNZ(LabelRef("add"))
	for i := range acc {
		sum, at := total(e, acc[i]), Mem{Base: c}
		e.mul(narrowed(e, alpha), sum, sum)
		e.store(sum, at)
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
	Label("add")
	for i := range acc {
		sum, at := total(e, acc[i]), Mem{Base: c}
		old := sumVec(e)
		e.load(at, old)
		e.fma(narrowed(e, alpha), sum, old)
		e.store(old, at)
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

func alphaOf(e *elem) reg.VecVirtual {
	alpha := e.vec()
	addr, err := Param("alpha").Resolve()
	if err != nil {
		panic(err)
	}
	e.splat(addr.Addr, alpha)
	return alpha
}

// sumVec returns a register for four elements.
func sumVec(e *elem) reg.VecVirtual {
	if e.size == 4 {
		return XMM()
	}
	return YMM()
}

func narrowed(e *elem, v reg.VecVirtual) Op {
	if e.size == 4 {
		return v.(reg.Vec).AsX()
	}
	return v.(reg.Vec).AsY()
}

// total returns the sums over the lanes of four vectors as one vector.
func total(e *elem, v []reg.VecVirtual) reg.VecVirtual {
	fold := func(a, b reg.VecVirtual, lo, hi func(b, a, d Op)) reg.VecVirtual {
		l, h := interleave(e, a, b, lo, hi)
		e.add(l, h, h)
		return h
	}
	if e.size == 4 {
		s, t := fold(v[0], v[1], e.lo, e.hi), fold(v[2], v[3], e.lo, e.hi)
		u := fold(s, t, func(b, a, d Op) { VUNPCKLPD(b, a, d) }, func(b, a, d Op) { VUNPCKHPD(b, a, d) })
		return overLanes(e, u)
	}
	s, t := fold(v[0], v[1], e.lo, e.hi), fold(v[2], v[3], e.lo, e.hi) // pairs in each 128-bit lane
	sum := YMM()
	if e.lanes == 4 {
		// s has [0 1 | 0 1], t [2 3 | 2 3].
		l, h := YMM(), YMM()
		VPERM2F128(Imm(0x20), t, s, l)
		VPERM2F128(Imm(0x31), t, s, h)
		VADDPD(l, h, sum)
		return sum
	}
	l, h := ZMM(), ZMM()
	VSHUFF64X2(Imm(0x88), t, s, l) // s0 s2 t0 t2
	VSHUFF64X2(Imm(0xdd), t, s, h) // s1 s3 t1 t3
	VADDPD(l, h, h)
	even, odd := ZMM(), ZMM() // lanes 0 2 and 1 3
	VSHUFF64X2(Imm(0x88), h, h, even)
	VSHUFF64X2(Imm(0xdd), h, h, odd)
	VADDPD(even.AsY(), odd.AsY(), sum)
	return sum
}

// overLanes adds the 128-bit lanes of a vector of float32.
func overLanes(e *elem, u reg.VecVirtual) reg.VecVirtual {
	y := u.(reg.Vec).AsY()
	if e.lanes == 16 {
		top := YMM()
		VEXTRACTF64X4(Imm(1), u, top)
		VADDPS(y, top, top)
		y = top
	}
	sum := XMM()
	VEXTRACTF128(Imm(1), y, sum)
	VADDPS(y.(reg.Vec).AsX(), sum, sum)
	return sum
}
