// Command asm writes the loops of package philox for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width with its instructions.
type isa struct {
	suffix   string
	counters int // in a vector
	groups   int // vectors of counters at a time, to hide the products' latency
	wide     bool
	vec      func() reg.VecVirtual

	constants map[string]Mem
}

func main() {
	for _, s := range []*isa{
		{suffix: "AVX512", counters: 8, groups: 4, wide: true, vec: func() reg.VecVirtual { return ZMM() }},
		{suffix: "AVX2", counters: 4, groups: 2, vec: func() reg.VecVirtual { return YMM() }},
	} {
		s.uniform()
		s.words()
		s.normal(8)
		s.normal(4)
	}
	Generate()
}

func (s *isa) bytes() int { return 8 * s.counters }

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// all returns a vector with a number in all its 64-bit lanes.
func (s *isa) all(x Op) reg.VecVirtual {
	v := s.vec()
	if s.wide {
		VPBROADCASTQ(x, v)
		return v
	}
	low := XMM()
	VMOVQ(x, low)
	VPBROADCASTQ(low, v)
	return v
}

// number is all in read-only memory: there are too few registers for AVX2.
func (s *isa) number(name string, n uint64) Mem {
	m := GLOBL(name+s.suffix, RODATA|NOPTR)
	for i := range s.counters {
		DATA(8*i, U64(n))
	}
	return m
}

// kept is a vector on the stack.
func (s *isa) kept(v reg.VecVirtual) Mem {
	m := AllocLocal(s.bytes())
	VMOVUPS(v, m)
	return m
}

// order is the counters of a vector, so chosen that interleaving the words within
// 128-bit lanes puts the blocks into their order: those of the even lanes come
// first.
func (s *isa) order() Mem {
	m := GLOBL("order"+s.suffix, RODATA|NOPTR)
	for i := range s.counters {
		DATA(8*i, U64(i/2+i%2*s.counters/2))
	}
	return m
}

// uniform writes the loop of uniform numbers.
func (s *isa) uniform() {
	name := "uniform" + s.suffix
	TEXT(name, NOSPLIT, "func(dst *float32, n int, seed, offset, block uint64, bits int)")
	Doc(fmt.Sprintf("%s sets n times %d floats to the uniform numbers of a stream from a block on, with so many random bits.", name, 4*s.groups*s.counters))
	Pragma("noescape")
	s.stream(s.bits)
}

// words writes the loop of the words themselves.
func (s *isa) words() {
	name := "words" + s.suffix
	TEXT(name, NOSPLIT, "func(dst *uint64, n int, seed, offset, block uint64)")
	Doc(fmt.Sprintf("%s sets n times %d words to the uint64 elements of a stream from a block on.", name, 2*s.groups*s.counters))
	Pragma("noescape")
	s.stream(nil)
}

// stream writes the loop. A 32-bit word of the state is the low half of a 64-bit
// lane; what the high half holds does not matter until the end, since VPMULUDQ
// does not read it. With bits, which says how, words become floats.
func (s *isa) stream(bits func() (shift reg.VecVirtual, scale Mem)) {
	dst, n := param("dst"), param("n")
	block := s.all(param("block"))
	VPADDQ(s.shared("order"), block, block)
	step := s.shared("step")
	mul0, mul1 := s.shared("mul0"), s.shared("mul1")
	weyl0, weyl1 := s.shared("weyl0"), s.shared("weyl1")
	low, high := param("offset"), GP64()
	MOVQ(low, high)
	SHRQ(Imm(32), high)
	offset0, offset1 := s.kept(s.all(low)), s.kept(s.all(high))
	low = param("seed")
	MOVQ(low, high)
	SHRQ(Imm(32), high)
	seed0, seed1 := s.kept(s.all(low)), s.kept(s.all(high))
	var shift reg.VecVirtual
	var scale Mem
	if bits != nil {
		shift, scale = bits()
	}
	Label("loop")
	key0, key1 := s.vec(), s.vec()
	VMOVUPS(seed0, key0)
	VMOVUPS(seed1, key1)
	groups := make([][4]reg.VecVirtual, s.groups)
	for g := range groups {
		c := &groups[g]
		for i := range c {
			c[i] = s.vec()
		}
		VMOVUPS(block, c[0])
		VPSRLQ(Imm(32), block, c[1])
		VMOVUPS(offset0, c[2])
		VMOVUPS(offset1, c[3])
		VPADDQ(step, block, block)
	}
	for round := range 10 {
		if round > 0 {
			VPADDQ(weyl0, key0, key0)
			VPADDQ(weyl1, key1, key1)
		}
		for g := range groups {
			groups[g] = s.round(groups[g], mul0, mul1, key0, key1)
		}
	}
	for g, c := range groups {
		s.store(c, shift, scale, Mem{Base: dst, Disp: 2 * g * s.bytes()})
	}
	ADDQ(U32(2*s.groups*s.bytes()), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// shared returns the constant of a name, which all loops of a width share.
func (s *isa) shared(name string) Mem {
	if m, ok := s.constants[name]; ok {
		return m
	}
	if s.constants == nil {
		s.constants = map[string]Mem{}
	}
	var m Mem
	if name == "order" {
		m = s.order()
	} else {
		m = s.number(name, map[string]uint64{
			"step": uint64(s.counters), "mul0": 0xD2511F53, "mul1": 0xCD9E8D57, "weyl0": 0x9E3779B9, "weyl1": 0xBB67AE85,
		}[name])
	}
	s.constants[name] = m
	return m
}

// bits returns by how many bits words are shifted, and what makes a uniform
// number of the rest.
func (s *isa) bits() (shift reg.VecVirtual, scale Mem) {
	n, g := param("bits"), GP64()
	MOVQ(U64(32), g)
	SUBQ(n, g)
	shift = XMM()
	VMOVQ(g, shift)
	MOVQ(U64(127), g)
	SUBQ(n, g)
	SHLQ(Imm(23), g)
	low := XMM()
	VMOVQ(g, low)
	v := s.vec()
	VPBROADCASTD(low, v)
	return shift, s.kept(v)
}

// round is a round of Philox on the words c, which are spent.
func (s *isa) round(c [4]reg.VecVirtual, mul0, mul1 Mem, key0, key1 reg.VecVirtual) [4]reg.VecVirtual {
	VPMULUDQ(mul0, c[0], c[0])
	VPMULUDQ(mul1, c[2], c[2])
	one, three := s.vec(), s.vec()
	VPSRLQ(Imm(32), c[2], one)
	VPSRLQ(Imm(32), c[0], three)
	s.xor3(one, c[1], key0)
	s.xor3(three, c[3], key1)
	return [4]reg.VecVirtual{one, c[2], three, c[0]}
}

// xor3 adds two vectors to x.
func (s *isa) xor3(x, y, z reg.VecVirtual) {
	if s.wide {
		VPTERNLOGQ(Imm(0x96), z, y, x)
		return
	}
	VPXOR(y, x, x)
	VPXOR(z, x, x)
}

// store writes the blocks c, two vectors of them, as numbers if there is a shift; c
// is spent.
func (s *isa) store(c [4]reg.VecVirtual, shift reg.VecVirtual, scale, to Mem) {
	for i := 0; i < 4; i += 2 { // the words of two next to each other
		VPSLLQ(Imm(32), c[i+1], c[i+1])
		VPSLLQ(Imm(32), c[i], c[i])
		VPSRLQ(Imm(32), c[i], c[i])
		if s.wide {
			VPORQ(c[i+1], c[i], c[i])
		} else {
			VPOR(c[i+1], c[i], c[i])
		}
	}
	first, second := s.vec(), s.vec()
	VPUNPCKLQDQ(c[2], c[0], first)
	VPUNPCKHQDQ(c[2], c[0], second)
	for i, v := range []reg.VecVirtual{first, second} {
		if shift != nil {
			VPSRLD(shift, v, v)
			VCVTDQ2PS(v, v)
			VMULPS(scale, v, v)
		}
		VMOVUPS(v, to.Offset(i*s.bytes()))
	}
}
