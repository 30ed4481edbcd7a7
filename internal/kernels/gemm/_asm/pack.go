package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func packSignature(e *elem) string {
	return fmt.Sprintf("func(dst *%[1]s, width int, src *%[1]s, stride, n, depth int)", e.goType)
}

// copyRows copies rows of up to two vectors.
func copyRows(e *elem) {
	name := "copyRows" + e.suffix
	TEXT(name, NOSPLIT, packSignature(e))
	Doc(fmt.Sprintf("%s packs a panel of n ≤ %d elements that are adjacent across.", name, 2*e.lanes))
	Pragma("noescape")
	dst, width, src, stride, depth := param("dst"), param("width"), param("src"), param("stride"), param("depth")
	e.bytes(width)
	e.bytes(stride)
	masks := masksOf(e, param("n"))
	Label("row")
	for j, mask := range masks {
		v := e.vec()
		at := j * e.lanes * e.size
		e.loadK(Mem{Base: src, Disp: at}, mask, v)
		e.storeK(v, mask, Mem{Base: dst, Disp: at})
	}
	ADDQ(stride, src)
	ADDQ(width, dst)
	DECQ(depth)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// copyPanels copies rows of any length into panels side by side.
func copyPanels(e *elem) {
	name := "copyPanels" + e.suffix
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *%[1]s, panel int, src *%[1]s, stride, n, depth int)", e.goType))
	Doc(fmt.Sprintf("%s packs n elements that are adjacent across into panels of width %d, the last filled up with zeros.", name, 2*e.lanes))
	Pragma("noescape")
	dst, panel, src, stride, depth := param("dst"), param("panel"), param("src"), param("stride"), param("depth")
	e.bytes(panel)
	e.bytes(stride)
	n, rest := param("n"), GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(2*e.lanes-1)), rest)
	restMasks := masksOf(e, rest)
	full := n
	SHRQ(Imm(uint64(log2(2*e.lanes))), full)
	s, d, count := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(full, count)
	TESTQ(count, count)
	JZ(LabelRef("rest"))
	Label("panel")
	vectors := []reg.VecVirtual{e.vec(), e.vec()}
	for j, v := range vectors {
		at := j * e.lanes * e.size
		e.load(Mem{Base: s, Disp: at}, v)
		e.store(v, Mem{Base: d, Disp: at})
		if at%line == 0 {
			PREFETCHT0(Mem{Base: s, Index: stride, Scale: 8, Disp: at})
		}
	}
	ADDQ(Imm(uint64(2*e.lanes*e.size)), s)
	ADDQ(panel, d)
	DECQ(count)
	JNZ(LabelRef("panel"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	for j, v := range vectors {
		at := j * e.lanes * e.size
		e.loadK(Mem{Base: s, Disp: at}, restMasks[j], v)
		e.store(v, Mem{Base: d, Disp: at})
	}
	Label("next")
	ADDQ(stride, src)
	ADDQ(Imm(uint64(2*e.lanes*e.size)), dst)
	DECQ(depth)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// masksOf returns masks of n columns of two vectors, at most as many as these have. It leaves n as it is.
func masksOf(e *elem, n reg.GPVirtual) [2]Op {
	if e.masked {
		all := GP64()
		MOVQ(I64(-1), all)
		BZHIQ(n, all, all)
		KMOVW(all.As32(), reg.K1)
		SHRQ(Imm(uint64(e.lanes)), all)
		KMOVW(all.As32(), reg.K2)
		return [2]Op{reg.K1, reg.K2}
	}
	table := maskTable(e)
	first, second, none := GP64(), GP64(), GP64()
	XORQ(none, none)
	MOVQ(n, second)
	SUBQ(Imm(uint64(e.lanes)), second)
	CMOVQLT(none, second)
	MOVQ(n, first)
	SUBQ(second, first)
	return [2]Op{lanesMask(e, table, first), lanesMask(e, table, second)}
}

// copyRow copies rows of up to a vector, and zeros after them as far as that goes.
func copyRow(e *elem) {
	name := "copyRow" + e.suffix
	TEXT(name, NOSPLIT, packSignature(e))
	Doc(fmt.Sprintf("%s packs a panel of n ≤ %d elements that are adjacent across; behind each row it writes zeros up to so many.", name, e.lanes))
	Pragma("noescape")
	dst, width, src, stride, depth := param("dst"), param("width"), param("src"), param("stride"), param("depth")
	e.bytes(width)
	e.bytes(stride)
	mask := lanesMask(e, maskTable(e), param("n"))
	Label("row")
	v := e.vec()
	e.loadK(Mem{Base: src}, mask, v)
	e.store(v, Mem{Base: dst})
	ADDQ(stride, src)
	ADDQ(width, dst)
	DECQ(depth)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func log2(n int) int { return bits.Len(uint(n)) - 1 }

// rowLoads reads one vector from each of a group of rows; rows that do not
// exist repeat the last one.
func rowLoads(e *elem, src, stride, n reg.GPVirtual, load func(m Mem, v Op)) []reg.VecVirtual {
	out := make([]reg.VecVirtual, e.lanes)
	p, next := GP64(), GP64()
	MOVQ(src, p)
	for i := range out {
		if i > 0 {
			LEAQ(Mem{Base: p, Index: stride, Scale: 1}, next)
			CMPQ(n, Imm(uint64(i)))
			CMOVQGT(next, p)
		}
		out[i] = e.vec()
		load(Mem{Base: p}, out[i])
	}
	return out
}

// interleave replaces pairs of vectors by their low and high interleaved halves.
func interleave(e *elem, a, b reg.VecVirtual, lo, hi func(b, a, d Op)) (l, h reg.VecVirtual) {
	l, h = e.vec(), e.vec()
	lo(b, a, l)
	hi(b, a, h)
	return l, h
}

// columns transposes a square block within 128-bit lanes: out[c][g] has in lane
// L the elements of row group g in column L·len(out)+c.
func columns(e *elem, rows []reg.VecVirtual) [][]reg.VecVirtual {
	per := 16 / e.size
	out := make([][]reg.VecVirtual, per)
	for g := 0; g < len(rows); g += per {
		l, h := interleave(e, rows[g], rows[g+1], e.lo, e.hi)
		if per == 2 {
			out[0], out[1] = append(out[0], l), append(out[1], h)
			continue
		}
		l2, h2 := interleave(e, rows[g+2], rows[g+3], e.lo, e.hi)
		lo := func(b, a, d Op) { VUNPCKLPD(b, a, d) }
		hi := func(b, a, d Op) { VUNPCKHPD(b, a, d) }
		c0, c1 := interleave(e, l, l2, lo, hi)
		c2, c3 := interleave(e, h, h2, lo, hi)
		for c, v := range []reg.VecVirtual{c0, c1, c2, c3} {
			out[c] = append(out[c], v)
		}
	}
	return out
}

// transpose512 packs rows that lie along the depth, in square blocks.
func transpose512(e *elem) {
	name := "transpose" + e.suffix
	TEXT(name, NOSPLIT, packSignature(e))
	Doc(fmt.Sprintf("%s packs a panel of n elements that are adjacent along the depth.", name))
	Pragma("noescape")
	width, stride := param("width"), param("stride")
	e.bytes(width)
	e.bytes(stride)
	transposeBlocks(e, width, stride)
}

// prefetchStep returns how many bytes ahead of a row of n elements is prefetched as it is written: what adjoins its end, as
// the next row of an image of a channel does, and not farther than some cache lines. Rows are written in turn, often more of
// them than a processor follows by itself (Intel's follow 32). It is 0 where rows are so far apart that the lines of all of
// them compete for the same places of the cache.
func prefetchStep(e *elem, n, width reg.GPVirtual) reg.GPVirtual {
	const most, apart = 256, 2048
	ahead, bound := GP64(), GP64()
	MOVQ(n, ahead)
	e.bytes(ahead)
	MOVQ(U32(most), bound)
	CMPQ(ahead, bound)
	CMOVQGT(bound, ahead)
	XORQ(bound, bound)
	TESTQ(U32(apart-1), width)
	CMOVQEQ(bound, ahead)
	return ahead
}

// transposeBlocks writes the rest of transpose512, with distances in bytes.
func transposeBlocks(e *elem, width, stride reg.GPVirtual) {
	per := 16 / e.size
	n := param("n")
	src0, dst0 := param("src"), param("dst")
	ahead := prefetchStep(e, n, width)
	Label("group")
	here, all := GP64(), GP64()
	MOVQ(U32(uint32(e.lanes)), here)
	CMPQ(n, here)
	CMOVQLT(n, here) // BZHI looks at eight bits only
	MOVQ(I64(-1), all)
	BZHIQ(here, all, all)
	KMOVW(all.As32(), reg.K2)
	src, dst, depth := GP64(), GP64(), param("depth")
	MOVQ(src0, src)
	MOVQ(dst0, dst)
	Label("block")
	some, left := GP64(), GP64()
	MOVQ(U32(uint32(e.lanes)), left)
	CMPQ(depth, left)
	CMOVQLT(depth, left)
	MOVQ(I64(-1), some)
	BZHIQ(left, some, some)
	KMOVW(some.As32(), reg.K1)
	rows := rowLoads(e, src, stride, n, func(m Mem, v Op) { e.loadK(m, reg.K1, v) })
	cols := columns(e, rows)
	out := make([]reg.VecVirtual, e.lanes)
	for c, u := range cols {
		v := []reg.VecVirtual{ZMM(), ZMM(), ZMM(), ZMM()}
		VSHUFF32X4(Imm(0x88), u[1], u[0], v[0])
		VSHUFF32X4(Imm(0xdd), u[1], u[0], v[1])
		VSHUFF32X4(Imm(0x88), u[3], u[2], v[2])
		VSHUFF32X4(Imm(0xdd), u[3], u[2], v[3])
		for q := range 4 {
			lane := []int{0, 2, 1, 3}[q]
			w := ZMM()
			VSHUFF32X4(Imm([]uint64{0x88, 0xdd}[q%2]), v[2+q/2], v[q/2], w)
			out[lane*per+c] = w
		}
	}
	for p, v := range out {
		e.storeK(v, reg.K2, Mem{Base: dst})
		PREFETCHT0(Mem{Base: dst, Index: ahead, Scale: 1})
		ADDQ(width, dst)
		if p+1 < len(out) {
			CMPQ(depth, Imm(uint64(p+1)))
			JLE(LabelRef("next"))
		}
	}
	ADDQ(Imm(uint64(e.lanes*e.size)), src)
	SUBQ(Imm(uint64(e.lanes)), depth)
	JG(LabelRef("block"))
	Label("next")
	for range e.lanes {
		ADDQ(stride, src0)
	}
	ADDQ(Imm(uint64(e.lanes*e.size)), dst0)
	SUBQ(Imm(uint64(e.lanes)), n)
	JG(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// transpose256 does whole blocks of depth; the rest is left to Go.
func transpose256(e *elem) {
	name := "transpose" + e.suffix
	TEXT(name, NOSPLIT, packSignature(e))
	Doc(fmt.Sprintf("%s packs a panel of elements that are adjacent along the depth, which is a multiple of %d.", name, e.lanes))
	Pragma("noescape")
	width, stride := param("width"), param("stride")
	e.bytes(width)
	e.bytes(stride)
	per := 16 / e.size
	n := param("n")
	src0, dst0 := param("src"), param("dst")
	table := maskTable(e)
	group := func(name string, put func(v reg.VecVirtual, dst reg.GPVirtual)) {
		src, dst, depth := GP64(), GP64(), param("depth")
		MOVQ(src0, src)
		MOVQ(dst0, dst)
		Label(name)
		rows := rowLoads(e, src, stride, n, func(m Mem, v Op) { e.load(m, v) })
		cols := columns(e, rows)
		out := make([]reg.VecVirtual, e.lanes)
		for c, u := range cols {
			lo, hi := YMM(), YMM()
			VPERM2F128(Imm(0x20), u[1], u[0], lo)
			VPERM2F128(Imm(0x31), u[1], u[0], hi)
			out[c], out[per+c] = lo, hi
		}
		for _, v := range out {
			put(v, dst)
			ADDQ(width, dst)
		}
		ADDQ(Imm(uint64(e.lanes*e.size)), src)
		SUBQ(Imm(uint64(e.lanes)), depth)
		JG(LabelRef(name))
	}
	Label("group")
	CMPQ(n, Imm(uint64(e.lanes)))
	JL(LabelRef("masked"))
	group("whole", func(v reg.VecVirtual, dst reg.GPVirtual) { e.store(v, Mem{Base: dst}) })
	for range e.lanes {
		ADDQ(stride, src0)
	}
	ADDQ(Imm(uint64(e.lanes*e.size)), dst0)
	SUBQ(Imm(uint64(e.lanes)), n)
	JG(LabelRef("group"))
	JMP(LabelRef("done"))
	Label("masked") // which stores take much longer with, on AMD's processors
	here := GP64()
	MOVQ(n, here)
	mask := lanesMask(e, table, here)
	group("part", func(v reg.VecVirtual, dst reg.GPVirtual) { e.storeK(v, mask, Mem{Base: dst}) })
	Label("done")
	VZEROUPPER()
	RET()
}

// maskTable has as many elements whose bits are set as a vector has, and after them as many that are 0.
func maskTable(e *elem) Mem {
	if table, ok := maskTables[e]; ok {
		return table
	}
	table := GLOBL("mask"+e.suffix, RODATA|NOPTR)
	for i := range 2 * e.lanes {
		set := 0
		if i < e.lanes {
			set = -1
		}
		if e.size == 4 {
			DATA(i*4, I32(int32(set)))
		} else {
			DATA(i*8, I64(int64(set)))
		}
	}
	maskTables[e] = table
	return table
}

// maskTables are those that have been written.
var maskTables = map[*elem]Mem{}

// lanesMask returns the mask of the first n lanes, which begins n lanes before the middle of the table. It changes n.
func lanesMask(e *elem, table Mem, n reg.GPVirtual) reg.VecVirtual {
	mask, base := YMM(), GP64()
	NEGQ(n)
	LEAQ(table, base)
	VMOVUPS(Mem{Base: base, Index: n, Scale: uint8(e.size), Disp: e.lanes * e.size}, mask)
	return mask
}
