// Command asm writes the inner loops of package igemm for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is one set of instructions.
type isa struct {
	suffix string
	rows   int // of a tile; it has the columns of two vectors
	bytes  int // of a vector
	vec    func() reg.VecVirtual
	zero   func(v Op)
	store  func(v, m Op)
	// pairs adds the products of pairs, or nil if that takes two instructions; quads
	// those of four bytes, of which left ones have no sign, or nil if there is none.
	pairs, quads func(x, y, acc Op)
}

var isas = []*isa{
	{"VNNI", 12, 64, ZMM, func(v Op) { VPXORD(v, v, v) }, func(v, m Op) { VMOVDQU32(v, m) }, func(x, y, acc Op) { VPDPWSSD(x, y, acc) },
		func(left, right, acc Op) { VPDPBUSD(right, left, acc) }},
	{"AVX512", 12, 64, ZMM, func(v Op) { VPXORD(v, v, v) }, func(v, m Op) { VMOVDQU32(v, m) }, nil, nil},
	{"AVX2", 6, 32, YMM, func(v Op) { VPXOR(v, v, v) }, func(v, m Op) { VMOVDQU(v, m) }, nil, nil},
}

// The words of a tile.
const (
	whole = "whole"
	pairs = "pairs"
	quads = "quads"
)

var whats = map[string]string{whole: "numbers", pairs: "pairs of 16-bit numbers", quads: "four bytes, those of the right one signed"}

// tile writes a tile of such words: all of it, or a part with so many rows and vectors of each.
func (s *isa) tile(words, part string, rows, vectors int) {
	name, what := words+part+s.suffix, whats[words]
	TEXT(name, NOSPLIT, "func(depth int, a, b *uint32, c *int32)")
	size := fmt.Sprintf("%d×%d tile c", s.rows, s.bytes/2)
	if part != "" {
		size = fmt.Sprintf("first %d rows and %d columns of the %s", rows, vectors*s.bytes/4, size)
	}
	Doc(fmt.Sprintf("%s sets the %s to the product of two panels whose words are %s.", name, size, what))
	Pragma("noescape")
	depth, a, b := Load(Param("depth"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	acc := make([][]reg.VecVirtual, rows)
	for i := range acc {
		acc[i] = make([]reg.VecVirtual, vectors)
		for j := range acc[i] {
			acc[i][j] = s.vec()
			s.zero(acc[i][j])
		}
	}
	Label("word")
	right := make([]reg.VecVirtual, vectors)
	for j := range right {
		right[j] = s.vec()
		s.load(Mem{Base: b.(reg.Register), Disp: j * s.bytes}, right[j])
	}
	left, product := s.vec(), s.vec()
	for i := range acc {
		VPBROADCASTD(Mem{Base: a.(reg.Register), Disp: 4 * i}, left)
		for j := range right {
			switch {
			case words == quads:
				s.quads(left, right[j], acc[i][j])
				continue
			case words == pairs && s.pairs != nil:
				s.pairs(left, right[j], acc[i][j])
				continue
			case words == pairs:
				VPMADDWD(left, right[j], product)
			default:
				VPMULLD(left, right[j], product)
			}
			VPADDD(product, acc[i][j], acc[i][j])
		}
	}
	ADDQ(Imm(uint64(4*s.rows)), a)
	ADDQ(Imm(uint64(2*s.bytes)), b)
	DECQ(depth)
	JNZ(LabelRef("word"))
	c := Load(Param("c"), GP64())
	for i := range acc {
		for j := range acc[i] {
			s.store(acc[i][j], Mem{Base: c.(reg.Register), Disp: (2*i + j) * s.bytes})
		}
	}
	VZEROUPPER()
	RET()
}

// long writes the tile of numbers of 64 bits. Without an instruction that multiplies them it adds the
// products of lower halves and those of a lower and an upper one apart.
func (s *isa) long() {
	rows, split := s.rows, s.bytes == 32
	if split {
		rows = 2
	}
	TEXT("long"+s.suffix, NOSPLIT, "func(depth int, a, b, c *int64)")
	Doc(fmt.Sprintf("long%s sets the %d×%d tile c to the product of two panels of 64-bit numbers.", s.suffix, rows, s.bytes/4))
	Pragma("noescape")
	depth, a, b := Load(Param("depth"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
	acc, upper := make([][2]reg.VecVirtual, rows), make([][2]reg.VecVirtual, rows)
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = s.vec()
			s.zero(acc[i][j])
			if split {
				upper[i][j] = s.vec()
				s.zero(upper[i][j])
			}
		}
	}
	Label("number")
	var right, high [2]reg.VecVirtual
	for j := range right {
		right[j] = s.vec()
		s.load(Mem{Base: b.(reg.Register), Disp: j * s.bytes}, right[j])
		if split {
			high[j] = s.vec()
			VPSRLQ(Imm(32), right[j], high[j])
		}
	}
	left, product := s.vec(), s.vec()
	for i := range acc {
		VPBROADCASTQ(Mem{Base: a.(reg.Register), Disp: 8 * i}, left)
		if !split {
			for j := range right {
				VPMULLQ(left, right[j], product)
				VPADDQ(product, acc[i][j], acc[i][j])
			}
			continue
		}
		for j := range right {
			VPMULUDQ(left, right[j], product)
			VPADDQ(product, acc[i][j], acc[i][j])
			VPMULUDQ(left, high[j], product)
			VPADDQ(product, upper[i][j], upper[i][j])
		}
		VPSRLQ(Imm(32), left, left)
		for j := range right {
			VPMULUDQ(left, right[j], product)
			VPADDQ(product, upper[i][j], upper[i][j])
		}
	}
	ADDQ(Imm(uint64(8*rows)), a)
	ADDQ(Imm(uint64(2*s.bytes)), b)
	DECQ(depth)
	JNZ(LabelRef("number"))
	c := Load(Param("c"), GP64())
	for i := range acc {
		for j := range acc[i] {
			if split {
				VPSLLQ(Imm(32), upper[i][j], upper[i][j])
				VPADDQ(upper[i][j], acc[i][j], acc[i][j])
			}
			s.store(acc[i][j], Mem{Base: c.(reg.Register), Disp: (2*i + j) * s.bytes})
		}
	}
	VZEROUPPER()
	RET()
}

func (s *isa) load(m, v Op) {
	if s.bytes == 64 {
		VMOVDQU32(m, v)
		return
	}
	VMOVDQU(m, v)
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		s.tile(pairs, "", s.rows, 2)
		if s.pairs == nil {
			s.tile(whole, "", s.rows, 2)
		}
		if s.quads != nil {
			s.tile(quads, "", s.rows, 2)
			s.tile(quads, "Half", s.rows, 1)
			s.tile(quads, "Top", s.rows/2, 2)
			s.biasSums()
		}
		if s.suffix != "VNNI" {
			s.long()
		}
	}
	difference()
	fours()
	fewFours()
	Generate()
}

// biasSums writes what the bias of left bytes adds to the sums of the columns of a panel. Two words are taken at once, since
// sums wait for those before.
func (s *isa) biasSums() {
	TEXT("biasSums"+s.suffix, NOSPLIT, "func(depth int, bias uint32, b *uint32, sums *int32)")
	Doc(fmt.Sprintf("biasSums%s sets %d sums to the products of bias, a left word, and the words of each column of a panel.", s.suffix, s.bytes/2))
	Pragma("noescape")
	depth, b, sums := Load(Param("depth"), GP64()), Load(Param("b"), GP64()), Load(Param("sums"), GP64())
	bias := s.vec()
	VPBROADCASTD(Load(Param("bias"), GP32()), bias)
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	add := func(n int) {
		for i := range acc[:n] {
			v := s.vec()
			s.load(Mem{Base: b.(reg.Register), Disp: i * s.bytes}, v)
			s.quads(bias, v, acc[i])
		}
		ADDQ(U32(uint32(n*s.bytes)), b)
	}
	Label("words")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	add(4)
	JMP(LabelRef("words"))
	Label("last")
	CMPQ(depth, I8(-1))
	JNE(LabelRef("end"))
	add(2)
	Label("end")
	for i := range 2 {
		VPADDD(acc[i+2], acc[i], acc[i])
		s.store(acc[i], Mem{Base: sums.(reg.Register), Disp: i * s.bytes})
	}
	VZEROUPPER()
	RET()
}

// difference writes the rows of a tile less one row, which is how sums lose what their bias added.
func difference() {
	TEXT("differenceAVX2", NOSPLIT, "func(dst *int32, stride int, tile, less *int32, rows, vectors int)")
	Doc("differenceAVX2 sets rows of dst, stride elements apart, to those of a tile with 32 columns less the row less,",
		"so many vectors of 8 of each. There are rows and vectors.")
	Pragma("noescape")
	dst, stride, from, less := Load(Param("dst"), GP64()), Load(Param("stride"), GP64()), Load(Param("tile"), GP64()), Load(Param("less"), GP64())
	rows, vectors := Load(Param("rows"), GP64()), Load(Param("vectors"), GP64())
	SHLQ(Imm(2), stride)
	SHLQ(Imm(5), vectors)
	at, v := GP64(), YMM()
	Label("row")
	XORQ(at, at)
	Label("vector")
	index := func(base reg.Register) Mem { return Mem{Base: base, Index: at, Scale: 1} }
	VMOVDQU(index(from.(reg.Register)), v)
	VPSUBD(index(less.(reg.Register)), v, v)
	VMOVDQU(v, index(dst.(reg.Register)))
	ADDQ(Imm(32), at)
	CMPQ(at, vectors)
	JNE(LabelRef("vector"))
	ADDQ(stride, dst)
	ADDQ(Imm(128), from)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// fours writes the packing of four rows of bytes into words of one column each.
func fours() {
	TEXT("foursAVX2", NOSPLIT, "func(dst *uint32, by int, src *byte, step, n int)")
	Doc("foursAVX2 packs n groups of four rows, step bytes apart, of 32 bytes each: a word of dst has the four bytes of a",
		"column, and those of a group begin by bytes behind those of the one before. n is above 0.")
	Pragma("noescape")
	dst, by, src, step, n := Load(Param("dst"), GP64()), Load(Param("by"), GP64()), Load(Param("src"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	Label("group")
	var row [4]reg.VecVirtual
	for i := range row {
		row[i] = YMM()
		VMOVDQU(Mem{Base: src.(reg.Register)}, row[i])
		ADDQ(step, src)
	}
	pair := func(f func(...Op), low, high reg.VecVirtual) reg.VecVirtual {
		v := YMM()
		f(high, low, v)
		return v
	}
	lo01, hi01 := pair(VPUNPCKLBW, row[0], row[1]), pair(VPUNPCKHBW, row[0], row[1])
	lo23, hi23 := pair(VPUNPCKLBW, row[2], row[3]), pair(VPUNPCKHBW, row[2], row[3])
	quarters := [4]reg.VecVirtual{
		pair(VPUNPCKLWD, lo01, lo23), pair(VPUNPCKHWD, lo01, lo23),
		pair(VPUNPCKLWD, hi01, hi23), pair(VPUNPCKHWD, hi01, hi23),
	}
	// Each has columns of both halves of the rows.
	for half, choice := range []uint64{0x20, 0x31} {
		for i := range 2 {
			v := YMM()
			VPERM2I128(Imm(choice), quarters[2*i+1], quarters[2*i], v)
			VMOVDQU(v, Mem{Base: dst.(reg.Register), Disp: 64*half + 32*i})
		}
	}
	ADDQ(by, dst)
	DECQ(n)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// fewFours writes fours for panels of few columns, half of which vectors of 32 bytes would pack for nothing.
func fewFours() {
	TEXT("fewFoursAVX2", NOSPLIT, "func(dst *uint32, by int, src *byte, step, n int)")
	Doc("fewFoursAVX2 is foursAVX2 of rows of 16 bytes.")
	Pragma("noescape")
	dst, by, src, step, n := Load(Param("dst"), GP64()), Load(Param("by"), GP64()), Load(Param("src"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	Label("group")
	var row [4]reg.VecVirtual
	for i := range row {
		row[i] = XMM()
		VMOVDQU(Mem{Base: src.(reg.Register)}, row[i])
		ADDQ(step, src)
	}
	at := 0
	for _, bytes := range []func(...Op){VPUNPCKLBW, VPUNPCKHBW} {
		first, second := XMM(), XMM()
		bytes(row[1], row[0], first)
		bytes(row[3], row[2], second)
		for _, words := range []func(...Op){VPUNPCKLWD, VPUNPCKHWD} {
			v := XMM()
			words(second, first, v)
			VMOVDQU(v, Mem{Base: dst.(reg.Register), Disp: at})
			at += 16
		}
	}
	ADDQ(by, dst)
	DECQ(n)
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}
