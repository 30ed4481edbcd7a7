package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// add writes the sum of two rows.
func (s *isa) add() {
	name := "add" + s.suffix
	TEXT(name, NOSPLIT, "func(dst *float32, x *float32, y *float32, n int)")
	Doc(fmt.Sprintf("%s is Add of n > 0 elements, a multiple of %d.", name, s.lanes))
	Pragma("noescape")
	dst, x, y, n := param("dst"), param("x"), param("y"), param("n")
	s.loop(n, []reg.GPVirtual{dst, x, y}, func() {
		v := s.vec()
		VMOVUPS(Mem{Base: x}, v)
		VADDPS(Mem{Base: y}, v, v)
		VMOVUPS(v, Mem{Base: dst})
	})
}
