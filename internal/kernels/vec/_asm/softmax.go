package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// float is an isa with one of its types of floats.
type float struct {
	*isa
	double bool
}

// name returns the name of a function of k vectors of columns.
func (f *float) name(what string, k int) string {
	if f.double {
		what += "F64x"
	}
	return fmt.Sprintf("%s%d%s", what, k, f.suffix)
}

func (f *float) kind() string {
	if f.double {
		return "float64"
	}
	return "float32"
}

func (f *float) columns(k int) int {
	if f.double {
		return k * f.lanes / 2
	}
	return k * f.lanes
}

// doubles are vectors of equal float64s in read-only memory.
var doubles = map[uint64]Mem{}

func f64(x float64) Mem { return quads(math.Float64bits(x)) }

func quads(b uint64) Mem {
	m, ok := doubles[b]
	if !ok {
		m = GLOBL(fmt.Sprintf("vecd%016x", b), RODATA|NOPTR)
		for i := range 8 {
			DATA(8*i, U64(b))
		}
		doubles[b] = m
	}
	return m
}

func (f *float) number(x float64) Mem {
	if f.double {
		return f64(x)
	}
	return f32(x)
}

// The instructions of both types.

func (f *float) mul(a, b, dst Op) {
	if f.double {
		VMULPD(a, b, dst)
	} else {
		VMULPS(a, b, dst)
	}
}

func (f *float) add(a, b, dst Op) {
	if f.double {
		VADDPD(a, b, dst)
	} else {
		VADDPS(a, b, dst)
	}
}

func (f *float) sub(a, b, dst Op) {
	if f.double {
		VSUBPD(a, b, dst)
	} else {
		VSUBPS(a, b, dst)
	}
}

func (f *float) max(a, b, dst Op) {
	if f.double {
		VMAXPD(a, b, dst)
	} else {
		VMAXPS(a, b, dst)
	}
}

// finite sets lanes of v that are −Inf to zero.
func (f *float) finite(v reg.VecVirtual) {
	const unequal = 4
	never := f.number(math.Inf(-1))
	mask := f.vec()
	switch {
	case f.wide && f.double:
		VCMPPD(Imm(unequal), never, v, reg.K1)
		VMOVUPD_Z(v, reg.K1, v)
	case f.wide:
		VCMPPS(Imm(unequal), never, v, reg.K1)
		VMOVUPS_Z(v, reg.K1, v)
	case f.double:
		VCMPPD(Imm(unequal), never, v, mask)
		VANDPD(mask, v, v)
	default:
		VCMPPS(Imm(unequal), never, v, mask)
		VANDPS(mask, v, v)
	}
}

func (f *float) broadcast(name string) reg.VecVirtual {
	if !f.double {
		return f.isa.broadcast(name)
	}
	addr, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := f.vec()
	VBROADCASTSD(addr.Addr, v)
	return v
}

// exp returns eˣ for x of at most 1 ulp of error, and 0 where it would be subnormal; x is spent. A NaN stays one.
func (f *float) exp(x reg.VecVirtual) reg.VecVirtual {
	if !f.double {
		return f.isa.exp(x)
	}
	n, p, b := f.vec(), f.vec(), f.vec()
	above, lanes := f.vec(), K()
	VMOVUPD(f64(-708), b)
	if f.wide {
		VCMPPD(Imm(notLess), b, x, lanes)
	} else {
		VCMPPD(Imm(notLess), b, x, above)
		VANDPD(above, x, x)
	}
	VMOVUPD(f64(750), b)
	VMINPD(x, b, x)
	VMULPD(f64(math.Log2E), x, n)
	if f.wide {
		VRNDSCALEPD(Imm(8), n, n)
	} else {
		VROUNDPD(Imm(8), n, n)
	}
	VFNMADD231PD(f64(6.93147180369123816490e-01), n, x)
	VFNMADD231PD(f64(1.90821492927058770002e-10), n, x)
	// The series of eʳ for r of at most ln 2/2.
	factorial := 1.0
	for i := 2; i <= 13; i++ {
		factorial *= float64(i)
	}
	VMOVUPD(f64(1/factorial), p)
	for i := 13; i > 0; i-- {
		factorial /= float64(i)
		VFMADD213PD(f64(1/factorial), x, p)
	}
	if f.wide {
		VSCALEFPD_Z(n, p, lanes, p)
		return p
	}
	// In two steps, since 2ⁿ alone may not be a float.
	whole, half, power := XMM(), XMM(), f.vec()
	VCVTPD2DQY(n, whole)
	VPSRAD(Imm(1), whole, half)
	VPSUBD(half, whole, whole)
	for _, k := range []reg.VecVirtual{half, whole} {
		VPMOVSXDQ(k, power)
		VPADDQ(quads(1023), power, power)
		VPSLLQ(Imm(52), power, power)
		VMULPD(power, p, p)
	}
	VANDPD(above, p, p)
	return p
}

// at returns vector j from a pointer on.
func (f *float) at(p reg.GPVirtual, j int) Mem { return Mem{Base: p, Disp: j * f.bytes()} }

// stride loads the parameter stride as bytes.
func (f *float) stride() reg.GPVirtual {
	v := param("stride")
	if f.double {
		SHLQ(Imm(3), v)
	} else {
		SHLQ(Imm(2), v)
	}
	return v
}

// softmax writes the step of the softmax of k vectors of columns.
func (f *float) softmax(k int) {
	name := f.name("softmax", k)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(x *%[1]s, rows, stride int, scale %[1]s, most, sum, shrink *%[1]s)", f.kind()))
	Doc(fmt.Sprintf("%s is SoftmaxColumns of %d columns and at least one row.", name, f.columns(k)))
	Pragma("noescape")
	x, stride := param("x"), f.stride()
	scale := f.broadcast("scale")
	most, sum, shrink := param("most"), param("sum"), param("shrink")
	m := make([]reg.VecVirtual, k)
	for j := range m {
		m[j] = f.vec()
		VMOVUPS(f.at(most, j), m[j])
	}
	f.rows("most", stride, []reg.GPVirtual{x}, func(p []reg.GPVirtual) {
		for j := range m {
			v := f.vec()
			f.mul(f.at(p[0], j), scale, v)
			f.max(m[j], v, m[j])
		}
	})
	for j := range m {
		// The base of the differences, zero where nothing is greater than −Inf.
		old := f.vec()
		VMOVUPS(m[j], f.at(most, j))
		f.finite(m[j])
		// most was overwritten: the old value waits in shrink.
		VMOVUPS(f.at(shrink, j), old)
		f.sub(m[j], old, old)
		e := f.exp(old)
		VMOVUPS(e, f.at(shrink, j))
		f.mul(f.at(sum, j), e, e)
		VMOVUPS(e, f.at(sum, j))
	}
	total := make([]reg.VecVirtual, k)
	for j := range total {
		total[j] = f.vec()
		VMOVUPS(f.at(sum, j), total[j])
	}
	f.rows("exp", stride, []reg.GPVirtual{x}, func(p []reg.GPVirtual) {
		for j := range m {
			v := f.vec()
			f.mul(f.at(p[0], j), scale, v)
			f.sub(m[j], v, v)
			e := f.exp(v)
			f.add(e, total[j], total[j])
			VMOVUPS(e, f.at(p[0], j))
		}
	})
	for j := range total {
		VMOVUPS(total[j], f.at(sum, j))
	}
	VZEROUPPER()
	RET()
}

// softmaxGradient writes SoftmaxGradientColumns of k vectors of columns.
func (f *float) softmaxGradient(k int) {
	name := f.name("softmaxGradient", k)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(x, slope *%[1]s, rows, stride int, scale %[1]s, base, mean *%[1]s)", f.kind()))
	Doc(fmt.Sprintf("%s is SoftmaxGradientColumns of %d columns and at least one row.", name, f.columns(k)))
	Pragma("noescape")
	x, slope, stride := param("x"), param("slope"), f.stride()
	scale := f.broadcast("scale")
	base, mean := param("base"), param("mean")
	bases, means := make([]reg.VecVirtual, k), make([]reg.VecVirtual, k)
	for j := range k {
		bases[j], means[j] = f.vec(), f.vec()
		VMOVUPS(f.at(base, j), bases[j])
		VMOVUPS(f.at(mean, j), means[j])
	}
	f.rows("row", stride, []reg.GPVirtual{x, slope}, func(p []reg.GPVirtual) {
		for j := range k {
			v, d := f.vec(), f.vec()
			f.mul(f.at(p[0], j), scale, v)
			f.sub(bases[j], v, v)
			e := f.exp(v)
			VMOVUPS(e, f.at(p[0], j))
			VMOVUPS(f.at(p[1], j), d)
			f.sub(means[j], d, d)
			f.mul(e, d, d)
			VMOVUPS(d, f.at(p[1], j))
		}
	})
	VZEROUPPER()
	RET()
}

// rows writes a loop over the rows that pointers go along.
func (f *float) rows(label string, stride reg.GPVirtual, pointers []reg.GPVirtual, body func(p []reg.GPVirtual)) {
	n := param("rows")
	var p []reg.GPVirtual
	for _, x := range pointers {
		y := GP64()
		MOVQ(x, y)
		p = append(p, y)
	}
	Label(label)
	body(p)
	for _, y := range p {
		ADDQ(stride, y)
	}
	DECQ(n)
	JNZ(LabelRef(label))
}

// dot writes the sum of the products of two vectors.
func (f *float) dot() {
	name := "dot" + f.suffix
	if f.double {
		name = "dotF64" + f.suffix
	}
	TEXT(name, NOSPLIT, fmt.Sprintf("func(x, y *%[1]s, n int) %[1]s", f.kind()))
	Doc(fmt.Sprintf("%s returns the sum of x·y over n > 0 elements, a multiple of %d.", name, f.columns(1)))
	Pragma("noescape")
	x, y, n := param("x"), param("y"), param("n")
	sum := f.vec()
	VXORPS(sum.AsY(), sum.AsY(), sum.AsY())
	Label("loop")
	v := f.vec()
	VMOVUPS(f.at(x, 0), v)
	if f.double {
		VFMADD231PD(f.at(y, 0), v, sum)
	} else {
		VFMADD231PS(f.at(y, 0), v, sum)
	}
	ADDQ(U32(f.bytes()), x)
	ADDQ(U32(f.bytes()), y)
	SUBQ(Imm(uint64(f.columns(1))), n)
	JG(LabelRef("loop"))
	high, low := YMM(), sum.AsY()
	if f.wide {
		VEXTRACTF64X4(Imm(1), sum, high)
		f.add(high, low, low)
	}
	quarter, total := XMM(), sum.AsX()
	VEXTRACTF128(Imm(1), low, quarter)
	f.add(quarter, total, total)
	VPERMILPD(Imm(1), total, quarter)
	f.add(quarter, total, total)
	if !f.double {
		VMOVSHDUP(total, quarter)
		VADDSS(quarter, total, total)
	}
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
