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
	eight()
	Generate()
}

// eight writes the loops of the 8-bit formats.
func eight() {
	for _, isa := range []struct {
		name  string
		lanes int
		wide  func() reg.VecVirtual
		half  func() reg.VecVirtual
	}{{"AVX512", 16, ZMM, YMM}, {"AVX2", 8, YMM, XMM}} {
		loop("widenE5M2"+isa.name, "float32", "uint8", isa.lanes, 4, 1, func() func(src, dst Mem) {
			return func(src, dst Mem) {
				h, v := isa.half(), isa.wide()
				VPMOVZXBW(src, h)
				VPSLLW(Imm(8), h, h) // it is the upper half of a binary16
				VCVTPH2PS(h, v)
				VMOVUPS(v, dst)
			}
		})
		loop("widenE4M3"+isa.name, "float32", "uint8", isa.lanes, 4, 1, func() func(src, dst Mem) {
			mag, nan, quiet := words(isa.half(), 0x7f), words(isa.half(), 0x7f), words(isa.half(), 0x7e00)
			scale := splat(isa.wide(), 0x43800000) // 256, between the biases
			return func(src, dst Mem) {
				h, s, m, v := isa.half(), isa.half(), isa.half(), isa.wide()
				VPMOVZXBW(src, h)
				VPAND(mag, h, m)
				VPSUBW(m, h, s)
				VPSLLW(Imm(8), s, s)
				VPCMPEQW(nan, m, h)
				VPSLLW(Imm(7), m, m)
				VPANDN(m, h, m)
				VPAND(quiet, h, h)
				VPOR(h, m, m)
				VPOR(s, m, m)
				VCVTPH2PS(m, v)
				VMULPS(scale, v, v)
				VMOVUPS(v, dst)
			}
		})
		for _, f := range []format{
			{"E4M3", 20, 120 << 3, 0x7e, 0x46800000, 121 << 23},
			{"E5M2", 21, 112 << 2, 0x7c, 0x43000000, 113 << 23},
		} {
			loop("narrow"+f.name+isa.name, "uint8", "float32", isa.lanes, 1, 4, func() func(src, dst Mem) {
				if isa.lanes == 16 {
					return f.narrow512()
				}
				return f.narrow256()
			})
		}
	}
}

// format is what narrowing to 8 bits depends on: the bits to drop, the difference of
// the biases in place, the largest pattern, the float whose spacing is that of
// subnormals, and the float32 pattern below which those are.
type format struct {
	name                        string
	drop                        uint64
	bias, top, magic, subnormal uint32
}

func (f format) narrow512() func(src, dst Mem) {
	abs, one, half := splat(ZMM(), 0x7fffffff), splat(ZMM(), 1), splat(ZMM(), 1<<(f.drop-1)-1)
	bias, top, magic, low := splat(ZMM(), f.bias), splat(ZMM(), f.top), splat(ZMM(), f.magic), splat(ZMM(), f.subnormal)
	nan, minus := splat(ZMM(), 0x7f), splat(ZMM(), 0x80)
	return func(src, dst Mem) {
		v, b, r, s := ZMM(), ZMM(), ZMM(), ZMM()
		VMOVUPS(src, v)
		VCMPPS(Imm(3), v, v, reg.K1) // unordered
		VPANDD(abs, v, b)
		VPCMPUD(Imm(1), low, b, reg.K2) // b < low
		VPSRLD(Imm(f.drop), b, r)
		VPANDD(one, r, r)
		VPADDD(half, r, r)
		VPADDD(b, r, r)
		VPSRLD(Imm(f.drop), r, r)
		VPSUBD(bias, r, r)
		VPMINUD(top, r, r)
		VADDPS(magic, b, s)
		VPSUBD(magic, s, reg.K2, r)
		VMOVDQA32(nan, reg.K1, r)
		VPSRLD(Imm(24), v, v)
		VPANDD(minus, v, v)
		VPORD(v, r, r)
		VPMOVDB(r, dst)
	}
}

func (f format) narrow256() func(src, dst Mem) {
	abs, one, half := splat(YMM(), 0x7fffffff), splat(YMM(), 1), splat(YMM(), 1<<(f.drop-1)-1)
	bias, top, magic, low := splat(YMM(), f.bias), splat(YMM(), f.top), splat(YMM(), f.magic), splat(YMM(), f.subnormal)
	nan, minus := splat(YMM(), 0x7f), splat(YMM(), 0x80)
	return func(src, dst Mem) {
		v, b, r, s := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(src, v)
		VPAND(abs, v, b)
		VPSRLD(Imm(f.drop), b, r)
		VPAND(one, r, r)
		VPADDD(half, r, r)
		VPADDD(b, r, r)
		VPSRLD(Imm(f.drop), r, r)
		VPSUBD(bias, r, r)
		VPMINUD(top, r, r)
		VADDPS(magic, b, s)
		VPSUBD(magic, s, s)
		VPCMPGTD(b, low, b) // low > b
		VPBLENDVB(b, s, r, r)
		VCMPPS(Imm(3), v, v, s)
		VPBLENDVB(s, nan, r, r)
		VPSRLD(Imm(24), v, v)
		VPAND(minus, v, v)
		VPOR(v, r, r)
		VPACKUSDW(r, r, r)
		VPERMQ(Imm(0x08), r, r)
		VPACKUSWB(r, r, r)
		VMOVQ(r.AsX(), dst)
	}
}

// words returns a vector of equal 16-bit integers.
func words(v reg.VecVirtual, x uint32) reg.VecVirtual { return splat(v, x|x<<16) }

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
