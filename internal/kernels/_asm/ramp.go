package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ramps writes loops over numbers in equal steps.
func ramps() {
	for _, r := range []struct {
		name string
		size int
		add  func(...Op)
	}{{"Bytes", 1, VPADDB}, {"Words", 2, VPADDW}, {"Longs", 4, VPADDD}, {"Quads", 8, VPADDQ}} {
		name := "ramp" + r.name + "AVX2"
		TEXT(name, NOSPLIT, "func(dst *byte, first, by *[32]byte, n int)")
		Doc(fmt.Sprintf("%s sets n vectors of 32 bytes, n above 0, to first, first plus by, and so on, of integers of %d bytes.", name, r.size))
		Pragma("noescape")
		dst, first, by, n := Load(Param("dst"), GP64()), Load(Param("first"), GP64()), Load(Param("by"), GP64()), Load(Param("n"), GP64())
		v, step := YMM(), YMM()
		VMOVDQU(Mem{Base: first.(reg.Register)}, v)
		VMOVDQU(Mem{Base: by.(reg.Register)}, step)
		Label("vector")
		VMOVDQU(v, Mem{Base: dst.(reg.Register)})
		r.add(step, v, v)
		ADDQ(Imm(32), dst)
		DECQ(n)
		JNZ(LabelRef("vector"))
		VZEROUPPER()
		RET()
	}
	line("lineSinglesAVX2", "float32", 4)
	line("lineDoublesAVX2", "float64", 8)
}

// line writes a loop over places on a line. Products and sums are rounded apart, as in Go.
func line(name, of string, size int) {
	TEXT(name, NOSPLIT, "func(dst *"+of+", places *[8]float64, start, step, by float64, n int)")
	Doc(name + " sets n times 8 elements, n above 0, to start plus step times a place, in float64. The places are those given, and then those plus by.")
	Pragma("noescape")
	dst, places := Load(Param("dst"), GP64()), Load(Param("places"), GP64())
	at := func(i int) Mem { return Mem{Base: dst.(reg.Register)}.Offset(i) }
	repeated := func(name string) reg.VecVirtual {
		x, err := Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		v := YMM()
		VBROADCASTSD(x.Addr, v)
		return v
	}
	start, step, by := repeated("start"), repeated("step"), repeated("by")
	n := Load(Param("n"), GP64())
	var place [2]reg.VecVirtual
	for i := range place {
		place[i] = YMM()
		VMOVUPD(Mem{Base: places.(reg.Register)}.Offset(32*i), place[i])
	}
	Label("vector")
	for i := range place {
		v := YMM()
		VMULPD(step, place[i], v)
		VADDPD(v, start, v)
		if size == 4 {
			half := XMM()
			VCVTPD2PSY(v, half)
			VMOVUPS(half, at(16*i))
		} else {
			VMOVUPD(v, at(32*i))
		}
		VADDPD(by, place[i], place[i])
	}
	ADDQ(Imm(uint64(8*size)), dst)
	DECQ(n)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}
