// Command asm writes the loops of package lanes for amd64.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// block is the bytes of one element of each matrix of a group.
const block = 64

// Comparisons of VCMPPD: no NaN is equal to or greater than anything.
const (
	equal   = 0
	unequal = 4
	greater = 30
)

// isa is a vector width. One that is narrower than a block has loops that run once for each part of it.
type isa struct {
	suffix string
	bytes  int // of a vector
	vec    func() reg.VecVirtual
}

var isas = []isa{
	{"AVX512", 64, func() reg.VecVirtual { return ZMM() }},
	{"AVX2", 32, func() reg.VecVirtual { return YMM() }},
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.factor()
		s.exchange()
		s.reduce()
		s.root()
		s.determinant()
		for _, e := range elements {
			s.gather(e)
			s.scatter(e)
		}
	}
	Generate()
}

// begin writes the head of a function.
func (s *isa) begin(name, signature, doc string) {
	TEXT(name+s.suffix, NOSPLIT, signature)
	Doc(name + s.suffix + " " + doc)
	Pragma("noescape")
}

// parts writes the body for each part of a block, which begins off bytes after the block.
func (s *isa) parts(body func(off reg.GPVirtual)) {
	off := GP64()
	XORQ(off, off)
	Label("part")
	body(off)
	if s.bytes < block {
		ADDQ(U32(s.bytes), off)
		CMPQ(off, U32(block))
		JL(LabelRef("part"))
	}
	VZEROUPPER()
	RET()
}

// pointer returns a parameter that points to blocks.
func pointer(name string, off reg.GPVirtual) reg.GPVirtual {
	p := number(name)
	ADDQ(off, p)
	return p
}

func number(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// blocks returns a parameter that counts blocks in bytes.
func blocks(name string) reg.GPVirtual {
	p := number(name)
	SHLQ(Imm(6), p)
	return p
}

// all returns a vector with a number in each lane.
func (s *isa) all(bits uint64) reg.VecVirtual {
	r, x, v := GP64(), XMM(), s.vec()
	MOVQ(U64(bits), r)
	VMOVQ(r, x)
	VBROADCASTSD(x, v)
	return v
}

const (
	one       = 0x3ff0000000000000
	sign      = 1 << 63
	magnitude = sign - 1
)

func (s *isa) copied(v reg.VecVirtual) reg.VecVirtual {
	c := s.vec()
	VMOVAPD(v, c)
	return c
}

func (s *isa) loaded(m Mem) reg.VecVirtual {
	v := s.vec()
	VMOVUPD(m, v)
	return v
}

// compare returns the lanes where x and y compare so.
func (s *isa) compare(how uint8, x reg.VecVirtual, y Op) reg.Register {
	if s.bytes == 64 {
		k := K()
		VCMPPD(Imm(uint64(how)), y, x, k)
		return k
	}
	v := YMM()
	VCMPPD(Imm(uint64(how)), y, x, v)
	return v
}

// where moves lanes of from to to.
func (s *isa) where(lanes reg.Register, from, to reg.VecVirtual) {
	if s.bytes == 64 {
		VMOVAPD(from, lanes, to)
		return
	}
	VBLENDVPD(lanes, from, to, to)
}

// unless jumps where there are no such lanes.
func (s *isa) unless(lanes reg.Register, label string) {
	if s.bytes == 64 {
		KTESTB(lanes, lanes)
	} else {
		VTESTPD(lanes, lanes)
	}
	JZ(LabelRef(label))
}

// loop writes a loop of n rounds, perhaps none; n is used up.
func loop(name string, n reg.GPVirtual, body func()) {
	TESTQ(n, n)
	JZ(LabelRef(name + "Done"))
	Label(name)
	body()
	DECQ(n)
	JNZ(LabelRef(name))
	Label(name + "Done")
}

func moved(p reg.GPVirtual) reg.GPVirtual {
	c := GP64()
	MOVQ(p, c)
	return c
}
