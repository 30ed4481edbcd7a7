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
		s.subtract()
		s.solve("Unit", nil)
		s.solve("Quotient", s.quotient)
		s.solve("Divide", s.divided)
		s.quotientsBy()
		s.greatest()
		s.exchange()
		s.dots(4)
		s.dots(1)
		s.rotate()
		s.reflect()
		s.update()
		s.both()
		s.sums()
		s.ratios()
		s.quotients()
		s.convert("widen", "float64", "float32")
		s.convert("narrow", "float32", "float64")
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

// lanes is how many sums a product of two rows is made of.
const lanes = 8

// dots writes the products of rows with a row.
func (s *isa) dots(rows int) {
	TEXT(fmt.Sprintf("dots%d%s", rows, s.suffix), NOSPLIT, "func(y, a *float64, lda int, x *float64, blocks int)")
	Doc(fmt.Sprintf("dots%d%s is dots of %d rows and %d·blocks columns.", rows, s.suffix, rows, lanes))
	Pragma("noescape")
	y, x := Load(Param("y"), GP64()).(reg.GPVirtual), Load(Param("x"), GP64()).(reg.GPVirtual)
	a, n := Load(Param("a"), GP64()).(reg.GPVirtual), Load(Param("blocks"), GP64()).(reg.GPVirtual)
	from := steps(a, stride("lda"), rows)
	across := lanes * 8 / s.bytes
	acc := make([][]reg.VecVirtual, rows)
	for r := range acc {
		for range across {
			v := s.vec()
			VXORPD(v.AsY(), v.AsY(), v.AsY())
			acc[r] = append(acc[r], v)
		}
	}
	Label("block")
	for j := range across {
		v := s.vec()
		VMOVUPD(Mem{Base: x, Disp: j * s.bytes}, v)
		for r := range acc {
			VFMADD231PD(at(from[r], j*s.bytes), v, acc[r][j])
		}
	}
	ADDQ(U32(lanes*8), a)
	ADDQ(U32(lanes*8), x)
	DECQ(n)
	JNZ(LabelRef("block"))
	for r := range acc {
		VMOVSD(folded(acc[r]), Mem{Base: y, Disp: 8 * r})
	}
	VZEROUPPER()
	RET()
}

// folded returns the sum of the lanes of vectors, which it changes.
func folded(acc []reg.VecVirtual) reg.VecVirtual {
	half := YMM()
	if len(acc) == 1 {
		VEXTRACTF64X4(Imm(1), acc[0], half)
	} else {
		half = acc[1].AsY().(reg.VecVirtual)
	}
	sum := acc[0].AsY()
	VADDPD(half, sum, sum)
	high := XMM()
	VEXTRACTF128(Imm(1), sum, high)
	low := acc[0].AsX().(reg.VecVirtual)
	VADDPD(high, low, low)
	VUNPCKHPD(low, low, high)
	VADDSD(high, low, low)
	return low
}

// rotate writes the rotations of each row with the next.
func (s *isa) rotate() {
	TEXT("rotate"+s.suffix, NOSPLIT, "func(z *float64, step int, c, s *float64, k, tiles int)")
	Doc(fmt.Sprintf("rotate%s is rotate of %d·tiles columns.", s.suffix, across*s.bytes/8))
	Pragma("noescape")
	z, tiles, step := Load(Param("z"), GP64()).(reg.GPVirtual), Load(Param("tiles"), GP64()).(reg.GPVirtual), stride("step")
	c, sine, row, n := GP64(), GP64(), GP64(), GP64()
	Label("tile")
	MOVQ(z, row)
	Load(Param("c"), c)
	Load(Param("s"), sine)
	Load(Param("k"), n)
	var carried [across]reg.VecVirtual
	for j := range carried {
		carried[j] = s.vec()
		VMOVUPD(Mem{Base: row, Disp: j * s.bytes}, carried[j])
	}
	Label("row")
	cosines, sines := s.vec(), s.vec()
	VBROADCASTSD(Mem{Base: c}, cosines)
	VBROADCASTSD(Mem{Base: sine}, sines)
	for j := range carried {
		x, to := s.vec(), s.vec()
		VMOVUPD(Mem{Base: row, Index: step, Scale: 1, Disp: j * s.bytes}, x)
		VMULPD(sines, x, to)
		VFMADD231PD(cosines, carried[j], to)
		VMOVUPD(to, Mem{Base: row, Disp: j * s.bytes})
		VMULPD(cosines, x, x)
		VFNMADD231PD(sines, carried[j], x)
		VMOVAPD(x, carried[j])
	}
	ADDQ(step, row)
	ADDQ(Imm(8), c)
	ADDQ(Imm(8), sine)
	DECQ(n)
	JNZ(LabelRef("row"))
	for j := range carried {
		VMOVUPD(carried[j], Mem{Base: row, Disp: j * s.bytes})
	}
	ADDQ(U32(across*s.bytes), z)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// reflect writes the reflections of each three rows.
func (s *isa) reflect() {
	TEXT("reflect"+s.suffix, NOSPLIT, "func(z *float64, step int, f *float64, k, tiles int)")
	Doc(fmt.Sprintf("reflect%s is reflect of %d·tiles columns.", s.suffix, across*s.bytes/8))
	Pragma("noescape")
	z, tiles, step := Load(Param("z"), GP64()).(reg.GPVirtual), Load(Param("tiles"), GP64()).(reg.GPVirtual), stride("step")
	if s.bytes == 64 { // has the registers for two tiles at a time, whose chains of sums take turns
		Label("two")
		CMPQ(tiles, Imm(2))
		JLT(LabelRef("rest"))
		s.reflectTiles("two", 2, z, step)
		SUBQ(Imm(2), tiles)
		JMP(LabelRef("two"))
		Label("rest")
	}
	TESTQ(tiles, tiles)
	JZ(LabelRef("done"))
	Label("one")
	s.reflectTiles("one", 1, z, step)
	DECQ(tiles)
	JNZ(LabelRef("one"))
	Label("done")
	VZEROUPPER()
	RET()
}

// reflectTiles writes the loop over the rows of so many tiles.
func (s *isa) reflectTiles(name string, tiles int, z, step reg.GPVirtual) {
	f, row, n := Load(Param("f"), GP64()).(reg.GPVirtual), GP64(), Load(Param("k"), GP64())
	MOVQ(z, row)
	width := tiles * across
	first, second := make([]reg.VecVirtual, width), make([]reg.VecVirtual, width)
	for j := range width {
		first[j], second[j] = s.vec(), s.vec()
		VMOVUPD(Mem{Base: row, Disp: j * s.bytes}, first[j])
		VMOVUPD(Mem{Base: row, Index: step, Scale: 1, Disp: j * s.bytes}, second[j])
	}
	Label(name + "row")
	var numbers [5]reg.VecVirtual
	for i := range numbers {
		numbers[i] = s.vec()
		VBROADCASTSD(Mem{Base: f, Disp: 8 * i}, numbers[i])
	}
	for j := range width {
		third, sum := s.vec(), s.vec()
		VMOVUPD(Mem{Base: row, Index: step, Scale: 2, Disp: j * s.bytes}, third)
		VMOVAPD(first[j], sum)
		VFMADD231PD(numbers[1], third, sum)
		VFMADD231PD(numbers[0], second[j], sum)
		VFNMADD231PD(numbers[2], sum, first[j])
		VMOVUPD(first[j], Mem{Base: row, Disp: j * s.bytes})
		VFNMADD231PD(numbers[3], sum, second[j])
		VFNMADD231PD(numbers[4], sum, third)
		VMOVAPD(second[j], first[j])
		VMOVAPD(third, second[j])
	}
	ADDQ(step, row)
	ADDQ(Imm(40), f)
	DECQ(n)
	JNZ(LabelRef(name + "row"))
	for j := range width {
		VMOVUPD(first[j], Mem{Base: row, Disp: j * s.bytes})
		VMOVUPD(second[j], Mem{Base: row, Index: step, Scale: 1, Disp: j * s.bytes})
	}
	ADDQ(U32(width*s.bytes), z)
}

// convert writes the conversion of numbers, lanes of them at a time.
func (s *isa) convert(name, to, from string) {
	TEXT(name+s.suffix, NOSPLIT, fmt.Sprintf("func(dst *%s, src *%s, blocks int)", to, from))
	Doc(fmt.Sprintf("%s%s converts %d·blocks numbers of src.", name, s.suffix, lanes))
	Pragma("noescape")
	dst, src, n := Load(Param("dst"), GP64()).(reg.GPVirtual), Load(Param("src"), GP64()).(reg.GPVirtual), Load(Param("blocks"), GP64())
	Label("block")
	for j := range lanes * 8 / s.bytes {
		wide, narrow := Mem{Base: src, Disp: j * s.bytes}, Mem{Base: dst, Disp: j * s.bytes / 2}
		if name == "widen" {
			wide, narrow = Mem{Base: dst, Disp: j * s.bytes}, Mem{Base: src, Disp: j * s.bytes / 2}
			v := s.vec()
			VCVTPS2PD(narrow, v)
			VMOVUPD(v, wide)
			continue
		}
		if s.bytes == 64 {
			v := YMM()
			VCVTPD2PS(wide, v)
			VMOVUPS(v, narrow)
			continue
		}
		v := XMM()
		VCVTPD2PSY(wide, v)
		VMOVUPS(v, narrow)
	}
	step := map[bool]int{true: lanes * 8, false: lanes * 4}
	ADDQ(U32(step[name == "widen"]), dst)
	ADDQ(U32(step[name != "widen"]), src)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

func at(m Mem, disp int) Mem {
	m.Disp += disp
	return m
}
