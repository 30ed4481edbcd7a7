// Command asm writes the tiles of package dense for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width.
type isa struct {
	suffix string
	bytes  int // of a vector
	vec    func() reg.VecVirtual
}

var isas = []isa{
	{"AVX512", 64, func() reg.VecVirtual { return ZMM() }},
	{"AVX2", 32, func() reg.VecVirtual { return YMM() }},
}

// across is the vectors of a row of a tile.
const across = 2

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.subtract(4)
		s.subtract(1)
	}
	Generate()
}

// stride returns a parameter that counts elements in bytes.
func stride(name string) reg.GPVirtual {
	p := Load(Param(name), GP64()).(reg.GPVirtual)
	SHLQ(Imm(3), p)
	return p
}

// steps returns the addresses of rows that lie step bytes apart.
func steps(base, step reg.GPVirtual, rows int) []Mem {
	list := []Mem{{Base: base}}
	if rows > 1 {
		three := GP64()
		LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
		list = append(list, Mem{Base: base, Index: step, Scale: 1}, Mem{Base: base, Index: step, Scale: 2}, Mem{Base: base, Index: three, Scale: 1})
	}
	return list
}

// subtract writes the product of rows with a matrix, taken from rows.
func (s *isa) subtract(rows int) {
	TEXT(fmt.Sprintf("subtract%d%s", rows, s.suffix), NOSPLIT,
		"func(c *float64, ldc int, a *float64, row, col int, b *float64, ldb, k, tiles int)")
	Doc(fmt.Sprintf("subtract%d%s is subtract of %d rows and %d·tiles columns.", rows, s.suffix, rows, across*s.bytes/8))
	Pragma("noescape")
	c, b := Load(Param("c"), GP64()).(reg.GPVirtual), Load(Param("b"), GP64()).(reg.GPVirtual)
	tiles, ldb, col := Load(Param("tiles"), GP64()).(reg.GPVirtual), stride("ldb"), stride("col")
	a, below, n := GP64(), GP64(), GP64()
	to, factors := steps(c, stride("ldc"), rows), steps(a, stride("row"), rows)
	Label("tile")
	acc := make([][across]reg.VecVirtual, rows)
	for r := range acc {
		for j := range acc[r] {
			acc[r][j] = s.vec()
			VMOVUPD(at(to[r], j*s.bytes), acc[r][j])
		}
	}
	Load(Param("a"), a)
	Load(Param("k"), n)
	MOVQ(b, below)
	Label("depth")
	var x [across]reg.VecVirtual
	for j := range x {
		x[j] = s.vec()
		VMOVUPD(Mem{Base: below, Disp: j * s.bytes}, x[j])
	}
	for r := range acc {
		f := s.vec()
		VBROADCASTSD(factors[r], f)
		for j := range x {
			VFNMADD231PD(x[j], f, acc[r][j])
		}
	}
	ADDQ(col, a)
	ADDQ(ldb, below)
	DECQ(n)
	JNZ(LabelRef("depth"))
	for r := range acc {
		for j := range acc[r] {
			VMOVUPD(acc[r][j], at(to[r], j*s.bytes))
		}
	}
	ADDQ(U32(across*s.bytes), c)
	ADDQ(U32(across*s.bytes), b)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

func at(m Mem, disp int) Mem {
	m.Disp += disp
	return m
}
