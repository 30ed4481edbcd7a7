package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// parameter returns where a parameter is. To load a number from it by an instruction without a vector prefix takes
// hundreds of cycles where registers have been vectors of 64 bytes.
func parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// broadcast returns a parameter in all lanes.
func (s *isa) broadcast(name string) reg.VecVirtual {
	v := s.vec()
	VBROADCASTSD(parameter(name), v)
	return v
}

// ones returns 1 in all lanes.
func (s *isa) ones() reg.VecVirtual {
	v, bits := s.vec(), GP64()
	MOVQ(U64(0x3FF0000000000000), bits)
	x := XMM()
	VMOVQ(bits, x)
	VBROADCASTSD(x, v)
	return v
}

// sizes returns the bits of a number's size in all lanes.
func (s *isa) sizes() reg.VecVirtual {
	v, bits, x := s.vec(), GP64(), XMM()
	MOVQ(U64(0x7FFFFFFFFFFFFFFF), bits)
	VMOVQ(bits, x)
	VBROADCASTSD(x, v)
	return v
}

// pointers returns the parameters of those names.
func pointers(names ...string) (list []reg.GPVirtual) {
	for _, name := range names {
		list = append(list, Load(Param(name), GP64()).(reg.GPVirtual))
	}
	return list
}

// next writes the end of a loop over blocks, through which pointers go on.
func next(n reg.GPVirtual, list ...reg.GPVirtual) {
	for _, p := range list {
		ADDQ(U32(lanes*8), p)
	}
	DECQ(n)
	JNZ(LabelRef("block"))
}

// sums writes the sums over the terms of a secular equation.
func (s *isa) sums() {
	TEXT("sums"+s.suffix, NOSPLIT, "func(d, z *float64, origin, offset float64, x, sums *float64, blocks int)")
	Doc(fmt.Sprintf("sums%s is secular.at of %d·blocks terms.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("d", "z", "x", "sums", "blocks")
	d, z, x, out, n := p[0], p[1], p[2], p[3], p[4]
	origin, offset, one := s.broadcast("origin"), s.broadcast("offset"), s.ones()
	sign := s.sizes()
	across := lanes * 8 / s.bytes
	acc := make([][]reg.VecVirtual, 3)
	for i := range acc {
		for range across {
			v := s.vec()
			VXORPD(v.AsY(), v.AsY(), v.AsY())
			acc[i] = append(acc[i], v)
		}
	}
	Label("block")
	for j := range across {
		v, term := s.vec(), s.vec()
		VMOVUPD(Mem{Base: d, Disp: j * s.bytes}, v)
		VSUBPD(origin, v, v)
		VSUBPD(offset, v, v)
		VMOVUPD(v, Mem{Base: x, Disp: j * s.bytes})
		VDIVPD(v, one, v)
		VMULPD(Mem{Base: z, Disp: j * s.bytes}, v, term)
		VADDPD(term, acc[0][j], acc[0][j])
		VFMADD231PD(term, v, acc[1][j])
		VANDPD(sign, term, term)
		VADDPD(term, acc[2][j], acc[2][j])
	}
	next(n, d, z, x)
	for i := range acc {
		VMOVSD(folded(acc[i]), Mem{Base: out, Disp: 8 * i})
	}
	VZEROUPPER()
	RET()
}

// ratios writes the products of numbers with quotients.
func (s *isa) ratios() {
	TEXT("ratios"+s.suffix, NOSPLIT, "func(y, x, d *float64, from float64, blocks int)")
	Doc(fmt.Sprintf("ratios%s multiplies %d·blocks numbers by x/(d-from).", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("y", "x", "d", "blocks")
	y, x, d, n := p[0], p[1], p[2], p[3]
	from := s.broadcast("from")
	Label("block")
	for j := range lanes * 8 / s.bytes {
		gap, v := s.vec(), s.vec()
		VMOVUPD(Mem{Base: d, Disp: j * s.bytes}, gap)
		VSUBPD(from, gap, gap)
		VMOVUPD(Mem{Base: x, Disp: j * s.bytes}, v)
		VDIVPD(gap, v, v)
		VMULPD(Mem{Base: y, Disp: j * s.bytes}, v, v)
		VMOVUPD(v, Mem{Base: y, Disp: j * s.bytes})
	}
	next(n, y, x, d)
	VZEROUPPER()
	RET()
}

// quotients writes quotients and their product with a number.
func (s *isa) quotients() {
	TEXT("quotients"+s.suffix, NOSPLIT, "func(x, z *float64, factor float64, blocks int)")
	Doc(fmt.Sprintf("quotients%s makes %d·blocks numbers x factor·z/x.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("x", "z", "blocks")
	x, z, n := p[0], p[1], p[2]
	factor := s.broadcast("factor")
	Label("block")
	for j := range lanes * 8 / s.bytes {
		v := s.vec()
		VMULPD(Mem{Base: z, Disp: j * s.bytes}, factor, v)
		VDIVPD(Mem{Base: x, Disp: j * s.bytes}, v, v)
		VMOVUPD(v, Mem{Base: x, Disp: j * s.bytes})
	}
	next(n, x, z)
	VZEROUPPER()
	RET()
}
