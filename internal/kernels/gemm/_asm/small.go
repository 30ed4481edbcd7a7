package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// small writes the product of matrices whose result has rows of at most one vector. Each element is the
// sum that the tiles have, in their order.
func small(e *elem) {
	TEXT("small"+e.suffix, NOSPLIT, fmt.Sprintf("func(m, n, k int, a *%[1]s, aRow, aK int, b *%[1]s, bK int, c *%[1]s)", e.goType))
	Doc(fmt.Sprintf("small%s sets the m×n matrix c, which is dense, to the product of a and b, whose rows are dense and at most a vector long.", e.suffix))
	Pragma("noescape")
	m, n, k := param("m"), param("n"), param("k")
	a, aRow, aK := param("a"), param("aRow"), param("aK")
	b, bK, c := param("b"), param("bK"), param("c")
	all := GP64()
	MOVQ(I64(-1), all)
	BZHIQ(n, all, all)
	KMOVW(all.As32(), reg.K1)
	for _, r := range []reg.GPVirtual{n, aRow, aK, bK} {
		e.bytes(r)
	}
	acc, x, y := e.vec(), e.vec(), e.vec()
	left, right, depth := GP64(), GP64(), GP64()
	Label("row")
	e.zero(acc)
	MOVQ(a, left)
	MOVQ(b, right)
	MOVQ(k, depth)
	Label("step")
	e.loadK(Mem{Base: right}, reg.K1, y)
	e.splat(Mem{Base: left}, x)
	e.fma(x, y, acc)
	ADDQ(aK, left)
	ADDQ(bK, right)
	DECQ(depth)
	JNZ(LabelRef("step"))
	e.storeK(acc, reg.K1, Mem{Base: c})
	ADDQ(n, c)
	ADDQ(aRow, a)
	DECQ(m)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
