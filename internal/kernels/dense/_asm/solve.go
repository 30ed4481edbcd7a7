package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// half is the rows of half a triangle of a block, which registers hold.
const half = 8

// divide makes x the quotient by a number, which is at an address with its inverse behind it.
type divide func(x reg.VecVirtual, by Mem)

// divided divides by the processor's division.
func (s *isa) divided(x reg.VecVirtual, by Mem) {
	d := s.vec()
	VBROADCASTSD(by, d)
	VDIVPD(d, x, x)
}

// quotient divides by the inverse.
func (s *isa) quotient(x reg.VecVirtual, by Mem) {
	d, inverse := s.vec(), s.vec()
	VBROADCASTSD(by, d)
	VBROADCASTSD(at(by, 8), inverse)
	s.quotientOf(x, d, inverse)
}

// quotientOf is what a division gives, in less time: P. Markstein, Computation of elementary functions on the IBM
// RISC System/6000 processor (1990). Where there is no finite remainder the product with the inverse is the quotient.
func (s *isa) quotientOf(x, d, inverse reg.VecVirtual) {
	q, rest, none := s.vec(), s.vec(), s.vec()
	VMULPD(inverse, x, q)
	VMOVAPD(x, rest)
	VFNMADD231PD(d, q, rest)
	VSUBPD(rest, rest, none) // which is no number unless that is finite
	if s.bytes == 64 {
		finite := K()
		VCMPPD(Imm(ordered), none, none, finite)
		VFMADD231PD(inverse, rest, finite, q)
		VFNMADD231PD(d, q, x)
		VFMADD231PD(inverse, x, finite, q)
	} else {
		finite := none
		VCMPPD(Imm(ordered), none, none, finite)
		VANDPD(finite, rest, rest)
		VFMADD231PD(inverse, rest, q)
		VFNMADD231PD(d, q, x)
		VANDPD(finite, x, x)
		VFMADD231PD(inverse, x, q)
	}
	VMOVAPD(q, x)
}

// ordered is the comparison that is true of two numbers.
const ordered = 7

// solving is the registers of solve.
type solving struct {
	*isa
	across       int
	t, row, step reg.GPVirtual // row goes on to the next half
	divide       divide
}

// solve writes the solution for a block of rows, whose triangle has its elements in the order in which they are used.
func (s *isa) solve(name string, d divide) {
	u := solving{isa: s, across: s.bytes / 32, divide: d}
	TEXT("solve"+name+s.suffix, NOSPLIT, "func(t, x *float64, step, count int)")
	Doc(fmt.Sprintf("solve%s%s is solve of %d·count columns.", name, s.suffix, u.across*s.bytes/8))
	Pragma("noescape")
	p := pointers("t", "x", "count")
	x, n := p[1], p[2]
	u.t, u.step, u.row = p[0], stride("step"), GP64()
	Label("columns")
	MOVQ(x, u.row)
	at := u.half(u.load(), 0)
	acc := u.load()
	below := GP64()
	MOVQ(x, below)
	for range half {
		for j := range u.across {
			v := u.vec()
			VMOVUPD(Mem{Base: below, Disp: j * u.bytes}, v)
			for r := range acc {
				if u.bytes == 64 {
					VFNMADD231PD_BCST(Mem{Base: u.t, Disp: at + 8*r}, v, acc[r][j])
					continue
				}
				f := u.vec()
				VBROADCASTSD(Mem{Base: u.t, Disp: at + 8*r}, f)
				VFNMADD231PD(v, f, acc[r][j])
			}
		}
		at += 8 * half
		ADDQ(u.step, below)
	}
	u.half(acc, at)
	ADDQ(U32(u.across*s.bytes), x)
	DECQ(n)
	JNZ(LabelRef("columns"))
	VZEROUPPER()
	RET()
}

// load returns the next rows.
func (u *solving) load() (acc [half][]reg.VecVirtual) {
	from := GP64()
	MOVQ(u.row, from)
	for r := range acc {
		for j := range u.across {
			v := u.vec()
			VMOVUPD(Mem{Base: from, Disp: j * u.bytes}, v)
			acc[r] = append(acc[r], v)
		}
		ADDQ(u.step, from)
	}
	return acc
}

// half solves for half the rows and stores them. It returns where what follows its elements is.
func (u *solving) half(acc [half][]reg.VecVirtual, at int) int {
	for i := range acc {
		if u.divide != nil {
			for j := range acc[i] {
				u.divide(acc[i][j], Mem{Base: u.t, Disp: at})
			}
			at += 16
		}
		for j := range acc[i] {
			VMOVUPD(acc[i][j], Mem{Base: u.row, Disp: j * u.bytes})
		}
		ADDQ(u.step, u.row)
		for r := i + 1; r < half; r++ {
			f := u.vec()
			VBROADCASTSD(Mem{Base: u.t, Disp: at}, f)
			for j := range acc[r] {
				VFNMADD231PD(acc[i][j], f, acc[r][j])
			}
			at += 8
		}
	}
	return at
}

// quotientsBy writes the quotients of numbers by one.
func (s *isa) quotientsBy() {
	TEXT("quotientsBy"+s.suffix, NOSPLIT, "func(dst, src *float64, by, inverse float64, blocks int)")
	Doc(fmt.Sprintf("quotientsBy%s divides %d·blocks numbers.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("dst", "src", "blocks")
	dst, src, n := p[0], p[1], p[2]
	by, inverse := s.broadcast("by"), s.broadcast("inverse")
	Label("block")
	for j := range lanes * 8 / s.bytes {
		x := s.vec()
		VMOVUPD(Mem{Base: src, Disp: j * s.bytes}, x)
		s.quotientOf(x, by, inverse)
		VMOVUPD(x, Mem{Base: dst, Disp: j * s.bytes})
	}
	next(n, dst, src)
	VZEROUPPER()
	RET()
}

// greatest writes the size of the greatest of numbers.
func (s *isa) greatest() {
	TEXT("greatest"+s.suffix, NOSPLIT, "func(x *float64, blocks int) float64")
	Doc(fmt.Sprintf("greatest%s is greatestOf of %d·blocks numbers.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("x", "blocks")
	x, n := p[0], p[1]
	size := s.sizes()
	across := lanes * 8 / s.bytes
	var acc []reg.VecVirtual
	for range across {
		v := s.vec()
		VXORPD(v.AsY(), v.AsY(), v.AsY())
		acc = append(acc, v)
	}
	Label("block")
	for j := range across {
		v := s.vec()
		VANDPD(Mem{Base: x, Disp: j * s.bytes}, size, v)
		VMAXPD(acc[j], v, acc[j]) // which is the second where one is no number
	}
	next(n, x)
	half := YMM()
	if across == 1 {
		VEXTRACTF64X4(Imm(1), acc[0], half)
	} else {
		half = acc[1].AsY().(reg.VecVirtual)
	}
	most, high, low := acc[0].AsY(), XMM(), acc[0].AsX().(reg.VecVirtual)
	VMAXPD(half, most, most)
	VEXTRACTF128(Imm(1), most, high)
	VMAXPD(high, low, low)
	VUNPCKHPD(low, low, high)
	VMAXSD(high, low, low)
	VZEROUPPER()
	Store(low, ReturnIndex(0))
	RET()
}

// exchange writes the exchange of two rows.
func (s *isa) exchange() {
	TEXT("exchange"+s.suffix, NOSPLIT, "func(x, y *float64, blocks int)")
	Doc(fmt.Sprintf("exchange%s exchanges two rows of %d·blocks numbers.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("x", "y", "blocks")
	x, y, n := p[0], p[1], p[2]
	Label("block")
	for j := range lanes * 8 / s.bytes {
		v, w := s.vec(), s.vec()
		VMOVUPD(Mem{Base: x, Disp: j * s.bytes}, v)
		VMOVUPD(Mem{Base: y, Disp: j * s.bytes}, w)
		VMOVUPD(v, Mem{Base: y, Disp: j * s.bytes})
		VMOVUPD(w, Mem{Base: x, Disp: j * s.bytes})
	}
	next(n, x, y)
	VZEROUPPER()
	RET()
}
