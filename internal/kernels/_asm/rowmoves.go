package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// takeRows writes the loop that copies rows of bytes which an index selects. The last vector of a row has a mask.
func takeRows() {
	TEXT("takeRowsAVX512", NOSPLIT, "func(dst, src *byte, index *int64, size, bytes, n int) int")
	Doc("takeRowsAVX512 sets row j of dst to the row of src that index[j] selects, for each j below n from 0 on, until index[j] is not",
		"below size or below zero. Rows have so many bytes, above zero, and so is n. It returns how many were done.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()).(reg.Register), Load(Param("src"), GP64()).(reg.Register)
	index, bound := Load(Param("index"), GP64()).(reg.Register), Load(Param("size"), GP64())
	bytes, n := Load(Param("bytes"), GP64()).(reg.Register), Load(Param("n"), GP64())
	whole, rest, ones, mask := GP64(), GP64(), GP64(), K()
	MOVQ(bytes, whole)
	DECQ(whole)
	ANDQ(I32(-64), whole)
	MOVQ(bytes, rest)
	SUBQ(whole, rest)
	MOVQ(I32(-1), ones)
	CMPQ(rest, Imm(64))
	JEQ(LabelRef("full"))
	BZHIQ(rest, ones, ones)
	Label("full")
	KMOVQ(ones, mask)
	j := GP64()
	XORQ(j, j)
	Label("row")
	from, at, v := GP64(), GP64(), ZMM()
	MOVQ(Mem{Base: index, Index: j, Scale: 8}, from)
	CMPQ(from, bound)
	JAE(LabelRef("end"))
	IMULQ(bytes, from)
	ADDQ(src, from)
	XORQ(at, at)
	CMPQ(at, whole)
	JEQ(LabelRef("last"))
	Label("vector")
	VMOVDQU64(Mem{Base: from, Index: at, Scale: 1}, v)
	VMOVDQU64(v, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(Imm(64), at)
	CMPQ(at, whole)
	JLT(LabelRef("vector"))
	Label("last")
	VMOVDQU8_Z(Mem{Base: from, Index: at, Scale: 1}, mask, v)
	VMOVDQU8(v, mask, Mem{Base: dst, Index: at, Scale: 1})
	ADDQ(bytes, dst)
	INCQ(j)
	CMPQ(j, n)
	JLT(LabelRef("row"))
	Label("end")
	VZEROUPPER()
	Store(j, ReturnIndex(0))
	RET()
}
