package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// depthwiseRows is the most rows of a depthwise tile.
const depthwiseRows = 8

// depthwise writes the function for m rows of any number of vectors of columns.
func depthwise(e *elem, m int) {
	name := fmt.Sprintf("depthwise%d%s", m, e.suffix)
	TEXT(name, NOSPLIT, "func(args *byte)")
	Doc(fmt.Sprintf("%s computes a depthwise tile of %d rows.", name, m))
	Pragma("noescape")
	args := Load(Param("args"), GP64()).(reg.GPVirtual)
	field := func(off int) Mem { return Mem{Base: args, Disp: off} }
	rows := newRows(load(field(argXStep)), m)
	col, count := GP64(), load(field(argRun))
	XORQ(col, col)
	lo, hi := e.vec(), e.vec()
	e.splat(field(argLo), lo)
	e.splat(field(argLo+e.size), hi)

	Label("column")
	acc := make([]reg.VecVirtual, m)
	p := load(field(argInit))
	for i := range acc {
		acc[i] = e.vec()
		e.load(Mem{Base: p, Index: col, Scale: 1}, acc[i])
	}
	segs, left, w := load(field(argSegs)), load(field(argNSegs)), load(field(argW))
	ADDQ(col, w)
	TESTQ(left, left)
	JZ(LabelRef("done"))
	Label("tap")
	MOVQ(field(argX), rows.base[0])
	ADDQ(Mem{Base: segs}, rows.base[0])
	ADDQ(col, rows.base[0])
	rows.begin()
	wv := e.vec()
	e.load(Mem{Base: w}, wv)
	for i := range acc {
		e.fma(rows.at(i), wv, acc[i])
	}
	ADDQ(field(argWStep), w)
	ADDQ(Imm(8), segs)
	DECQ(left)
	JNZ(LabelRef("tap"))
	Label("done")
	c := load(field(argC))
	ADDQ(col, c)
	for i, v := range acc {
		e.max(v, lo, v)
		e.min(v, hi, v)
		e.store(v, Mem{Base: c})
		if i+1 < m {
			ADDQ(field(argCStep), c)
		}
	}
	ADDQ(Imm(uint64(e.lanes*e.size)), col)
	DECQ(count)
	JNZ(LabelRef("column"))
	VZEROUPPER()
	RET()
}

func load(m Mem) reg.GPVirtual {
	r := GP64()
	MOVQ(m, r)
	return r
}
