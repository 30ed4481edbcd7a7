package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// subtracting is the registers of subtract.
type subtracting struct {
	*isa
	c, ldc, a, row, col, b, ldb, left reg.GPVirtual // c, a and left go on from rows to rows
}

// subtract writes the product of a matrix with rows, taken from rows. The columns of a tile of b stay in the first
// cache for all rows.
func (s *isa) subtract() {
	TEXT("subtract"+s.suffix, NOSPLIT, "func(c *float64, ldc int, a *float64, row, col int, b *float64, ldb, k, rows, tiles int)")
	Doc(fmt.Sprintf("subtract%s is subtract of so many rows and %d·tiles columns.", s.suffix, across*s.bytes/8))
	Pragma("noescape")
	p := pointers("c", "b")
	first := p[0]
	u := subtracting{isa: s, b: p[1], c: GP64(), a: GP64(), left: GP64(), ldc: stride("ldc"), row: stride("row"), col: stride("col"), ldb: stride("ldb")}
	Label("tile")
	MOVQ(first, u.c)
	Load(Param("a"), u.a)
	Load(Param("rows"), u.left)
	most := s.bytes / 8 // which leaves registers for the operands
	if s.bytes == 32 {
		most = 4
	}
	for rows := most; rows > 0; rows /= 2 {
		u.rows(rows, rows == most)
	}
	ADDQ(U32(across*s.bytes), first)
	ADDQ(U32(across*s.bytes), u.b)
	DECQ(parameter("tiles"))
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// rows writes the next rows of a tile, again while there are so many.
func (u *subtracting) rows(rows int, again bool) {
	begin, end, depth := fmt.Sprint("rows", rows), fmt.Sprint("less", rows), fmt.Sprint("depth", rows)
	Label(begin)
	CMPQ(u.left, Imm(uint64(rows)))
	JL(LabelRef(end))
	below, at, n := GP64(), GP64(), GP64()
	MOVQ(u.c, at)
	acc := make([][across]reg.VecVirtual, rows)
	for r := range acc {
		for j := range acc[r] {
			acc[r][j] = u.vec()
			VMOVUPD(Mem{Base: at, Disp: j * u.bytes}, acc[r][j])
		}
		ADDQ(u.ldc, at)
	}
	from := GP64()
	MOVQ(u.a, from)
	factors := steps(from, u.row, min(rows, 4))
	var second reg.GPVirtual
	if rows == 8 {
		second = GP64()
		LEAQ(Mem{Base: from, Index: u.row, Scale: 4}, second)
		for _, m := range factors[:4] {
			m.Base = second
			factors = append(factors, m)
		}
	}
	Load(Param("k"), n)
	MOVQ(u.b, below)
	Label(depth)
	var x [across]reg.VecVirtual
	for j := range x {
		x[j] = u.vec()
		VMOVUPD(Mem{Base: below, Disp: j * u.bytes}, x[j])
	}
	for r := range acc {
		f := u.vec()
		VBROADCASTSD(factors[r], f)
		for j := range x {
			VFNMADD231PD(x[j], f, acc[r][j])
		}
	}
	ADDQ(u.col, from)
	if rows == 8 {
		ADDQ(u.col, second)
	}
	ADDQ(u.ldb, below)
	DECQ(n)
	JNZ(LabelRef(depth))
	for r := range acc {
		for j := range acc[r] {
			VMOVUPD(acc[r][j], Mem{Base: u.c, Disp: j * u.bytes})
		}
		ADDQ(u.ldc, u.c)
	}
	LEAQ(Mem{Base: u.a, Index: u.row, Scale: uint8(rows)}, u.a)
	SUBQ(Imm(uint64(rows)), u.left)
	if again {
		JMP(LabelRef(begin))
	}
	Label(end)
}
