package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// both writes the products of rows with a vector, and of another with the rows.
func (s *isa) both() {
	TEXT("both"+s.suffix, NOSPLIT, "func(a *float64, lda int, f, down, x, y *float64, rows, blocks int)")
	Doc(fmt.Sprintf("both%s is both of so many rows and %d·blocks columns.", s.suffix, lanes))
	Pragma("noescape")
	p := pointers("a", "f", "down", "rows")
	a, f, down, left := p[0], p[1], p[2], p[3]
	lda := stride("lda")
	CMPQ(left, Imm(4))
	JL(LabelRef("one"))
	Label("four")
	s.bothRows(4, a, lda, f, down, left)
	CMPQ(left, Imm(4))
	JGE(LabelRef("four"))
	Label("one")
	TESTQ(left, left)
	JZ(LabelRef("done"))
	Label("single")
	s.bothRows(1, a, lda, f, down, left)
	TESTQ(left, left)
	JNZ(LabelRef("single"))
	Label("done")
	VZEROUPPER()
	RET()
}

// bothRows writes the next rows.
func (s *isa) bothRows(rows int, a, lda, f, down, left reg.GPVirtual) {
	across := lanes * 8 / s.bytes
	factors, sums := make([]reg.VecVirtual, rows), make([][]reg.VecVirtual, rows)
	for r := range rows {
		factors[r] = s.vec()
		VBROADCASTSD(Mem{Base: f, Disp: 8 * r}, factors[r])
		for range across {
			v := s.vec()
			VXORPD(v.AsY(), v.AsY(), v.AsY())
			sums[r] = append(sums[r], v)
		}
	}
	p := pointers("x", "y", "blocks")
	x, y, n, cur := p[0], p[1], p[2], GP64()
	MOVQ(a, cur)
	from := steps(cur, lda, rows)
	block := fmt.Sprintf("block%d", rows)
	Label(block)
	for j := range across {
		disp := j * s.bytes
		v, to := s.vec(), s.vec()
		VMOVUPD(Mem{Base: y, Disp: disp}, to)
		for r := range rows {
			VMOVUPD(at(from[r], disp), v)
			VFMADD231PD(Mem{Base: x, Disp: disp}, v, sums[r][j])
			VFMADD231PD(factors[r], v, to)
		}
		VMOVUPD(to, Mem{Base: y, Disp: disp})
	}
	for _, p := range []reg.GPVirtual{cur, x, y} {
		ADDQ(U32(lanes*8), p)
	}
	DECQ(n)
	JNZ(LabelRef(block))
	for r := range rows {
		sum := folded(sums[r])
		VADDSD(Mem{Base: down, Disp: 8 * r}, sum, sum)
		VMOVSD(sum, Mem{Base: down, Disp: 8 * r})
		ADDQ(lda, a)
	}
	ADDQ(Imm(uint64(8*rows)), f)
	ADDQ(Imm(uint64(8*rows)), down)
	SUBQ(Imm(uint64(rows)), left)
}
