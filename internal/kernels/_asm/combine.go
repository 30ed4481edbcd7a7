package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A way combines vectors: out becomes that of x, an element of dst, and y.
type way struct {
	name, what string
	emit       func(x, y, out reg.VecVirtual)
	rows       bool // there is a loop over rows, too
}

func plain(f func(...Op)) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) { f(y, x, out) }
}

// floats is max or min of floats: of zeros the greater or smaller by sign, and NaN if either is. The
// instruction gives y for equal elements and NaN.
func floats(choose, compare, both, add func(...Op), blend func(mask, y, x, out Op)) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) {
		test, special := YMM(), YMM()
		choose(y, x, out)
		compare(Imm(0), y, x, test) // equal
		both(y, x, special)
		blend(test, special, out, out)
		compare(Imm(3), y, x, test) // unordered
		add(y, x, special)
		blend(test, special, out, out)
	}
}

// quads is max or min of 64-bit integers, for which there are comparisons alone.
func quads(least bool) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) {
		above := YMM()
		VPCMPGTQ(y, x, above) // x > y
		if least {
			x, y = y, x
		}
		VBLENDVPD(above, x, y, out)
	}
}

func ways() []way {
	return []way{
		{"addBytes", "sums of bytes", plain(VPADDB), false},
		{"addWords", "sums of 16-bit integers", plain(VPADDW), false},
		{"addLongs", "sums of 32-bit integers", plain(VPADDD), true},
		{"addQuads", "sums of 64-bit integers", plain(VPADDQ), true},
		{"addSingles", "sums of float32s", plain(VADDPS), true},
		{"addDoubles", "sums of float64s", plain(VADDPD), true},
		{"maxUnsigned", "maxima of bytes without a sign", plain(VPMAXUB), false},
		{"minUnsigned", "minima of bytes without a sign", plain(VPMINUB), false},
		{"maxBytes", "maxima of bytes", plain(VPMAXSB), false},
		{"minBytes", "minima of bytes", plain(VPMINSB), false},
		{"maxWords", "maxima of 16-bit integers", plain(VPMAXSW), false},
		{"minWords", "minima of 16-bit integers", plain(VPMINSW), false},
		{"maxLongs", "maxima of 32-bit integers", plain(VPMAXSD), false},
		{"minLongs", "minima of 32-bit integers", plain(VPMINSD), false},
		{"maxQuads", "maxima of 64-bit integers", quads(false), false},
		{"minQuads", "minima of 64-bit integers", quads(true), false},
		{"maxSingles", "maxima of float32s", floats(VMAXPS, VCMPPS, VANDPS, VADDPS, VBLENDVPS), false},
		{"minSingles", "minima of float32s", floats(VMINPS, VCMPPS, VORPS, VADDPS, VBLENDVPS), false},
		{"maxDoubles", "maxima of float64s", floats(VMAXPD, VCMPPD, VANDPD, VADDPD, VBLENDVPD), false},
		{"minDoubles", "minima of float64s", floats(VMINPD, VCMPPD, VORPD, VADDPD, VBLENDVPD), false},
	}
}

// combine writes the loop of a way.
func combine(w way) {
	TEXT(w.name+"AVX2", NOSPLIT, "func(dst, src *byte, n int)")
	Doc(fmt.Sprintf("%sAVX2 sets n bytes, a multiple of 4, to %s.", w.name, w.what+" of dst and src"))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	w.line(dst.(reg.GPVirtual), src.(reg.GPVirtual), n.(reg.GPVirtual))
	VZEROUPPER()
	RET()
}

// rows writes the loop of a way over rows that an index selects, which ends before an index that is out of
// range.
func rows(w way) {
	name := w.name + "RowsAVX2"
	TEXT(name, NOSPLIT, "func(dst, src *byte, index *int64, size, n, bytes, stride, step int) int")
	Doc(fmt.Sprintf("%s sets bytes bytes, a multiple of 4, of row index[j] of dst to %s of them and of row j of src, for each j below n from 0 on, until index[j] is not below size or below zero. Rows of dst are stride bytes apart, those of src step. It returns how many were done.", name, w.what))
	Pragma("noescape")
	dst, src, index := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("index"), GP64())
	bound, n := Load(Param("size"), GP64()), Load(Param("n"), GP64())
	bytes, stride, step := Load(Param("bytes"), GP64()), Load(Param("stride"), GP64()), Load(Param("step"), GP64())
	at := GP64()
	XORQ(at, at)
	Label("row")
	CMPQ(at, n)
	JGE(LabelRef("done"))
	to, from, left := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: index.(reg.Register), Index: at, Scale: 8}, to)
	CMPQ(to, bound)
	JAE(LabelRef("done"))
	IMULQ(stride, to)
	ADDQ(dst, to)
	MOVQ(src, from)
	MOVQ(bytes, left)
	w.line(to, from, left)
	ADDQ(step, src)
	INCQ(at)
	JMP(LabelRef("row"))
	Label("done")
	Store(at, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// line combines n bytes, a multiple of 4, and changes all three registers: vectors, then their halves, quarters
// and eighths.
func (w way) line(dst, src, n reg.GPVirtual) {
	SUBQ(Imm(32), n)
	JLT(LabelRef("rest"))
	Label("vector")
	w.part(dst, src, VMOVDQU, func(v reg.VecVirtual) Op { return v })
	ADDQ(Imm(32), dst)
	ADDQ(Imm(32), src)
	SUBQ(Imm(32), n)
	JGE(LabelRef("vector"))
	Label("rest")
	for _, p := range []struct {
		bytes int
		move  func(from, to Op)
	}{{16, VMOVDQU}, {8, VMOVQ}, {4, VMOVD}} {
		next := fmt.Sprintf("below%d", p.bytes)
		TESTQ(U32(p.bytes), n) // the low bits are those of n before vectors were taken off
		JEQ(LabelRef(next))
		w.part(dst, src, p.move, func(v reg.VecVirtual) Op { return v.AsX() })
		if p.bytes > 4 {
			ADDQ(Imm(uint64(p.bytes)), dst)
			ADDQ(Imm(uint64(p.bytes)), src)
		}
		Label(next)
	}
}

// part combines what one move takes.
func (w way) part(dst, src reg.GPVirtual, move func(from, to Op), narrow func(reg.VecVirtual) Op) {
	x, y, out := YMM(), YMM(), YMM()
	move(Mem{Base: dst}, narrow(x))
	move(Mem{Base: src}, narrow(y))
	w.emit(x, y, out)
	move(narrow(out), Mem{Base: dst})
}
