package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// greater writes the step of a search for the greatest elements, whose indices are all one, or with
// along so far apart from each other.
func (s *isa) greater(along bool) {
	name, doc, step := "greater"+s.suffix, "Greater", ""
	if along {
		name, doc, step = "greaterAlong"+s.suffix, "GreaterAlong", ", step int32"
	}
	TEXT(name, NOSPLIT, "func(best *float32, at *int32, x *float32, n int, index int32"+step+")")
	Doc(fmt.Sprintf("%s is %s of n > 0 elements, a multiple of %d.", name, doc, s.lanes))
	Pragma("noescape")
	best, at, x, n := param("best"), param("at"), param("x"), param("n")
	index := s.broadcast("index")
	var apart reg.VecVirtual
	if along {
		apart = s.broadcast("step")
		first := s.vec()
		VPMULLD(iota32(), apart, first)
		VPADDD(first, index, index)
		VPSLLD(Imm(map[int]uint64{8: 3, 16: 4}[s.lanes]), apart, apart)
	}
	s.loop(n, []reg.GPVirtual{best, at, x}, func() {
		b, a, v := s.vec(), s.vec(), s.vec()
		VMOVUPS(Mem{Base: best}, b)
		VMOVUPS(Mem{Base: at}, a)
		VMOVUPS(Mem{Base: x}, v)
		if s.wide {
			VCMPPS(Imm(30), b, v, reg.K1) // v > b
			VCMPPS(Imm(3), v, v, reg.K2)
			KORW(reg.K1, reg.K2, reg.K1)
			VPMOVD2M(a, reg.K2)
			KORW(reg.K1, reg.K2, reg.K1)
			VMOVUPS(v, reg.K1, Mem{Base: best})
			VMOVDQU32(index, reg.K1, Mem{Base: at})
		} else {
			g, nan := s.vec(), s.vec()
			VCMPPS(Imm(30), b, v, g)
			VCMPPS(Imm(3), v, v, nan)
			VORPS(nan, g, g)
			VORPS(a, g, g) // blends look at the sign alone
			VBLENDVPS(g, v, b, b)
			VBLENDVPS(g, index, a, a)
			VMOVUPS(b, Mem{Base: best})
			VMOVUPS(a, Mem{Base: at})
		}
		if along {
			VPADDD(apart, index, index)
		}
	})
}

// iota32 is 0, 1, … in read-only memory.
func iota32() Mem {
	if ascending.Base == nil {
		ascending = GLOBL("iota", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(i))
		}
	}
	return ascending
}

var ascending Mem

// most writes the greater of two rows.
func (s *isa) most() {
	name := "most" + s.suffix
	TEXT(name, NOSPLIT, "func(best *float32, x *float32, n int)")
	Doc(fmt.Sprintf("%s is Most of n > 0 elements, a multiple of %d.", name, s.lanes))
	Pragma("noescape")
	best, x, n := param("best"), param("x"), param("n")
	s.loop(n, []reg.GPVirtual{best, x}, func() {
		b, v, m := s.vec(), s.vec(), s.vec()
		VMOVUPS(Mem{Base: best}, b)
		VMOVUPS(Mem{Base: x}, v)
		// Where one is NaN or both are zero this is b.
		VMAXPS(b, v, m)
		if s.wide {
			VCMPPS(Imm(3), v, v, reg.K1)
			VMOVAPS(v, reg.K1, m)
		} else {
			VCMPPS(Imm(3), v, v, b)
			VBLENDVPS(b, v, m, m)
		}
		VMOVUPS(m, Mem{Base: best})
	})
}

// halves writes the split of pairs, on vectors of eight: wider ones would not be faster.
func halves() {
	TEXT("halvesAVX2", NOSPLIT, "func(even, odd, x *float32, n int)")
	Doc("halvesAVX2 sets even and odd to the elements at even and odd places of x, n > 0 each, a multiple of 8.")
	Pragma("noescape")
	even, odd, x, n := param("even"), param("odd"), param("x"), param("n")
	Label("loop")
	for i, to := range []reg.GPVirtual{even, odd} {
		a, b := YMM(), YMM()
		VMOVUPS(Mem{Base: x}, a)
		VMOVUPS(Mem{Base: x, Disp: 32}, b)
		VSHUFPS(Imm([]uint64{0x88, 0xdd}[i]), b, a, a)
		VPERMPD(Imm(0xd8), a, a)
		VMOVUPS(a, Mem{Base: to})
	}
	ADDQ(U32(64), x)
	ADDQ(U32(32), even)
	ADDQ(U32(32), odd)
	SUBQ(Imm(8), n)
	JG(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
