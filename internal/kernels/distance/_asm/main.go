// Command asm writes the tiles of package distance for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is a vector width and an element type with their instructions.
type isa struct {
	suffix string
	elem   string
	size   int // of an element
	bytes  int // of a vector
	rows   int // of a tile of sums
	vec    func() reg.VecVirtual

	load, broadcast, add, sub, mul, fma, sqrt, and, xor func(ops ...Op)
	// most keeps the greater of two numbers without a sign, and a NaN.
	most func(s *isa, x, acc reg.VecVirtual)
}

func zmm() reg.VecVirtual { return ZMM() }
func ymm() reg.VecVirtual { return YMM() }

// asInts compares numbers without a sign by their bits, of which those of a NaN are greatest.
func asInts(f func(ops ...Op)) func(s *isa, x, acc reg.VecVirtual) {
	return func(_ *isa, x, acc reg.VecVirtual) { f(x, acc, acc) }
}

// bySigned does so where there is but a comparison.
func bySigned(s *isa, x, acc reg.VecVirtual) {
	more := s.vec()
	VPCMPGTQ(acc, x, more)
	VBLENDVPD(more, x, acc, acc)
}

var isas = []*isa{
	{"AVX512F32", "float32", 4, 64, 4, zmm, VMOVUPS, VBROADCASTSS, VADDPS, VSUBPS, VMULPS, VFMADD231PS, VSQRTPS, VPANDD, VPXORD, asInts(VPMAXUD)},
	{"AVX2F32", "float32", 4, 32, 2, ymm, VMOVUPS, VBROADCASTSS, VADDPS, VSUBPS, VMULPS, VFMADD231PS, VSQRTPS, VANDPS, VXORPS, asInts(VPMAXUD)},
	{"AVX512F64", "float64", 8, 64, 4, zmm, VMOVUPD, VBROADCASTSD, VADDPD, VSUBPD, VMULPD, VFMADD231PD, VSQRTPD, VPANDQ, VPXORQ, asInts(VPMAXUQ)},
	{"AVX2F64", "float64", 8, 32, 2, ymm, VMOVUPD, VBROADCASTSD, VADDPD, VSUBPD, VMULPD, VFMADD231PD, VSQRTPD, VANDPD, VXORPD, bySigned},
}

// across is the vectors of a row of a tile.
const across = 2

// bits returns a vector of equal numbers, by their bits.
func (s *isa) bits(name string, b uint64) reg.VecVirtual {
	m := GLOBL(name+s.suffix, RODATA|NOPTR)
	for at := 0; at < s.bytes; at += s.size {
		if s.size == 8 {
			DATA(at, U64(b))
		} else {
			DATA(at, U32(uint32(b>>32)))
		}
	}
	v := s.vec()
	s.load(m, v)
	return v
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// steps returns the addresses of rows that lie step bytes apart.
func steps(base reg.GPVirtual, step reg.GPVirtual, rows int) []Mem {
	list := []Mem{{Base: base}}
	if rows > 1 {
		list = append(list, Mem{Base: base, Index: step, Scale: 1})
	}
	if rows > 2 {
		three := GP64()
		LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
		list = append(list, Mem{Base: base, Index: step, Scale: 2}, Mem{Base: base, Index: three, Scale: 1})
	}
	return list
}

type tile [][across]reg.VecVirtual

func (s *isa) tile(rows int) tile {
	t := make(tile, rows)
	for i := range t {
		for j := range t[i] {
			t[i][j] = s.vec()
		}
	}
	return t
}

func (s *isa) clear(t tile) {
	for i := range t {
		for _, v := range t[i] {
			s.xor(v, v, v)
		}
	}
}

// store writes a tile to rows that lie step bytes apart, and ends the function.
func (s *isa) store(t tile) {
	dst := steps(param("dst"), param("dstStep"), len(t))
	for i := range t {
		for j, v := range t[i] {
			s.load(v, dst[i].Offset(j*s.bytes))
		}
	}
	VZEROUPPER()
	RET()
}

// row loads the vectors of a row.
func (s *isa) row(m Mem) (r [across]reg.VecVirtual) {
	for j := range r {
		r[j] = s.vec()
		s.load(m.Offset(j*s.bytes), r[j])
	}
	return r
}

// next moves pointers by bytes and goes on while there is depth.
func next(depth reg.GPVirtual, by map[reg.GPVirtual]int, order ...reg.GPVirtual) {
	for _, p := range order {
		ADDQ(Imm(uint64(by[p])), p)
	}
	DECQ(depth)
	JNZ(LabelRef("next"))
}

// distances writes a tile of norms.
func (s *isa) distances(norm string, rows int) {
	name := fmt.Sprintf("%s%d%s", norm, rows, s.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst, x, y *%s, dstStep, xStep, depth int)", s.elem))
	Doc(fmt.Sprintf("%s sets %d×%d norms of the differences of rows of x and columns of the panel y.", name, rows, across*s.bytes/s.size))
	Pragma("noescape")
	x, y, depth := param("x"), param("y"), param("depth")
	from := steps(x, param("xStep"), rows)
	acc := s.tile(rows)
	s.clear(acc)
	var magnitude reg.VecVirtual
	if norm != "euclidean" {
		magnitude = s.bits("magnitude"+name, 0x7fffffffffffffff)
	}
	Label("next")
	cols := s.row(Mem{Base: y})
	for i := range acc {
		a := s.vec()
		s.broadcast(from[i], a)
		for j, c := range cols {
			d := s.vec()
			s.sub(c, a, d)
			switch norm {
			case "euclidean":
				s.fma(d, d, acc[i][j])
			case "manhattan":
				s.and(magnitude, d, d)
				s.add(d, acc[i][j], acc[i][j])
			default:
				s.and(magnitude, d, d)
				s.most(s, d, acc[i][j])
			}
		}
	}
	next(depth, map[reg.GPVirtual]int{x: s.size, y: across * s.bytes}, x, y)
	if norm == "euclidean" {
		for i := range acc {
			for _, v := range acc[i] {
				s.sqrt(v, v)
			}
		}
	}
	s.store(acc)
}

// sums writes a tile of sums over rows of y of weighted differences, or of their signs.
func (s *isa) sums(of string, rows int) {
	name := fmt.Sprintf("%s%d%s", of, rows, s.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst, w, x, y *%s, dstStep, wStep, depth int)", s.elem))
	Doc(fmt.Sprintf("%s sets %d×%d sums over the rows of the panel y.", name, rows, across*s.bytes/s.size))
	Pragma("noescape")
	w, y, depth := param("w"), param("y"), param("depth")
	from := steps(w, param("wStep"), rows)
	acc, x := s.tile(rows), make(tile, rows)
	s.clear(acc)
	base := param("x")
	for i := range x {
		x[i] = s.row(Mem{Base: base, Disp: i * across * s.bytes})
	}
	var sign, zero reg.VecVirtual
	if of == "signs" {
		sign, zero = s.bits("sign"+name, 1<<63), s.vec()
		s.xor(zero, zero, zero)
	}
	Label("next")
	cols := s.row(Mem{Base: y})
	for i := range acc {
		f := s.vec()
		s.broadcast(from[i], f)
		for j, c := range cols {
			d := s.vec()
			s.sub(c, x[i][j], d)
			if of == "differences" {
				s.fma(d, f, acc[i][j])
				continue
			}
			s.signed(d, f, acc[i][j], sign, zero)
		}
	}
	next(depth, map[reg.GPVirtual]int{w: s.size, y: across * s.bytes}, w, y)
	s.store(acc)
}

// signed adds f with the sign of d, where d is a number that is not 0.
func (s *isa) signed(d, f, acc, sign, zero reg.VecVirtual) {
	const unequal = 12 // and ordered
	switch {
	case s.bytes == 64 && s.size == 4:
		VCMPPS(Imm(unequal), zero, d, reg.K1)
		s.and(sign, d, d)
		s.xor(f, d, d)
		VADDPS(d, acc, reg.K1, acc)
	case s.bytes == 64:
		VCMPPD(Imm(unequal), zero, d, reg.K1)
		s.and(sign, d, d)
		s.xor(f, d, d)
		VADDPD(d, acc, reg.K1, acc)
	default:
		counts := s.vec()
		if s.size == 4 {
			VCMPPS(Imm(unequal), zero, d, counts)
		} else {
			VCMPPD(Imm(unequal), zero, d, counts)
		}
		s.and(sign, d, d)
		s.xor(f, d, d)
		s.and(counts, d, d)
		s.add(d, acc, acc)
	}
}

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, s := range isas {
		for _, norm := range []string{"manhattan", "euclidean", "greatest"} {
			s.distances(norm, 4)
			s.distances(norm, 1)
		}
		for _, of := range []string{"signs", "differences"} {
			s.sums(of, s.rows)
			s.sums(of, 1)
		}
	}
	Generate()
}
