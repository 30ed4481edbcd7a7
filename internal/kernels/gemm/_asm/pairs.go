package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const pairsSignature = "func(dst *float32, width int, src *uint16, stride, n, depth int)"

// zip writes two vectors of 32-bit pairs of the elements of two rows.
type zip struct{ low, high reg.VecVirtual }

var zipTable Mem

// newZip loads which of the 64 elements of two rows come one after another.
func newZip() *zip {
	if zipTable.Symbol.Name == "" {
		zipTable = GLOBL("zip", RODATA|NOPTR)
		for i := range 64 {
			DATA(2*i, U16(uint16(i/2+i%2*32)))
		}
	}
	at, z := GP64(), &zip{ZMM(), ZMM()}
	LEAQ(zipTable, at)
	VMOVDQU16(Mem{Base: at}, z.low)
	VMOVDQU16(Mem{Base: at, Disp: 64}, z.high)
	return z
}

// pairs returns the words of 32 elements of each of two rows.
func (z *zip) pairs(even, odd reg.VecVirtual) [2]reg.VecVirtual {
	low, high := ZMM(), ZMM()
	VMOVDQU64(z.low, low)
	VMOVDQU64(z.high, high)
	VPERMI2W(odd, even, low)
	VPERMI2W(odd, even, high)
	return [2]reg.VecVirtual{low, high}
}

// pairMasks sets K1 and K2 to the first n words of two vectors, and K3 to as many
// elements of one.
func pairMasks(n Op) {
	all := GP64()
	MOVQ(I64(-1), all)
	BZHIQ(n, all, all)
	KMOVD(all.As32(), reg.K3)
	KMOVW(all.As32(), reg.K1)
	SHRQ(Imm(16), all)
	KMOVW(all.As32(), reg.K2)
}

// pairRows packs rows of up to two vectors of words.
func pairRows() {
	name := "pairRows" + pairsSuffix
	TEXT(name, NOSPLIT, pairsSignature)
	Doc(fmt.Sprintf("%s packs a panel of n ≤ 32 elements that are adjacent across, and twice the depth of rows, in pairs.", name))
	Pragma("noescape")
	dst, width, src, stride, depth := param("dst"), param("width"), param("src"), param("stride"), param("depth")
	bf16z.bytes(width)
	ADDQ(stride, stride)
	pairMasks(param("n"))
	z := newZip()
	Label("row")
	even, odd := ZMM(), ZMM()
	VMOVDQU16_Z(Mem{Base: src}, reg.K3, even)
	VMOVDQU16_Z(Mem{Base: src, Index: stride, Scale: 1}, reg.K3, odd)
	for j, v := range z.pairs(even, odd) {
		bf16z.storeK(v, maskOf(j), Mem{Base: dst, Disp: 64 * j})
	}
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, src)
	ADDQ(width, dst)
	DECQ(depth)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// pairPanels packs rows of any length into panels side by side.
func pairPanels() {
	name := "pairPanels" + pairsSuffix
	TEXT(name, NOSPLIT, "func(dst *float32, panel int, src *uint16, stride, n, depth int)")
	Doc(fmt.Sprintf("%s packs n elements that are adjacent across, and twice the depth of rows, in pairs into panels of width 32, the last filled up with zeros.", name))
	Pragma("noescape")
	dst, panel, src, stride, depth := param("dst"), param("panel"), param("src"), param("stride"), param("depth")
	bf16z.bytes(panel)
	ADDQ(stride, stride)
	n, rest := param("n"), GP64()
	MOVQ(n, rest)
	ANDQ(Imm(31), rest)
	pairMasks(rest)
	full := n
	SHRQ(Imm(5), full)
	z := newZip()
	s, d, count := GP64(), GP64(), GP64()
	even, odd := ZMM(), ZMM()
	put := func() {
		for j, v := range z.pairs(even, odd) {
			bf16z.store(v, Mem{Base: d, Disp: 64 * j})
		}
	}
	Label("row")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(full, count)
	TESTQ(count, count)
	JZ(LabelRef("rest"))
	Label("panel")
	VMOVDQU16(Mem{Base: s}, even)
	VMOVDQU16(Mem{Base: s, Index: stride, Scale: 1}, odd)
	PREFETCHT0(Mem{Base: s, Index: stride, Scale: 8})
	put()
	ADDQ(Imm(64), s)
	ADDQ(panel, d)
	DECQ(count)
	JNZ(LabelRef("panel"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	VMOVDQU16_Z(Mem{Base: s}, reg.K3, even)
	VMOVDQU16_Z(Mem{Base: s, Index: stride, Scale: 1}, reg.K3, odd)
	put()
	Label("next")
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, src)
	SUBQ(I32(-128), dst)
	DECQ(depth)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// transposePairs packs rows that lie along the depth, where pairs adjoin already.
func transposePairs() {
	name := "transpose" + pairsSuffix
	TEXT(name, NOSPLIT, pairsSignature)
	Doc(fmt.Sprintf("%s packs a panel of n elements that are adjacent along the depth, which counts pairs.", name))
	Pragma("noescape")
	width, stride := param("width"), param("stride")
	bf16z.bytes(width)
	ADDQ(stride, stride)
	transposeBlocks(bf16z, width, stride)
}
