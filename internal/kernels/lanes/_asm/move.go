package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element is a type of the numbers of tensors.
type element struct {
	name, typ string
	bytes     int
}

var elements = []element{{"F64", "float64", 8}, {"F32", "float32", 4}, {"I32", "int32", 4}}

// rowsOf returns the addresses of one or of some four rows that lie step bytes apart.
func rowsOf(base, step reg.GPVirtual, count int) []Mem {
	if count == 1 {
		return []Mem{{Base: base}}
	}
	three := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	var list []Mem
	for range count / 4 {
		list = append(list, Mem{Base: base}, Mem{Base: base, Index: step, Scale: 1}, Mem{Base: base, Index: step, Scale: 2}, Mem{Base: base, Index: three, Scale: 1})
		if len(list) < count {
			next := GP64()
			LEAQ(Mem{Base: base, Index: step, Scale: 4}, next)
			base = next
		}
	}
	return list
}

// move writes the loop over as many elements of a part as a vector has lanes. The last round has a mask of those that there are.
func (s *isa) move(e element, single, many string, body func(at []Mem, group reg.GPVirtual, mask reg.Register, count int)) {
	s.parts(func(off reg.GPVirtual) {
		count := s.bytes / 8
		group, n, step, base := pointer(many, off), number("n"), number("stride"), number(single)
		SHLQ(Imm(uint64(e.bytes/4+1)), step)
		if s.bytes < block { // the matrices of this part are off/8 further
			skip := moved(off)
			SHRQ(Imm(3), skip)
			IMULQ(step, skip)
			ADDQ(skip, base)
		}
		TESTQ(n, n)
		JZ(LabelRef("none"))
		Label("block")
		body(rowsOf(base, step, count), group, s.tail(e, n, count), count)
		ADDQ(U32(count*e.bytes), base)
		ADDQ(U32(count*block), group)
		SUBQ(Imm(uint64(count)), n)
		JG(LabelRef("block"))
		Label("none")
	})
}

// tail returns a mask of the first n lanes.
func (s *isa) tail(e element, n reg.GPVirtual, count int) reg.Register {
	most := GP64()
	MOVQ(U32(count), most)
	CMPQ(n, most)
	CMOVQLT(n, most)
	if s.bytes == 64 {
		bits, k := GP64(), K()
		MOVQ(I32(-1), bits)
		BZHIQ(most, bits, bits)
		KMOVW(bits.As32(), k)
		return k
	}
	// A window of ones and zeros begins so far before the zeros.
	window := GP64()
	LEAQ(ones(e.bytes), window)
	NEGQ(most)
	if e.bytes == 4 {
		v := XMM()
		VMOVDQU(Mem{Base: window, Index: most, Scale: 4, Disp: 16}, v)
		return v
	}
	v := YMM()
	VMOVDQU(Mem{Base: window, Index: most, Scale: 8, Disp: 32}, v)
	return v
}

var windows = map[int]Mem{}

// ones is four elements of ones, then four of zeros.
func ones(bytes int) Mem {
	if m, ok := windows[bytes]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("ones%d", bytes), RODATA|NOPTR)
	for i := range 2 * bytes {
		DATA(4*i, U32(0xffffffff*uint32(1-i/bytes)))
	}
	windows[bytes] = m
	return m
}

// gather writes the elements of matrices as blocks.
func (s *isa) gather(e element) {
	s.begin("gather"+e.name, fmt.Sprintf("func(dst *float64, src *%s, stride, n int)", e.typ), "is Gather.")
	s.move(e, "src", "dst", func(at []Mem, group reg.GPVirtual, mask reg.Register, count int) {
		rows := make([]reg.VecVirtual, count)
		for i := range rows {
			rows[i] = s.load(e, at[i], mask)
		}
		for i, v := range s.transposed(rows) {
			VMOVUPD(v, Mem{Base: group, Disp: i * block})
		}
	})
}

// scatter writes blocks as the elements of matrices.
func (s *isa) scatter(e element) {
	s.begin("scatter"+e.name, fmt.Sprintf("func(dst *%s, src *float64, stride, n int)", e.typ), "is Scatter.")
	s.move(e, "dst", "src", func(at []Mem, group reg.GPVirtual, mask reg.Register, count int) {
		rows := make([]reg.VecVirtual, count)
		for i := range rows {
			rows[i] = s.loaded(Mem{Base: group, Disp: i * block})
		}
		for i, v := range s.transposed(rows) {
			s.store(e, v, mask, at[i])
		}
	})
}

func (s *isa) load(e element, m Mem, mask reg.Register) reg.VecVirtual {
	v := s.vec()
	if s.bytes == 64 {
		switch e.name {
		case "F64":
			VMOVUPD_Z(m, mask, v)
		case "F32":
			VCVTPS2PD_Z(m, mask, v)
		default:
			VCVTDQ2PD_Z(m, mask, v)
		}
		return v
	}
	if e.name == "F64" {
		VMASKMOVPD(m, mask, v)
		return v
	}
	x := XMM()
	VMASKMOVPS(m, mask, x)
	if e.name == "F32" {
		VCVTPS2PD(x, v)
	} else {
		VCVTDQ2PD(x, v)
	}
	return v
}

func (s *isa) store(e element, v reg.VecVirtual, mask reg.Register, m Mem) {
	switch {
	case e.name == "F64" && s.bytes == 64:
		VMOVUPD(v, mask, m)
	case e.name == "F64":
		VMASKMOVPD(v, mask, m)
	case s.bytes == 64:
		y := YMM()
		if e.name == "F32" {
			VCVTPD2PS(v, y)
			VMOVUPS(y, mask, m)
		} else {
			VCVTTPD2DQ(v, y)
			VMOVDQU32(y, mask, m)
		}
	default:
		x := XMM()
		if e.name == "F32" {
			VCVTPD2PSY(v, x)
		} else {
			VCVTTPD2DQY(v, x)
		}
		VMASKMOVPS(x, mask, m)
	}
}

// transposed returns vectors with rows and columns exchanged.
func (s *isa) transposed(r []reg.VecVirtual) []reg.VecVirtual {
	low, high := make([]reg.VecVirtual, len(r)/2), make([]reg.VecVirtual, len(r)/2)
	for i := range low {
		low[i], high[i] = s.vec(), s.vec()
		VUNPCKLPD(r[2*i+1], r[2*i], low[i])
		VUNPCKHPD(r[2*i+1], r[2*i], high[i])
	}
	out := make([]reg.VecVirtual, len(r))
	for i, half := range [][]reg.VecVirtual{low, high} {
		if s.bytes == 32 {
			for j, sides := range []uint8{0x20, 0x31} {
				out[i+2*j] = s.vec()
				VPERM2F128(Imm(uint64(sides)), half[1], half[0], out[i+2*j])
			}
			continue
		}
		for j, first := range []uint8{0x88, 0xdd} { // even and odd quarters
			x, y := s.vec(), s.vec()
			VSHUFF64X2(Imm(uint64(first)), half[1], half[0], x)
			VSHUFF64X2(Imm(uint64(first)), half[3], half[2], y)
			for k, second := range []uint8{0x88, 0xdd} {
				out[i+2*j+4*k] = s.vec()
				VSHUFF64X2(Imm(uint64(second)), y, x, out[i+2*j+4*k])
			}
		}
	}
	return out
}
