package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The points of the transforms are 0, ±pointA, ±pointB and infinity.
const (
	pointA = 0.625
	pointB = 1.5
	a2, b2 = pointA * pointA, pointB * pointB
	// What the differences of a point from the others multiply to, inverted.
	normA = 1 / (2 * a2 * (a2 - b2))
	normB = 1 / (2 * b2 * (b2 - a2))
)

// constant is a number of the transforms, by its place in the table.
type constant int

const (
	kA constant = iota
	kB
	kA2
	kB2
	kA3
	kB3
	kSum     // a² + b²
	kProduct // a²·b²
	kInverse // 1/(a²·b²)
	kNormA
	kNormA1
	kNormA2
	kNormB
	kNormB1
	kNormB2
)

// constants are the numbers in order, each filling a vector of AVX2.
var constants = []float64{
	pointA, pointB, a2, b2, a2 * pointA, b2 * pointB, a2 + b2, a2 * b2, 1 / (a2 * b2),
	normA, normA * pointA, normA * a2, normB, normB * pointB, normB * b2,
}

const constantBytes = 32

func constantTable() Mem {
	table := GLOBL("winograd", 8|16) // RODATA|NOPTR
	for i, v := range constants {
		for j := range constantBytes / 4 {
			DATA(i*constantBytes+4*j, F32(v))
		}
	}
	return table
}

// Offsets of the fields of TransformArgs.
const (
	transformX = 8 * iota
	transformC
	transformTmp
	transformBias
	transformBad
	transformXRow
	transformXCol
	transformCRow
	transformCCol
	transformCount
	transformLo
)

// transform is one of the three transforms of Winograd's convolution.
type transform struct {
	name    string
	in, out int // rows and columns read and written
	uses    []constant
	doc     string
	// apply computes one row or column, and hands out each result when it is there.
	apply func(k func(constant) Op, vec func() reg.VecVirtual, x []reg.VecVirtual, give func(int, reg.VecVirtual))
	sums  bool // results have a bias and bounds
}

var transforms = []transform{
	{"winogradInput", 6, 6, []constant{kA, kB, kA2, kB2, kSum, kProduct}, "turns 6×6 positions of an image into as many coefficients", applyInput, false},
	{"winogradFilter", 3, 6, []constant{kInverse, kNormA, kNormA1, kNormA2, kNormB, kNormB1, kNormB2}, "turns 3×3 taps of filters into 6×6 coefficients", applyFilter, false},
	{"winogradOutput", 6, 4, []constant{kA, kB, kA2, kB2, kA3, kB3}, "turns 6×6 products into 4×4 outputs", applyOutput, true},
}

func applyInput(k func(constant) Op, vec func() reg.VecVirtual, d []reg.VecVirtual, give func(int, reg.VecVirtual)) {
	end := func(i int) {
		t := vec()
		VMOVAPS(d[i+4], t)
		VFNMADD231PS(k(kSum), d[i+2], t)
		VFMADD231PS(k(kProduct), d[i], t)
		give(i*5, t)
	}
	end(0)
	end(1)
	pair := func(i int, point, other constant) {
		even, odd, plus := vec(), vec(), vec()
		VMOVAPS(d[4], even)
		VFNMADD231PS(k(other), d[2], even)
		VMOVAPS(d[3], odd)
		VFNMADD231PS(k(other), d[1], odd)
		VMOVAPS(even, plus)
		VFMADD231PS(k(point), odd, plus)
		VFNMADD231PS(k(point), odd, even)
		give(i, plus)
		give(i+1, even)
	}
	pair(1, kA, kB2)
	pair(3, kB, kA2)
}

func applyFilter(k func(constant) Op, vec func() reg.VecVirtual, g []reg.VecVirtual, give func(int, reg.VecVirtual)) {
	first := vec()
	VMULPS(k(kInverse), g[0], first)
	give(0, first)
	pair := func(i int, n0, n1, n2 constant) {
		plus, minus := vec(), vec()
		VMULPS(k(n0), g[0], plus)
		VFMADD231PS(k(n2), g[2], plus)
		VMOVAPS(plus, minus)
		VFMADD231PS(k(n1), g[1], plus)
		VFNMADD231PS(k(n1), g[1], minus)
		give(i, plus)
		give(i+1, minus)
	}
	pair(1, kNormA, kNormA1, kNormA2)
	pair(3, kNormB, kNormB1, kNormB2)
	give(5, g[2])
}

func applyOutput(k func(constant) Op, vec func() reg.VecVirtual, m []reg.VecVirtual, give func(int, reg.VecVirtual)) {
	sumA, sumB := vec(), vec()
	VADDPS(m[1], m[2], sumA)
	VADDPS(m[3], m[4], sumB)
	diffA, diffB := m[1], m[3]
	VSUBPS(m[2], m[1], diffA)
	VSUBPS(m[4], m[3], diffB)
	VADDPS(sumA, m[0], m[0])
	VADDPS(sumB, m[0], m[0])
	give(0, m[0])
	VFMADD231PS(k(kA3), diffA, m[5])
	VFMADD231PS(k(kB3), diffB, m[5])
	give(3, m[5])
	VMULPS(k(kA2), sumA, sumA)
	VFMADD231PS(k(kB2), sumB, sumA)
	give(2, sumA)
	VMULPS(k(kA), diffA, diffA)
	VFMADD231PS(k(kB), diffB, diffA)
	give(1, diffA)
}

// winograd writes one transform: of the columns into scratch memory, and of the
// rows from there.
func winograd(e *elem, t *transform, table Mem) {
	name := t.name + e.suffix
	TEXT(name, NOSPLIT, "func(args *byte)")
	Doc(fmt.Sprintf("%s %s, for several vectors of channels.", name, t.doc))
	Pragma("noescape")
	args := Load(Param("args"), GP64()).(reg.GPVirtual)
	field := func(off int) Mem { return Mem{Base: args, Disp: off} }
	size := e.lanes * e.size
	k := constantsOf(e, t, table)
	var zero, bad, lo, hi reg.VecVirtual
	if t.sums {
		zero, bad, lo, hi = e.vec(), e.vec(), e.vec(), e.vec()
		VXORPS(zero, zero, zero)
		p := load(field(transformBad))
		e.load(Mem{Base: p}, bad)
		e.splat(field(transformLo), lo)
		e.splat(field(transformLo+e.size), hi)
	}
	from, to := newRows(load(field(transformXRow)), t.in), newRows(load(field(transformCCol)), t.out)
	tmp, col := load(field(transformTmp)), GP64()
	XORQ(col, col)
	load6 := func(n int, at func(i int) Mem) []reg.VecVirtual {
		v := make([]reg.VecVirtual, n)
		for i := range v {
			v[i] = e.vec()
			e.load(at(i), v[i])
		}
		return v
	}
	scratch := func(i, j int) Mem { return Mem{Base: tmp, Disp: (i*t.in + j) * size} }

	Label("vector")
	MOVQ(field(transformX), from.base[0])
	ADDQ(col, from.base[0])
	for j := range t.in {
		x := load6(t.in, from.at)
		t.apply(k, e.vec, x, func(i int, v reg.VecVirtual) { e.store(v, scratch(i, j)) })
		if j+1 < t.in {
			ADDQ(field(transformXCol), from.base[0])
		}
	}
	MOVQ(field(transformC), to.base[0])
	ADDQ(col, to.base[0])
	var bias Mem
	if t.sums {
		p := load(field(transformBias))
		bias = Mem{Base: p, Index: col, Scale: 1}
	}
	for i := range t.out {
		x := load6(t.in, func(j int) Mem { return scratch(i, j) })
		t.apply(k, e.vec, x, func(j int, v reg.VecVirtual) {
			if t.sums {
				VFMADD231PS(zero, v, bad)
				e.add(bias, v, v)
				e.max(v, lo, v)
				e.min(v, hi, v)
			}
			e.store(v, to.at(j))
		})
		if i+1 < t.out {
			ADDQ(field(transformCRow), to.base[0])
		}
	}
	ADDQ(Imm(uint64(size)), col)
	DECQ(field(transformCount))
	JNZ(LabelRef("vector"))
	if t.sums {
		p := load(field(transformBad))
		e.store(bad, Mem{Base: p})
	}
	VZEROUPPER()
	RET()
}

// constantsOf returns where the constants of a transform are: in registers, if
// there are many, else in memory.
func constantsOf(e *elem, t *transform, table Mem) func(constant) Op {
	if e.regs < 32 {
		return func(c constant) Op { return table.Offset(int(c) * constantBytes) }
	}
	held := map[constant]reg.VecVirtual{}
	for _, c := range t.uses {
		held[c] = e.vec()
		e.splat(table.Offset(int(c)*constantBytes), held[c])
	}
	return func(c constant) Op { return held[c] }
}
