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

// sumRows writes the sums of rows: columns by four vectors at a time as long as there are so many, for
// each of which all rows are gone through.
func (s *isa) sumRows() {
	for _, k := range rowKinds {
		name := "sumRows" + k.name + s.suffix
		TEXT(name, NOSPLIT, fmt.Sprintf("func(dst *float32, rows *%s, index *int64, n, width, stride int)", k.elem))
		Doc(fmt.Sprintf("%s is SumRows of n rows that lie stride apart; width is a multiple of %d above zero.", name, s.lanes))
		Pragma("noescape")
		dst, rows, index, n, left, each := param("dst"), param("rows"), param("index"), param("n"), param("width"), param("stride")
		at, row := GP64(), GP64()
		SHLQ(Imm(k.shift), each)
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
			XORQ(at, at)
			JMP(LabelRef(label("test")))
			Label(label("rows"))
			MOVQ(Mem{Base: index, Index: at, Scale: 8}, row)
			IMULQ(each, row)
			ADDQ(rows, row)
			for i, sum := range sums {
				k.add(s, Mem{Base: row, Disp: i * s.lanes << k.shift}, sum)
			}
			INCQ(at)
			Label(label("test"))
			CMPQ(at, n)
			JL(LabelRef(label("rows")))
			for i, sum := range sums {
				VMOVUPS(sum, Mem{Base: dst, Disp: i * s.bytes()})
			}
			ADDQ(U32(uint32(vectors*s.bytes())), dst)
			ADDQ(U32(uint32(vectors*s.lanes<<k.shift)), rows)
			SUBQ(U32(uint32(vectors*s.lanes)), left)
			JMP(LabelRef(label("columns")))
			Label(label("done"))
		}
		VZEROUPPER()
		RET()
	}
}
