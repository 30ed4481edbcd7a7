package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A kind is a type of elements other than float32 that greatest elements are looked for in.
type kind struct {
	name    string
	size    int
	exceeds func(v, b, mask reg.VecVirtual) // sets whole elements of mask where v is greater, or NaN
}

var kinds = []kind{
	{"Doubles", 8, func(v, b, mask reg.VecVirtual) {
		nan := YMM()
		VCMPPD(Imm(30), b, v, mask)
		VCMPPD(Imm(3), v, v, nan)
		VORPS(nan, mask, mask)
	}},
	{"Quads", 8, func(v, b, mask reg.VecVirtual) { VPCMPGTQ(b, v, mask) }},
	{"Longs", 4, func(v, b, mask reg.VecVirtual) { VPCMPGTD(b, v, mask) }},
}

// greatest writes the loops of one kind.
func greatest(k kind) {
	lanes := 32 / k.size
	blend := func(mask, v, into reg.VecVirtual) {
		if k.size == 8 {
			VBLENDVPD(mask, v, into, into)
		} else {
			VBLENDVPS(mask, v, into, into)
		}
	}
	next := func(n reg.GPVirtual, pointers ...reg.GPVirtual) {
		for _, p := range pointers {
			ADDQ(Imm(32), p)
		}
		SUBQ(Imm(uint64(lanes)), n)
		JG(LabelRef("loop"))
		VZEROUPPER()
		RET()
	}

	name := "most" + k.name + "AVX2"
	TEXT(name, NOSPLIT, "func(best, x *byte, n int)")
	Doc(fmt.Sprintf("%s is MostOf of n > 0 elements, a multiple of %d.", name, lanes))
	Pragma("noescape")
	best, x, n := param("best"), param("x"), param("n")
	Label("loop")
	b, v, mask := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: best}, b)
	VMOVDQU(Mem{Base: x}, v)
	k.exceeds(v, b, mask)
	blend(mask, v, b)
	VMOVDQU(b, Mem{Base: best})
	next(n, best, x)

	name = "greater" + k.name + "AVX2"
	TEXT(name, NOSPLIT, "func(best *byte, at *int32, x *byte, n int, index, step int32)")
	Doc(fmt.Sprintf("%s is GreaterOf of n > 0 elements, a multiple of %d.", name, lanes))
	Pragma("noescape")
	best, at, x, n := param("best"), param("at"), param("x"), param("n")
	// Places are half as wide as elements of 8 bytes.
	places, width := func() reg.VecVirtual { return YMM() }, 32
	if k.size == 8 {
		places, width = func() reg.VecVirtual { return XMM() }, 16
	}
	spread := func(name string) reg.VecVirtual {
		one, all := XMM(), places()
		VMOVD(Load(Param(name), GP32()), one)
		VPBROADCASTD(one, all)
		return all
	}
	index, apart, ramp := spread("index"), spread("step"), places()
	VPMULLD(iota32(), apart, ramp)
	VPADDD(ramp, index, index)
	VPSLLD(Imm(map[int]uint64{4: 2, 8: 3}[lanes]), apart, apart)
	Label("loop")
	b, v, mask = YMM(), YMM(), YMM()
	a, first := places(), YMM()
	VMOVDQU(Mem{Base: best}, b)
	VMOVDQU(Mem{Base: x}, v)
	VMOVDQU(Mem{Base: at}, a)
	k.exceeds(v, b, mask)
	// Blends look at the sign alone.
	if k.size == 8 {
		VPMOVSXDQ(a, first)
	} else {
		VMOVDQA(a, first)
	}
	VORPS(first, mask, mask)
	blend(mask, v, b)
	VMOVDQU(b, Mem{Base: best})
	if k.size == 8 {
		// The upper halves of the elements of the mask.
		lo, hi := XMM(), XMM()
		VEXTRACTI128(Imm(0), mask, lo)
		VEXTRACTI128(Imm(1), mask, hi)
		VSHUFPS(Imm(0xdd), hi, lo, lo)
		VBLENDVPS(lo, index, a, a)
	} else {
		VBLENDVPS(mask, index, a, a)
	}
	VMOVDQU(a, Mem{Base: at})
	VPADDD(apart, index, index)
	ADDQ(Imm(uint64(width)), at)
	next(n, best, x)
}
