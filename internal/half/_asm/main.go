// Command asm writes the conversion loops of package half for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, isa := range []struct {
		name  string
		lanes int
		wide  func() reg.VecVirtual
	}{{"AVX512", 16, ZMM}, {"AVX2", 8, YMM}} {
		big := isa.lanes == 16
		loop("widenBF16"+isa.name, "float32", "uint16", isa.lanes, 4, 2, func() func(src, dst Mem) {
			return func(src, dst Mem) {
				v := isa.wide()
				VPMOVZXWD(src, v)
				VPSLLD(Imm(16), v, v)
				VMOVUPS(v, dst)
			}
		})
		loop("widenF16"+isa.name, "float32", "uint16", isa.lanes, 4, 2, func() func(src, dst Mem) {
			return func(src, dst Mem) {
				v := isa.wide()
				VCVTPH2PS(src, v)
				VMOVUPS(v, dst)
			}
		})
		loop("narrowF16"+isa.name, "uint16", "float32", isa.lanes, 2, 4, func() func(src, dst Mem) {
			return func(src, dst Mem) {
				v := isa.wide()
				VMOVUPS(src, v)
				VCVTPS2PH(Imm(0), v, dst)
			}
		})
		loop("narrowBF16"+isa.name, "uint16", "float32", isa.lanes, 2, 4, func() func(src, dst Mem) {
			if big {
				return narrow512()
			}
			return narrow256()
		})
	}
	Generate()
}

// loop writes a function that converts n elements, a multiple of the lanes.
func loop(name, to, from string, lanes, toSize, fromSize int, prepare func() func(src, dst Mem)) {
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *%s, src *%s, n int)", to, from))
	Doc(fmt.Sprintf("%s converts n elements, a multiple of %d above zero.", name, lanes))
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	body := prepare()
	Label("next")
	body(Mem{Base: src}, Mem{Base: dst})
	ADDQ(Imm(uint64(lanes*fromSize)), src)
	ADDQ(Imm(uint64(lanes*toSize)), dst)
	SUBQ(Imm(uint64(lanes)), n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// splat returns a vector of equal 32-bit integers.
func splat(v reg.VecVirtual, x uint32) reg.VecVirtual {
	r, low := GP32(), XMM()
	MOVL(U32(x), r)
	VMOVD(r, low)
	VPBROADCASTD(low, v)
	return v
}

// narrow512 rounds to nearest even on the bits; a NaN is cut and made quiet.
func narrow512() func(src, dst Mem) {
	one, half, quiet := splat(ZMM(), 1), splat(ZMM(), 0x7fff), splat(ZMM(), 0x40)
	return func(src, dst Mem) {
		v, top, r := ZMM(), ZMM(), ZMM()
		VMOVUPS(src, v)
		VCMPPS(Imm(3), v, v, reg.K1) // unordered
		VPSRLD(Imm(16), v, top)
		VPANDD(one, top, r)
		VPADDD(half, r, r)
		VPADDD(v, r, r)
		VPSRLD(Imm(16), r, r)
		VPORD(quiet, top, reg.K1, r)
		VPMOVDW(r, dst)
	}
}

func narrow256() func(src, dst Mem) {
	one, half, quiet := splat(YMM(), 1), splat(YMM(), 0x7fff), splat(YMM(), 0x40)
	return func(src, dst Mem) {
		v, nan, top, r := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(src, v)
		VCMPPS(Imm(3), v, v, nan)
		VPSRLD(Imm(16), v, top)
		VPAND(one, top, r)
		VPADDD(half, r, r)
		VPADDD(v, r, r)
		VPSRLD(Imm(16), r, r)
		VPOR(quiet, top, top)
		VPBLENDVB(nan, top, r, r)
		VPACKUSDW(r, r, r)
		VPERMQ(Imm(0x08), r, r)
		VMOVDQU(r.AsX(), dst)
	}
}
