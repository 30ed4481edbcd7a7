package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowKinds are the elements of rows that are summed: how many bits their size is shifted by, and how a
// vector of them is added.
var rowKinds = []struct {
	name, elem string
	shift      uint64
	add        func(s *isa, m Mem, to reg.VecVirtual)
}{
	{"F32", "float32", 2, func(_ *isa, m Mem, to reg.VecVirtual) { VADDPS(m, to, to) }},
	{"BF16", "uint16", 1, func(s *isa, m Mem, to reg.VecVirtual) {
		v := s.vec()
		VPMOVZXWD(m, v)
		VPSLLD(Imm(16), v, v)
		VADDPS(v, to, to)
	}},
	{"F16", "uint16", 1, func(s *isa, m Mem, to reg.VecVirtual) {
		v := s.vec()
		VCVTPH2PS(m, v)
		VADDPS(v, to, to)
	}},
}

// sumBags writes the sums of rows of bags, one after another: columns by four vectors at a time as long as there are so
// many, for each of which all rows of a bag are gone through.
func (s *isa) sumBags() {
	for _, k := range rowKinds {
		name := "sumBags" + k.name + s.suffix
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float32, rows *%s, index, bounds *int64, bags, width, step, stride int)", k.elem))
		Doc(fmt.Sprintf("%s is SumBags of so many bags, whose bounds may be equal: of width columns, a multiple of %d above zero, of", name, s.lanes),
			"rows that lie stride apart and of dst, whose rows lie step apart.")
		Pragma("noescape")
		dst, rows, index, bounds, bags := param("dst"), param("rows"), param("index"), param("bounds"), param("bags")
		step, each := param("step"), param("stride")
		at, end, row, left, to, from := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
		SHLQ(Imm(k.shift), each)
		SHLQ(Imm(2), step)
		Label("bags")
		Load(Param("width"), left)
		MOVQ(dst, to)
		MOVQ(rows, from)
		MOVQ(Mem{Base: bounds, Disp: 8}, end)
		for _, vectors := range []int{4, 1} {
			label := func(what string) string { return fmt.Sprintf("%s%d", what, vectors) }
			Label(label("columns"))
			CMPQ(left, U32(uint32(vectors*s.lanes)))
			JL(LabelRef(label("done")))
			sums := make([]reg.VecVirtual, vectors)
			for i := range sums {
				sums[i] = s.vec()
				if s.wide {
					VPXORD(sums[i], sums[i], sums[i])
				} else {
					VXORPS(sums[i], sums[i], sums[i])
				}
			}
			MOVQ(Mem{Base: bounds}, at)
			JMP(LabelRef(label("test")))
			Label(label("rows"))
			MOVQ(Mem{Base: index, Index: at, Scale: 8}, row)
			IMULQ(each, row)
			ADDQ(from, row)
			for i, sum := range sums {
				k.add(s, Mem{Base: row, Disp: i * s.lanes << k.shift}, sum)
			}
			INCQ(at)
			Label(label("test"))
			CMPQ(at, end)
			JL(LabelRef(label("rows")))
			for i, sum := range sums {
				VMOVUPS(sum, Mem{Base: to, Disp: i * s.bytes()})
			}
			ADDQ(U32(uint32(vectors*s.bytes())), to)
			ADDQ(U32(uint32(vectors*s.lanes<<k.shift)), from)
			SUBQ(U32(uint32(vectors*s.lanes)), left)
			JMP(LabelRef(label("columns")))
			Label(label("done"))
		}
		ADDQ(Imm(8), bounds)
		ADDQ(step, dst)
		DECQ(bags)
		JNE(LabelRef("bags"))
		VZEROUPPER()
		RET()
	}
}
