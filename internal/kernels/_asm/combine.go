package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A way combines vectors: out becomes that of x, an element of dst, and y.
type way struct {
	name, what string
	emit       func(x, y, out reg.VecVirtual)
}

func plain(f func(...Op)) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) { f(y, x, out) }
}

// floats is max or min of floats: of zeros the greater or smaller by sign, and NaN if either is. The
// instruction gives y for equal elements and NaN.
func floats(choose, compare, both, add func(...Op), blend func(mask, y, x, out Op)) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) {
		test, special := YMM(), YMM()
		choose(y, x, out)
		compare(Imm(0), y, x, test) // equal
		both(y, x, special)
		blend(test, special, out, out)
		compare(Imm(3), y, x, test) // unordered
		add(y, x, special)
		blend(test, special, out, out)
	}
}

// quads is max or min of 64-bit integers, for which there are comparisons alone.
func quads(least bool) func(x, y, out reg.VecVirtual) {
	return func(x, y, out reg.VecVirtual) {
		above := YMM()
		VPCMPGTQ(y, x, above) // x > y
		if least {
			x, y = y, x
		}
		VBLENDVPD(above, x, y, out)
	}
}

func ways() []way {
	return []way{
		{"addBytes", "sums of bytes", plain(VPADDB)},
		{"addWords", "sums of 16-bit integers", plain(VPADDW)},
		{"addLongs", "sums of 32-bit integers", plain(VPADDD)},
		{"addQuads", "sums of 64-bit integers", plain(VPADDQ)},
		{"addSingles", "sums of float32s", plain(VADDPS)},
		{"addDoubles", "sums of float64s", plain(VADDPD)},
		{"maxUnsigned", "maxima of bytes without a sign", plain(VPMAXUB)},
		{"minUnsigned", "minima of bytes without a sign", plain(VPMINUB)},
		{"maxBytes", "maxima of bytes", plain(VPMAXSB)},
		{"minBytes", "minima of bytes", plain(VPMINSB)},
		{"maxWords", "maxima of 16-bit integers", plain(VPMAXSW)},
		{"minWords", "minima of 16-bit integers", plain(VPMINSW)},
		{"maxLongs", "maxima of 32-bit integers", plain(VPMAXSD)},
		{"minLongs", "minima of 32-bit integers", plain(VPMINSD)},
		{"maxQuads", "maxima of 64-bit integers", quads(false)},
		{"minQuads", "minima of 64-bit integers", quads(true)},
		{"maxSingles", "maxima of float32s", floats(VMAXPS, VCMPPS, VANDPS, VADDPS, VBLENDVPS)},
		{"minSingles", "minima of float32s", floats(VMINPS, VCMPPS, VORPS, VADDPS, VBLENDVPS)},
		{"maxDoubles", "maxima of float64s", floats(VMAXPD, VCMPPD, VANDPD, VADDPD, VBLENDVPD)},
		{"minDoubles", "minima of float64s", floats(VMINPD, VCMPPD, VORPD, VADDPD, VBLENDVPD)},
	}
}

// combine writes the loop of a way.
func combine(w way) {
	TEXT(w.name+"AVX2", NOSPLIT, "func(dst, src *byte, n int)")
	Doc(fmt.Sprintf("%sAVX2 sets n vectors of 32 bytes, n above 0, to %s.", w.name, w.what+" of dst and src"))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label("vector")
	x, y, out := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: dst.(reg.Register)}, x)
	VMOVDQU(Mem{Base: src.(reg.Register)}, y)
	w.emit(x, y, out)
	VMOVDQU(out, Mem{Base: dst.(reg.Register)})
	ADDQ(Imm(32), dst)
	ADDQ(Imm(32), src)
	DECQ(n)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}
