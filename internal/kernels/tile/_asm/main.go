// Command asm writes the tiles of package tile for amd64.
package main

import (
	"flag"
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/loris-ml/loris/internal/kernels/asm/bf16"
)

// elem is an element type with the instructions of one vector width.
type elem struct {
	suffix string // in names
	size   int
	lanes  int
	vec    func() reg.VecVirtual
	load   func(m, v Op)
	store  func(v, m Op)
	splat  func(m, v Op)
	fma    func(x, y, acc Op)
	// sum adds products of the operands' elements to a sum in the inner loops, if that
	// is not fma.
	sum func(x, y, acc Op)
	add func(x, y, dst Op)
	// max and min return their first operand if either is a NaN.
	max, min func(x, y, dst Op)
	rows     [3]int // most rows of tiles of half a panel, one and two
	regs     int
}

var elems = []*elem{
	{
		suffix: "F32AVX512", size: 4, lanes: 16, vec: ZMM, rows: [3]int{14, 14, 7}, regs: 32,
		load: func(m, v Op) { VMOVUPS(m, v) }, store: func(v, m Op) { VMOVUPS(v, m) }, splat: func(m, v Op) { VBROADCASTSS(m, v) },
		fma: func(x, y, acc Op) { VFMADD231PS(x, y, acc) }, add: func(x, y, d Op) { VADDPS(x, y, d) },
		max: func(x, y, d Op) { VMAXPS(x, y, d) }, min: func(x, y, d Op) { VMINPS(x, y, d) },
	},
	{
		suffix: "F64AVX512", size: 8, lanes: 8, vec: ZMM, rows: [3]int{14, 14, 7}, regs: 32,
		load: func(m, v Op) { VMOVUPD(m, v) }, store: func(v, m Op) { VMOVUPD(v, m) }, splat: func(m, v Op) { VBROADCASTSD(m, v) },
		fma: func(x, y, acc Op) { VFMADD231PD(x, y, acc) }, add: func(x, y, d Op) { VADDPD(x, y, d) },
		max: func(x, y, d Op) { VMAXPD(x, y, d) }, min: func(x, y, d Op) { VMINPD(x, y, d) },
	},
	{
		suffix: "F32AVX2", size: 4, lanes: 8, vec: YMM, rows: [3]int{12, 6, 3}, regs: 16,
		load: func(m, v Op) { VMOVUPS(m, v) }, store: func(v, m Op) { VMOVUPS(v, m) }, splat: func(m, v Op) { VBROADCASTSS(m, v) },
		fma: func(x, y, acc Op) { VFMADD231PS(x, y, acc) }, add: func(x, y, d Op) { VADDPS(x, y, d) },
		max: func(x, y, d Op) { VMAXPS(x, y, d) }, min: func(x, y, d Op) { VMINPS(x, y, d) },
	},
	{
		suffix: "F64AVX2", size: 8, lanes: 4, vec: YMM, rows: [3]int{12, 6, 3}, regs: 16,
		load: func(m, v Op) { VMOVUPD(m, v) }, store: func(v, m Op) { VMOVUPD(v, m) }, splat: func(m, v Op) { VBROADCASTSD(m, v) },
		fma: func(x, y, acc Op) { VFMADD231PD(x, y, acc) }, add: func(x, y, d Op) { VADDPD(x, y, d) },
		max: func(x, y, d Op) { VMAXPD(x, y, d) }, min: func(x, y, d Op) { VMINPD(x, y, d) },
	},
}

// pairs sums products of pairs of bfloat16, two of which are an element of an operand, in float32.
// What VPDPWSSD is written for becomes VDPBF16PS, see package bf16.
var pairs = func() *elem {
	e := *elems[0]
	e.suffix, e.sum = bf16.Suffix, func(x, y, acc Op) { VPDPWSSD(x, y, acc) }
	e.rows[2]-- // all operands of a product are registers
	return &e
}()

// Offsets of the fields of Args.
const (
	argX = 8 * iota
	argW
	argW2
	argInit
	argAdd
	argC
	argSegs
	argNSegs
	argRun
	argXStep
	argKStep
	argWStep
	argInitStep
	argAddStep
	argCStep
	argLo
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, e := range append(elems, pairs) {
		for i, n := range []int{1, 2, 4} {
			for m := 1; m <= e.rows[i]; m++ {
				tile(e, m, n)
			}
		}
	}
	for _, e := range elems {
		for m := 1; m <= depthwiseRows; m++ {
			depthwise(e, m)
		}
	}
	table := constantTable()
	for _, e := range elems {
		if e.size == 4 {
			for i := range transforms {
				winograd(e, &transforms[i], table)
			}
		}
	}
	joinPairs()
	Generate()
	if err := bf16.Encode(flag.Lookup("out").Value.String()); err != nil {
		log.Fatal(err)
	}
}

// rowsOf holds the addresses of up to 14 rows that are one step apart, in two
// base registers and three multiples of the step.
type rowsOf struct {
	base       [2]reg.GPVirtual
	r1, r3, r5 reg.GPVirtual
}

func newRows(step reg.GPVirtual, rows int) *rowsOf {
	r := &rowsOf{base: [2]reg.GPVirtual{GP64()}, r1: step}
	if rows > 3 {
		r.r3 = GP64()
		LEAQ(Mem{Base: step, Index: step, Scale: 2}, r.r3)
	}
	if rows > 5 {
		r.r5 = GP64()
		LEAQ(Mem{Base: step, Index: step, Scale: 4}, r.r5)
	}
	if rows > 7 {
		r.base[1] = GP64()
	}
	return r
}

// begin sets the second base from the first.
func (r *rowsOf) begin() {
	if r.base[1] != nil {
		LEAQ(Mem{Base: r.base[0], Index: r.r3, Scale: 2}, r.base[1])
		ADDQ(r.r1, r.base[1])
	}
}

func (r *rowsOf) at(i int) Mem {
	m := Mem{Base: r.base[i/7]}
	switch i % 7 {
	case 1, 2, 4:
		m.Index, m.Scale = r.r1, uint8(i%7)
	case 3, 6:
		m.Index, m.Scale = r.r3, uint8(i%7/3)
	case 5:
		m.Index, m.Scale = r.r5, 1
	}
	return m
}

func (r *rowsOf) advance(by Op) {
	for _, b := range r.base {
		if b != nil {
			ADDQ(by, b)
		}
	}
}

// tile writes the function for m rows and n vectors of columns.
func tile(e *elem, m, n int) {
	name := fmt.Sprintf("tile%dx%d%s", m, n, e.suffix)
	TEXT(name, NOSPLIT, "func(args *byte)")
	Doc(fmt.Sprintf("%s computes a tile of %d rows and %d vectors.", name, m, n))
	Pragma("noescape")
	args := Load(Param("args"), GP64()).(reg.GPVirtual)
	field := func(off int) Mem { return Mem{Base: args, Disp: off} }
	get := func(off int) reg.GPVirtual {
		r := GP64()
		MOVQ(field(off), r)
		return r
	}

	acc := make([][]reg.VecVirtual, m)
	p, step := get(argInit), get(argInitStep)
	for i := range acc {
		for j := range n {
			v := e.vec()
			e.load(Mem{Base: p, Disp: j * e.lanes * e.size}, v)
			acc[i] = append(acc[i], v)
		}
		ADDQ(step, p)
	}
	sums(e, acc, get, field)

	p, step = get(argAdd), get(argAddStep)
	c, cStep := get(argC), get(argCStep)
	lo, hi := e.vec(), e.vec()
	e.splat(field(argLo), lo)
	e.splat(field(argLo+e.size), hi)
	for _, row := range acc {
		for j, v := range row {
			at := j * e.lanes * e.size
			e.add(Mem{Base: p, Disp: at}, v, v)
			e.max(v, lo, v)
			e.min(v, hi, v)
			e.store(v, Mem{Base: c, Disp: at})
		}
		ADDQ(step, p)
		ADDQ(cStep, c)
	}
	VZEROUPPER()
	RET()
}

// sums writes the loops over segments and their steps.
func sums(e *elem, acc [][]reg.VecVirtual, get func(int) reg.GPVirtual, field func(int) Mem) {
	m, n := len(acc), len(acc[0])
	segs, left := get(argSegs), get(argNSegs)
	TESTQ(left, left)
	JZ(LabelRef("done"))
	rows := newRows(get(argXStep), m)
	kStep, wStep := get(argKStep), get(argWStep)
	panel := []reg.GPVirtual{get(argW)}
	if n == 4 {
		panel = append(panel, get(argW2))
	}
	body := func() { products(e, acc, rows, panel, kStep, wStep) }
	Label("segment")
	MOVQ(field(argX), rows.base[0])
	ADDQ(Mem{Base: segs}, rows.base[0])
	rows.begin()
	count := get(argRun)
	TESTQ(U32(1), count)
	JZ(LabelRef("even"))
	body()
	Label("even")
	SHRQ(Imm(1), count)
	JZ(LabelRef("next"))
	Label("pair")
	body()
	body()
	DECQ(count)
	JNZ(LabelRef("pair"))
	Label("next")
	ADDQ(Imm(8), segs)
	DECQ(left)
	JNZ(LabelRef("segment"))
	Label("done")
}

// products writes one step of the depth.
func products(e *elem, acc [][]reg.VecVirtual, rows *rowsOf, panel []reg.GPVirtual, kStep, wStep reg.GPVirtual) {
	n := len(acc[0])
	per := n / len(panel) // vectors of a panel
	sum := e.fma
	if e.sum != nil {
		sum = e.sum
	}
	where := func(j int) Mem { return Mem{Base: panel[j/per], Disp: j % per * e.lanes * e.size} }
	w := make([]Op, n)
	for j := range w {
		if j >= e.regs-len(acc)*n-1 { // no register is left beside the sums and x
			w[j] = where(j)
			continue
		}
		v := e.vec()
		e.load(where(j), v)
		w[j] = v
	}
	for i := range acc {
		x := e.vec()
		e.splat(rows.at(i), x)
		for j := range w {
			sum(w[j], x, acc[i][j])
		}
	}
	for _, r := range panel {
		ADDQ(wStep, r)
	}
	rows.advance(kStep)
}
