package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// panelsAhead is how many bytes before their use elements of a left panel, which
// comes from the second-level cache, are asked for.
const panelsAhead = 512

// panels writes the inner loop for m rows and two vectors of columns of operands
// that are both packed. The tile of c is asked for by the first steps, a row each:
// all of it at once would hold up the loads that the sums wait for.
func panels(e *elem, m int) {
	const n = 2
	width := n * e.lanes * e.size
	name := fmt.Sprintf("panels%dx%d%s", m, n*e.lanes, e.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(depth int, a, b, c *%[1]s, ldc, cols int, alpha %[1]s, flags int, next *%[1]s, step int)", e.goType))
	Doc(fmt.Sprintf("%s computes a tile of %d rows and up to %d columns from a panel of each operand.", name, m, n*e.lanes))
	Pragma("noescape")
	acc := make([][]reg.VecVirtual, m)
	for i := range acc {
		for range n {
			v := e.vec()
			e.zero(v)
			acc[i] = append(acc[i], v)
		}
	}
	depth, a, b, c, ldc := param("depth"), param("a"), param("b"), param("c"), param("ldc")
	e.bytes(ldc)
	next, ahead := param("next"), param("step")
	masks(e, n)
	step := func(at int) {
		bv := make([]reg.VecVirtual, n)
		for j := range bv {
			bv[j] = e.vec()
			e.load(Mem{Base: b, Disp: at*width + j*e.lanes*e.size}, bv[j])
		}
		PREFETCHT1(Mem{Base: next})
		ADDQ(ahead, next)
		for line := 0; line < m*e.size; line += 64 {
			PREFETCHT0(Mem{Base: a, Disp: at*m*e.size + panelsAhead + line})
		}
		for i := range m {
			x := e.vec()
			e.splat(Mem{Base: a, Disp: (at*m + i) * e.size}, x)
			for j := range n {
				e.accumulate(bv[j], x, acc[i][j])
			}
		}
	}
	advance := func(steps int) {
		ADDQ(U32(uint32(steps*width)), b)
		ADDQ(U32(uint32(steps*m*e.size)), a)
	}
	row, rows := GP64(), GP64()
	MOVQ(c, row)
	MOVQ(U64(uint64(m)), rows)
	CMPQ(rows, depth)
	CMOVQGT(depth, rows)
	SUBQ(rows, depth)
	loop("rows", rows, 1, func() {
		for j := range n {
			PREFETCHT0(Mem{Base: row, Disp: 64 * j})
		}
		ADDQ(ldc, row)
		step(0)
		advance(1)
	}, func() {
		TESTQ(rows, rows)
		JZ(LabelRef("done"))
	})
	const unroll = 4
	SUBQ(Imm(unroll), depth)
	JL(LabelRef("rest"))
	Label("steps")
	for at := range unroll {
		step(at)
	}
	advance(unroll)
	SUBQ(Imm(unroll), depth)
	JGE(LabelRef("steps"))
	Label("rest")
	ADDQ(Imm(unroll), depth)
	JZ(LabelRef("done"))
	Label("single")
	step(0)
	advance(1)
	DECQ(depth)
	JNZ(LabelRef("single"))
	Label("done")
	result(e, acc, c, ldc)
	VZEROUPPER()
	RET()
}
