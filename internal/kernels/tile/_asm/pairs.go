package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// joinPairs writes the function that makes words of rows of bfloat16 that are held as float32.
func joinPairs() {
	TEXT("joinPairs", NOSPLIT, "func(dst, src *float32, n int)")
	Doc("joinPairs makes n rows of 32 words of as many pairs of rows of elements.")
	Pragma("noescape")
	param := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	dst, src, n := param("dst"), param("src"), param("n")
	odd := GP64()
	MOVQ(U32(0xaaaaaaaa), odd)
	KMOVD(odd.As32(), reg.K1)
	Label("row")
	for j := range 2 {
		v := ZMM()
		VPSRLD(Imm(16), Mem{Base: src, Disp: 64 * j}, v)
		VMOVDQU16(Mem{Base: src, Disp: 128 + 64*j}, reg.K1, v)
		VMOVDQU64(v, Mem{Base: dst, Disp: 64 * j})
	}
	ADDQ(U32(256), src)
	SUBQ(I32(-128), dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
