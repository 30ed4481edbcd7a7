// Command asm writes the loops of package limit for amd64.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width.
type isa struct {
	suffix string
	bytes  int
	vec    func() reg.VecVirtual
	store  func(x, m Op) // past the caches
}

var isas = []*isa{
	{"AVX512", 64, ZMM, func(x, m Op) { VMOVNTPS(x, m) }},
	{"AVX2", 32, YMM, func(x, m Op) { VMOVNTPS(x, m) }},
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.multiply()
		s.triad("triad", func(x, m Op) { VMOVUPS(x, m) })
		s.triad("stream", s.store)
	}
	Generate()
}

// multiply has more sums than the processor can have multiplications under way.
func (s *isa) multiply() {
	const sums = 12
	TEXT("multiply"+s.suffix, NOSPLIT, "func(rounds int)")
	Doc("multiply" + s.suffix + " does 12 vector multiplications and additions in each round.")
	n := Load(Param("rounds"), GP64())
	one := s.vec()
	VXORPS(one, one, one)
	var acc []reg.VecVirtual
	for range sums {
		a := s.vec()
		VXORPS(a, a, a)
		acc = append(acc, a)
	}
	Label("multiply" + s.suffix)
	for _, a := range acc {
		VFMADD231PS(one, one, a)
	}
	DECQ(n)
	JNZ(LabelRef("multiply" + s.suffix))
	VZEROUPPER()
	RET()
}

// triad is four vectors of a = b + c in each round; the multiplication that the
// triad is named for costs nothing beside the memory.
func (s *isa) triad(name string, store func(x, m Op)) {
	const vectors = 4
	TEXT(name+s.suffix, NOSPLIT, "func(a, b, c *float32, rounds int)")
	Doc(name + s.suffix + " sets four vectors of a to b + c in each round.")
	a, b, c := Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64())
	n := Load(Param("rounds"), GP64())
	Label(name + s.suffix)
	for i := range vectors {
		x := s.vec()
		VMOVUPS(Mem{Base: b, Disp: i * s.bytes}, x)
		VADDPS(Mem{Base: c, Disp: i * s.bytes}, x, x)
		store(x, Mem{Base: a, Disp: i * s.bytes})
	}
	for _, p := range []reg.Register{a, b, c} {
		ADDQ(U32(vectors*s.bytes), p)
	}
	DECQ(n)
	JNZ(LabelRef(name + s.suffix))
	SFENCE()
	VZEROUPPER()
	RET()
}
