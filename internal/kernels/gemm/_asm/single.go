package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// singleSums is how many sums a single dot product has, so that none waits for itself.
const singleSums = 8

// single writes the inner loop for one row and one column that both lie along the depth.
func single(e *elem) {
	name := "dot1x1" + e.suffix
	TEXT(name, NOSPLIT, fmt.Sprintf("func(depth int, a *%[1]s, aRow int, b *%[1]s, bCol int, c *%[1]s, ldc int, alpha %[1]s, flags int)", e.goType))
	Doc(fmt.Sprintf("%s computes one element.", name))
	Pragma("noescape")
	depth, a, b := param("depth"), param("a"), param("b")
	sums := make([]reg.VecVirtual, singleSums)
	for i := range sums {
		sums[i] = e.vec()
		e.zero(sums[i])
	}
	step := func(i int, load func(m, v Op)) {
		at, x, y := i*e.lanes*e.size, e.vec(), e.vec()
		load(Mem{Base: a, Disp: at}, x)
		load(Mem{Base: b, Disp: at}, y)
		e.fma(x, y, sums[i])
	}
	advance := func(steps int) {
		ADDQ(U32(uint32(steps*e.lanes*e.size)), a)
		ADDQ(U32(uint32(steps*e.lanes*e.size)), b)
	}
	SUBQ(U32(uint32(singleSums*e.lanes)), depth)
	JL(LabelRef("rest"))
	Label("whole")
	for i := range sums {
		step(i, e.load)
	}
	advance(singleSums)
	SUBQ(U32(uint32(singleSums*e.lanes)), depth)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(U32(uint32((singleSums-1)*e.lanes)), depth)
	JL(LabelRef("tail"))
	Label("vector")
	step(0, e.load)
	advance(1)
	SUBQ(U32(uint32(e.lanes)), depth)
	JGE(LabelRef("vector"))
	Label("tail")
	if e.masked {
		ADDQ(U32(uint32(e.lanes)), depth)
		JZ(LabelRef("done"))
		all := GP64()
		MOVQ(I64(-1), all)
		BZHIQ(depth, all, all)
		KMOVW(all.As32(), reg.K1)
		step(0, func(m, v Op) { e.loadK(m, reg.K1, v) })
		Label("done")
	}
	for n := singleSums / 2; n > 0; n /= 2 {
		for i := range n {
			e.add(sums[i+n], sums[i], sums[i])
		}
	}
	store(e, acrossLanes(e, sums[0]))
}

// acrossLanes adds the lanes of a vector.
func acrossLanes(e *elem, v reg.VecVirtual) reg.VecVirtual {
	if e.size == 4 {
		sum := overLanes(e, v)
		VHADDPS(sum, sum, sum)
		VHADDPS(sum, sum, sum)
		return sum
	}
	y := v.(reg.Vec).AsY()
	if e.lanes == 8 {
		top := YMM()
		VEXTRACTF64X4(Imm(1), v, top)
		VADDPD(y, top, top)
		y = top
	}
	sum := XMM()
	VEXTRACTF128(Imm(1), y, sum)
	VADDPD(y.(reg.Vec).AsX(), sum, sum)
	VHADDPD(sum, sum, sum)
	return sum
}

// store sets c to alpha times a sum, or adds that to it.
func store(e *elem, sum reg.VecVirtual) {
	c, flags := Mem{Base: param("c")}, param("flags")
	alpha, err := Param("alpha").Resolve()
	if err != nil {
		panic(err)
	}
	mul, add, put := VMULSS, VADDSS, VMOVSS
	if e.size == 8 {
		mul, add, put = VMULSD, VADDSD, VMOVSD
	}
	mul(alpha.Addr, sum, sum)
	TESTQ(U32(flagAdd), flags)
	JZ(LabelRef("put"))
	add(c, sum, sum)
	Label("put")
	put(sum, c)
	VZEROUPPER()
	RET()
}
