package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// convert writes a loop over n elements, a multiple of the lanes.
func (s *isa) convert(name, signature, doc string, dstSize, srcSize int, body func(dst, src Mem)) {
	name += s.suffix
	TEXT(name, NOSPLIT, signature)
	Doc(fmt.Sprintf("%s %s, n > 0 elements, a multiple of %d.", name, doc, s.lanes))
	Pragma("noescape")
	dst, src, n := param("dst"), param("src"), param("n")
	Label("loop")
	body(Mem{Base: dst}, Mem{Base: src})
	ADDQ(Imm(uint64(dstSize*s.lanes)), dst)
	ADDQ(Imm(uint64(srcSize*s.lanes)), src)
	SUBQ(Imm(uint64(s.lanes)), n)
	JG(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

const (
	widening  = "func(dst *float32, src *uint16, n int)"
	narrowing = "func(dst *uint16, src *float32, n int)"
)

func (s *isa) loadHalf() {
	s.convert("loadBF16", widening, "widens bfloat16", 4, 2, func(dst, src Mem) {
		v := s.vec()
		VPMOVZXWD(src, v)
		VPSLLD(Imm(16), v, v)
		VMOVUPS(v, dst)
	})
	s.convert("loadF16", widening, "widens binary16", 4, 2, func(dst, src Mem) {
		v := s.vec()
		VCVTPH2PS(src, v)
		VMOVUPS(v, dst)
	})
}

func (s *isa) storeHalf() {
	s.convert("storeF16", narrowing, "rounds to binary16", 2, 4, func(dst, src Mem) {
		v := s.vec()
		VMOVUPS(src, v)
		VCVTPS2PH(Imm(0), v, dst)
	})
	s.convert("storeBF16", narrowing, "rounds to bfloat16", 2, 4, func(dst, src Mem) {
		// To nearest even: add 0x7fff and the lowest bit that stays. A NaN is
		// made quiet instead, so that no carry turns it into an infinity.
		v, r := s.vec(), s.vec()
		VMOVUPS(src, v)
		VPSRLD(Imm(16), v, r)
		s.and(bits(1), r, r)
		VPADDD(v, r, r)
		VPADDD(bits(0x7fff), r, r)
		if s.wide {
			VCMPPS(Imm(3), v, v, reg.K1)
			VPORD(bits(0x400000), v, v)
			VMOVDQU32(v, reg.K1, r)
			VPSRLD(Imm(16), r, r)
			VPMOVDW(r, dst)
			return
		}
		nan := s.vec()
		VCMPPS(Imm(3), v, v, nan)
		VPOR(bits(0x400000), v, v)
		VBLENDVPS(nan, v, r, r)
		VPSRLD(Imm(16), r, r)
		VPACKUSDW(r, r, r)
		VPERMQ(Imm(0x08), r, r)
		VMOVDQU(r.AsX(), dst)
	})
}
