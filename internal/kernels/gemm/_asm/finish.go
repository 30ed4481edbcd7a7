package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// finish adds up to two rows to a row and bounds the sums from below.
func finish(e *elem) {
	name := "finish" + e.suffix
	TEXT(name, NOSPLIT, fmt.Sprintf("func(x, y, z *%[1]s, n int, least %[1]s)", e.goType))
	Doc(fmt.Sprintf("%s sets x = max(x + y + z, least) for n elements, a multiple of %d; a nil row counts as zeros, NaN stays.", name, e.lanes))
	Pragma("noescape")
	x, n := param("x"), param("n")
	rows := []reg.GPVirtual{param("y"), param("z")}
	least, at := e.vec(), GP64()
	from, err := Param("least").Resolve()
	if err != nil {
		panic(err)
	}
	e.splat(from.Addr, least)
	XORQ(at, at)
	step := e.lanes * e.size
	Label("vector")
	v := e.vec()
	e.load(Mem{Base: x, Index: at, Scale: 1}, v)
	for i, row := range rows {
		TESTQ(row, row)
		JZ(LabelRef(label("after%d", i)))
		e.add(Mem{Base: row, Index: at, Scale: 1}, v, v)
		Label(label("after%d", i))
	}
	e.max(v, least, v)
	e.store(v, Mem{Base: x, Index: at, Scale: 1})
	ADDQ(Imm(uint64(step)), at)
	SUBQ(Imm(uint64(e.lanes)), n)
	JNZ(LabelRef("vector"))
	VZEROUPPER()
	RET()
}

// times multiplies rows by a row.
func times(e *elem) {
	name := "times" + e.suffix
	TEXT(name, NOSPLIT, fmt.Sprintf("func(x, y *%[1]s, rows, n int)", e.goType))
	Doc(fmt.Sprintf("%s multiplies each of some rows of n elements, a multiple of %d, that follow one another by the row y.", name, e.lanes))
	Pragma("noescape")
	x, y, rows, n := param("x"), param("y"), param("rows"), param("n")
	e.bytes(n)
	Label("row")
	at := GP64()
	XORQ(at, at)
	Label("vector")
	v := e.vec()
	e.load(Mem{Base: x}, v)
	e.mul(Mem{Base: y, Index: at, Scale: 1}, v, v)
	e.store(v, Mem{Base: x})
	ADDQ(Imm(uint64(e.lanes*e.size)), x)
	ADDQ(Imm(uint64(e.lanes*e.size)), at)
	CMPQ(at, n)
	JLT(LabelRef("vector"))
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
