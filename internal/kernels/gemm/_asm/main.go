// Command asm writes the inner loops of package gemm for amd64.
package main

import (
	"flag"
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/loris-ml/loris/internal/kernels/asm/bf16"
)

// elem is an element type with the instructions of one vector width.
type elem struct {
	suffix    string // in names
	goType    string
	size      int
	lanes     int
	registers int // that hold vectors
	vec       func() reg.VecVirtual
	zero      func(v Op)
	load      func(m, v Op)
	store     func(v, m Op)
	splat     func(m, v Op)
	fma       func(x, y, acc Op)
	// sum adds the products of the operands' elements to a sum in the inner loops, if
	// that is not fma.
	sum    func(x, y, acc Op)
	mul    func(x, y, dst Op)
	add    func(x, y, dst Op)
	max    func(x, y, dst Op) // x where one is NaN or they are equal
	lo, hi func(b, a, dst Op) // interleave within 128-bit lanes
	masked bool               // loads and stores take K registers, else vectors of them
	// loadK zeroes what the mask leaves out; storeK leaves it alone.
	loadK  func(m, k, v Op)
	storeK func(v, k, m Op)
}

var f32z = &elem{
	suffix: "F32AVX512", goType: "float32", size: 4, lanes: 16, registers: 32, vec: ZMM,
	zero: func(v Op) { VPXORD(v, v, v) }, load: func(m, v Op) { VMOVUPS(m, v) }, store: func(v, m Op) { VMOVUPS(v, m) },
	splat: func(m, v Op) { VBROADCASTSS(m, v) }, fma: func(x, y, acc Op) { VFMADD231PS(x, y, acc) },
	mul: func(x, y, d Op) { VMULPS(x, y, d) }, add: func(x, y, d Op) { VADDPS(x, y, d) }, max: func(x, y, d Op) { VMAXPS(x, y, d) }, lo: func(b, a, d Op) { VUNPCKLPS(b, a, d) }, hi: func(b, a, d Op) { VUNPCKHPS(b, a, d) },
	masked: true, loadK: func(m, k, v Op) { VMOVUPS_Z(m, k, v) }, storeK: func(v, k, m Op) { VMOVUPS(v, k, m) },
}

// bf16z sums products of pairs of bfloat16, two of which are an element of an
// operand, in float32. What VPDPWSSD is written for becomes VDPBF16PS, see package bf16.
var bf16z = &elem{
	suffix: pairsSuffix, goType: f32z.goType, size: f32z.size, lanes: f32z.lanes, registers: f32z.registers, vec: f32z.vec,
	zero: f32z.zero, load: f32z.load, store: f32z.store,
	splat: f32z.splat, fma: f32z.fma, sum: func(x, y, acc Op) { VPDPWSSD(x, y, acc) },
	mul: f32z.mul, add: f32z.add, lo: f32z.lo, hi: f32z.hi,
	masked: true, loadK: f32z.loadK, storeK: f32z.storeK,
}

const pairsSuffix = bf16.Suffix

var f64z = &elem{
	suffix: "F64AVX512", goType: "float64", size: 8, lanes: 8, registers: 32, vec: ZMM,
	zero: func(v Op) { VPXORD(v, v, v) }, load: func(m, v Op) { VMOVUPD(m, v) }, store: func(v, m Op) { VMOVUPD(v, m) },
	splat: func(m, v Op) { VBROADCASTSD(m, v) }, fma: func(x, y, acc Op) { VFMADD231PD(x, y, acc) },
	mul: func(x, y, d Op) { VMULPD(x, y, d) }, add: func(x, y, d Op) { VADDPD(x, y, d) }, max: func(x, y, d Op) { VMAXPD(x, y, d) }, lo: func(b, a, d Op) { VUNPCKLPD(b, a, d) }, hi: func(b, a, d Op) { VUNPCKHPD(b, a, d) },
	masked: true, loadK: func(m, k, v Op) { VMOVUPD_Z(m, k, v) }, storeK: func(v, k, m Op) { VMOVUPD(v, k, m) },
}

var f32y = &elem{
	suffix: "F32AVX2", goType: "float32", size: 4, lanes: 8, registers: 16, vec: YMM,
	zero: func(v Op) { VXORPS(v, v, v) }, load: func(m, v Op) { VMOVUPS(m, v) }, store: func(v, m Op) { VMOVUPS(v, m) },
	splat: func(m, v Op) { VBROADCASTSS(m, v) }, fma: func(x, y, acc Op) { VFMADD231PS(x, y, acc) },
	mul: func(x, y, d Op) { VMULPS(x, y, d) }, add: func(x, y, d Op) { VADDPS(x, y, d) }, max: func(x, y, d Op) { VMAXPS(x, y, d) }, lo: func(b, a, d Op) { VUNPCKLPS(b, a, d) }, hi: func(b, a, d Op) { VUNPCKHPS(b, a, d) },
	loadK: func(m, k, v Op) { VMASKMOVPS(m, k, v) }, storeK: func(v, k, m Op) { VMASKMOVPS(v, k, m) },
}

var f64y = &elem{
	suffix: "F64AVX2", goType: "float64", size: 8, lanes: 4, registers: 16, vec: YMM,
	zero: func(v Op) { VXORPD(v, v, v) }, load: func(m, v Op) { VMOVUPD(m, v) }, store: func(v, m Op) { VMOVUPD(v, m) },
	splat: func(m, v Op) { VBROADCASTSD(m, v) }, fma: func(x, y, acc Op) { VFMADD231PD(x, y, acc) },
	mul: func(x, y, d Op) { VMULPD(x, y, d) }, add: func(x, y, d Op) { VADDPD(x, y, d) }, max: func(x, y, d Op) { VMAXPD(x, y, d) }, lo: func(b, a, d Op) { VUNPCKLPD(b, a, d) }, hi: func(b, a, d Op) { VUNPCKHPD(b, a, d) },
	loadK: func(m, k, v Op) { VMASKMOVPD(m, k, v) }, storeK: func(v, k, m Op) { VMASKMOVPD(v, k, m) },
}

// load reads a parameter into a register of its own.
func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// accumulate adds products of elements to a sum.
func (e *elem) accumulate(x, y, acc Op) {
	if e.sum != nil {
		e.sum(x, y, acc)
		return
	}
	e.fma(x, y, acc)
}

// bytes turns a count of elements into one of bytes.
func (e *elem) bytes(r Op) { bytes(r, e.size) }

// bytes multiplies by a size, which is a power of two.
func bytes(r Op, size int) {
	for ; size > 1; size /= 2 {
		ADDQ(r, r)
	}
}

// label returns a name that is unique within a function.
func label(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, e := range []*elem{f32z, f64z} {
		for m := 1; m <= 14; m++ {
			tile(e, m, 2, e.own())
			tile(e, m, 1, e.own())
			panels(e, m)
		}
		for m := 1; m <= 4; m++ {
			tile(e, m, 4, e.own())
		}
		for m := 1; m <= 6; m++ {
			dot(e, m, e.own())
		}
		single(e)
		copyRows(e)
		copyPanels(e)
		transpose512(e)
		finish(e)
		times(e)
	}
	for _, e := range []*elem{f32y, f64y} {
		for m := 1; m <= 6; m++ {
			tile(e, m, 2, e.own())
		}
		for m := 1; m <= 3; m++ {
			tile(e, m, 4, e.own())
		}
		for m := 1; m <= 2; m++ {
			dot(e, m, e.own())
		}
		single(e)
		copyRow(e)
		copyPanels(e)
		transpose256(e)
		finish(e)
		times(e)
	}
	for m := 1; m <= 14; m++ {
		tile(bf16z, m, 2, bf16z.own())
		tile(bf16z, m, 1, bf16z.own())
		panels(bf16z, m)
	}
	for m := 1; m <= 4; m++ {
		tile(bf16z, m, 4, bf16z.own())
	}
	for m := 1; m <= 6; m++ {
		dot(bf16z, m, bf16z.own())
	}
	for _, from := range []*stored{bf16s, f16s} {
		for m := 1; m <= 14; m++ {
			tile(f32z, m, 2, from)
			tile(f32z, m, 1, from)
		}
		for m := 1; m <= 4; m++ {
			tile(f32z, m, 4, from)
		}
		for m := 1; m <= 6; m++ {
			dot(f32z, m, from)
		}
		for m := 1; m <= 6; m++ {
			tile(f32y, m, 2, from)
		}
		for m := 1; m <= 3; m++ {
			tile(f32y, m, 4, from)
		}
		for m := 1; m <= 2; m++ {
			dot(f32y, m, from)
		}
	}
	pairRows()
	pairPanels()
	transposePairs()
	Generate()
	if err := bf16.Encode(flag.Lookup("out").Value.String()); err != nil {
		log.Fatal(err)
	}
}
