package native

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/native/x64"
)

// erfNear has the coefficients of erf(j/4 + h), |h| ≤ 1/8, over h: a row for each power of h, in it
// one for each j. For j = 0, where small results keep their precision, it is erf(h) - h. The last j
// is raised by a quarter of a unit, so that its end rounds to 1.
var erfNear = [6][16]float32{
	{
		0.0, 0.2763264, 0.5204999, 0.71115565, 0.8427008, 0.92290014, 0.96610516, 0.9866717,
		0.9953223, 0.9985373, 0.999593, 0.9998994, 0.9999779, 0.9999957, 0.9999993, 0.9999999,
	},
	{
		0.12837917, 1.0600142, 0.87878263, 0.6429311, 0.41510752, 0.23652112, 0.11893029,
		0.05277499, 0.020666983, 0.0071423184, 0.0021782846, 0.0005862777, 0.00013925333,
		2.9189148e-05, 5.3994686e-06, 1.041444e-06,
	},
	{
		0.0, -0.2649981, -0.43938446, -0.48219463, -0.4151081, -0.2956543, -0.17839807,
		-0.09235748, -0.041334037, -0.016069822, -0.005445327, -0.0016120346, -0.0004176574,
		-9.482789e-05, -1.8887207e-05, -3.3026877e-06,
	},
	{
		-0.3761227, -0.30919117, -0.14647838, 0.026779728, 0.13836518, 0.16753557, 0.13875373,
		0.09015911, 0.048223913, 0.021724747, 0.008349934, 0.0027602022, 0.0007889874,
		0.00019576022, 4.2278505e-05, 7.964842e-06,
	},
	{
		0.0, 0.12604226, 0.18191262, 0.15005864, 0.06929013, -0.005662469, -0.044146914,
		-0.04789189, -0.034433782, -0.01915101, -0.008687845, -0.0032969892, -0.0010617501,
		-0.00029277953, -6.955428e-05, -1.4297639e-05,
	},
	{
		0.112210274, 0.08083081, 0.008159303, -0.052477133, -0.0687322, -0.04710982, -0.015031983,
		0.006431847, 0.012984863, 0.010636677, 0.0061341547, 0.00277594, 0.0010287578,
		0.00031912662, 8.394555e-05, 1.8883993e-05,
	},
}

const (
	// erfEnd is the largest float that rounds to the last j; beyond it erf is 1.
	erfEnd = 3.875 - 0x1p-22
	// erfEnd64 rounds to the last polynomial of f64; from there on erf is 1.
	erfEnd64 = 6
	// erfStep64 is how far apart those are; multiples of it are exact.
	erfStep64 = 25. / 64
	// erfMagic added leaves the nearest multiple of 1/4 in the low bits.
	erfMagic = 0x1.8p21
)

// erf is a polynomial around the nearest multiple of 1/4, with the sign of x. One polynomial for all
// would be longer than the looking up of coefficients takes.
func (g *gen) erf(w int, x val) val {
	if w == 8 && !g.evex() {
		return g.erf64(x)
	}
	var k, h val
	var look func(row int) val
	rows, a := len(erfNear), g.abs(w, x)
	if w == 8 {
		rows, a = len(erfNear64), g.atMost(w, a, erfEnd64)
		t := g.mulAdd(w, a, g.num(w, 1/erfStep64), g.num(w, f64.magic))
		k = g.subF(w, t, g.num(w, f64.magic))
		h, look = g.subMul(w, a, k, g.num(w, erfStep64)), g.coefficients64("erf", erfNear64[:], t)
	} else {
		a = g.atMost(w, a, erfEnd)
		t := g.addF(w, a, g.num(w, erfMagic))
		k = g.subF(w, t, g.num(w, erfMagic))
		h, look = g.subF(w, a, k), g.coefficients("erf", erfNear[:], t)
	}
	p := g.looked(w, h, rows, 1, look)
	near := g.blend(w, g.cmpF(w, cmpEQ, k, g.konst(w, 0)), h, look(0))
	return g.signedAs(w, g.mulAdd(w, p, h, near), x)
}

// looked is the polynomial of x whose coefficients are in rows of a table, from a first one on.
func (g *gen) looked(w int, x val, rows, first int, look func(row int) val) val {
	p := look(rows - 1)
	for i := rows - 2; i >= first; i-- {
		p = g.mulAdd(w, p, x, look(i))
	}
	return p
}

// coefficients returns a function that gives each lane the element of a row of a table that the low 4 bits of t
// count. name is that of the table.
func (g *gen) coefficients(name string, table [][16]float32, t val) func(row int) val {
	n := g.vl(4)
	part := func(row, from, to int) val {
		return partOf(g, name, row, from, table[row][from:to])
	}
	if n == 64 {
		return func(row int) val { return g.op2(x64.PERMD, n, t, part(row, 0, 16)) }
	}
	// Two tables of 8, of which bit 3 selects.
	var high val
	if g.evex() {
		high = g.nonZero(4, g.op2(x64.PANDD, n, t, g.konst(4, 8)))
	} else {
		high = g.op1i(x64.PSLLD, n, t, 28) // its sign bits select
	}
	return func(row int) val {
		half := func(from int) val {
			// The instruction has no form for 4 lanes; those beyond are not used.
			return g.add(vop{op: x64.PERMD, len: 32, dst: g.temp(n), a: t, b: part(row, from, from+8)})
		}
		low := half(0)
		return g.blend(4, high, half(8), low)
	}
}

// partOf returns elements of a row of a table, which begin at from, as a constant.
func partOf[F float32 | float64](g *gen, name string, row, from int, part []F) val {
	lanes := make([]int, len(part))
	for i, x := range part {
		switch x := any(x).(type) {
		case float32:
			lanes[i] = int(math.Float32bits(x))
		case float64:
			lanes[i] = int(math.Float64bits(x))
		}
	}
	return g.lanesOf(fmt.Sprintf("%s %d from %d", name, row, from), int(unsafe.Sizeof(part[0])), lanes...)
}

// coefficients32 is coefficients for tables of 32, which the low 5 bits of t count, with AVX-512.
func (g *gen) coefficients32(name string, table [][32]float32, t val) func(row int) val {
	part := func(row, from int) val { return partOf(g, name, row, from, table[row][from:from+16]) }
	return func(row int) val {
		// Also where there are less than 16 lanes: half of a table is as long.
		return g.add(vop{op: x64.PERMT2D, len: 64, dst: g.temp(64), t: part(row, 0), a: t, b: part(row, 16)})
	}
}

// coefficients64 is coefficients for tables of f64, with AVX-512.
func (g *gen) coefficients64(name string, table [][16]float64, t val) func(row int) val {
	part := func(row, from int) val { return partOf(g, name+" of f64", row, from, table[row][from:from+8]) }
	return func(row int) val {
		return g.add(vop{op: x64.PERMT2Q, len: 64, dst: g.temp(64), t: part(row, 0), a: t, b: part(row, 8)})
	}
}
