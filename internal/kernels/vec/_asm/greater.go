package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// greater writes the step of a search for the greatest elements.
func (s *isa) greater() {
	name := "greater" + s.suffix
	TEXT(name, NOSPLIT, "func(best *float32, at *int32, x *float32, n int, index int32)")
	Doc(fmt.Sprintf("%s is Greater of n > 0 elements, a multiple of %d.", name, s.lanes))
	Pragma("noescape")
	best, at, x, n := param("best"), param("at"), param("x"), param("n")
	index := s.broadcast("index")
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
	})
}
