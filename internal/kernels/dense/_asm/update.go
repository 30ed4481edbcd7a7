package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// update writes the change of rows by a matrix of rank two and the sum of the changed rows.
func (s *isa) update() {
	TEXT("update"+s.suffix, NOSPLIT, "func(a *float64, lda int, v, w, x, p, q, y *float64, rows, blocks int)")
	Doc(fmt.Sprintf("update%s is update of so many rows and %d·blocks columns.", s.suffix, lanes))
	Pragma("noescape")
	u := updating{isa: s, a: Load(Param("a"), GP64()).(reg.GPVirtual), lda: stride("lda"), left: Load(Param("rows"), GP64()).(reg.GPVirtual)}
	for i, name := range []string{"v", "w", "x"} {
		u.factors[i] = Load(Param(name), GP64()).(reg.GPVirtual)
	}
	CMPQ(u.left, Imm(4))
	JL(LabelRef("one"))
	Label("four")
	u.rows(4)
	CMPQ(u.left, Imm(4))
	JGE(LabelRef("four"))
	Label("one")
	TESTQ(u.left, u.left)
	JZ(LabelRef("done"))
	Label("single")
	u.rows(1)
	TESTQ(u.left, u.left)
	JNZ(LabelRef("single"))
	Label("done")
	VZEROUPPER()
	RET()
}

// updating is the registers of update.
type updating struct {
	*isa
	a, lda, left reg.GPVirtual
	factors      [3]reg.GPVirtual
}

// rows writes the next rows.
func (u *updating) rows(rows int) {
	var f [4][3]reg.VecVirtual
	for r := range rows {
		for i, from := range u.factors {
			f[r][i] = u.vec()
			VBROADCASTSD(Mem{Base: from, Disp: 8 * r}, f[r][i])
		}
	}
	cur, p, q, y, n := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(u.a, cur)
	Load(Param("p"), p)
	Load(Param("q"), q)
	Load(Param("y"), y)
	Load(Param("blocks"), n)
	at4 := steps(cur, u.lda, rows)
	block := fmt.Sprintf("block%d", rows)
	Label(block)
	for j := range lanes * 8 / u.bytes {
		disp := j * u.bytes
		sum := u.vec()
		VMOVUPD(Mem{Base: y, Disp: disp}, sum)
		first, second := Op(Mem{Base: p, Disp: disp}), Op(Mem{Base: q, Disp: disp})
		if u.bytes == 64 { // which has registers for them
			x, z := u.vec(), u.vec()
			VMOVUPD(first, x)
			VMOVUPD(second, z)
			first, second = x, z
		}
		for r := range rows {
			a := u.vec()
			VMOVUPD(at(at4[r], disp), a)
			VFNMADD231PD(first, f[r][0], a)
			VFNMADD231PD(second, f[r][1], a)
			VMOVUPD(a, at(at4[r], disp))
			VFMADD231PD(a, f[r][2], sum)
		}
		VMOVUPD(sum, Mem{Base: y, Disp: disp})
	}
	for _, r := range []reg.GPVirtual{cur, p, q, y} {
		ADDQ(U32(lanes*8), r)
	}
	DECQ(n)
	JNZ(LabelRef(block))
	for range rows {
		ADDQ(u.lda, u.a)
	}
	for _, from := range u.factors {
		ADDQ(Imm(uint64(8*rows)), from)
	}
	SUBQ(Imm(uint64(rows)), u.left)
}
