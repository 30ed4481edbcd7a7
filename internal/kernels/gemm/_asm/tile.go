package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowsOf holds the addresses of up to 14 rows that are one stride apart, in two
// base registers and three multiples of the stride.
type rowsOf struct {
	base       [2]reg.GPVirtual
	r1, r3, r5 reg.GPVirtual
}

func newRows(base, stride reg.GPVirtual, rows int) *rowsOf {
	r := &rowsOf{base: [2]reg.GPVirtual{base}, r1: stride}
	if rows > 3 {
		r.r3 = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, r.r3)
	}
	if rows > 5 {
		r.r5 = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 4}, r.r5)
	}
	if rows > 7 {
		r.base[1] = GP64()
		LEAQ(Mem{Base: base, Index: r.r3, Scale: 2}, r.base[1])
		ADDQ(stride, r.base[1])
	}
	return r
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

// advance moves all rows on.
func (r *rowsOf) advance(by Op) {
	for _, b := range r.base {
		if b != nil {
			ADDQ(by, b)
		}
	}
}

// flags of a tile function.
const (
	flagAdd    = 1 // to what c holds
	flagPadded = 2 // rows of b may be read up to the full width
	flagBelow  = 4 // the tile below this one comes soon
)

// stored is how the right operand of a tile lies in memory.
type stored struct {
	prefix string // of the suffix of names
	goType string
	size   int
	load   func(m, v Op)
	loadK  func(m, k, v Op)
}

// own is as elements.
func (e *elem) own() *stored {
	return &stored{goType: e.goType, size: e.size, load: e.load, loadK: e.loadK}
}

// bf16s and f16s are as 16-bit floats, which become float32.
var (
	bf16s = &stored{
		prefix: "BF16", goType: f32z.goType, size: 2,
		load: func(m, v Op) {
			VPMOVZXWD(m, v)
			VPSLLD(Imm(16), v, v)
		},
		loadK: func(m, k, v Op) {
			VPMOVZXWD_Z(m, k, v)
			VPSLLD(Imm(16), v, v)
		},
	}
	f16s = &stored{
		prefix: "F16", goType: f32z.goType, size: 2,
		load:  func(m, v Op) { VCVTPH2PS(m, v) },
		loadK: func(m, k, v Op) { VCVTPH2PS_Z(m, k, v) },
	}
)

// tile writes the inner loop for m rows and n vectors of columns.
func tile(e *elem, m, n int, from *stored) {
	name := fmt.Sprintf("tile%dx%d%s%s", m, n*e.lanes, from.prefix, e.suffix)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(depth int, a *%[1]s, aRow, aK int, b *%[2]s, bK int, c *%[1]s, ldc, cols int, alpha %[1]s, flags int, next *%[2]s, step int)", e.goType, from.goType))
	Doc(fmt.Sprintf("%s computes a tile of %d rows and up to %d columns.", name, m, n*e.lanes))
	Pragma("noescape")

	acc := make([][]reg.VecVirtual, m)
	for i := range acc {
		for range n {
			v := e.vec()
			e.zero(v)
			acc[i] = append(acc[i], v)
		}
	}
	depth, aRow, aK, bK := param("depth"), param("aRow"), param("aK"), param("bK")
	e.bytes(aRow)
	e.bytes(aK)
	bytes(bK, from.size)
	rows := newRows(param("a"), aRow, m)
	b := param("b")
	c, ldc := param("c"), param("ldc")
	e.bytes(ldc)
	if e.masked {
		masks(e, n)
	}
	CMPQ(depth, Imm(shallow))
	JLE(LabelRef("begin"))
	prefetchRows(c, ldc, m, n*e.lanes*e.size)
	Label("begin")
	next, ahead := param("next"), param("step")

	TESTQ(depth, depth)
	JZ(LabelRef("done"))
	right := func(j int, masked bool, fetch func(j int, at Mem)) reg.VecVirtual {
		v, at := e.vec(), Mem{Base: b, Disp: j * e.lanes * from.size}
		if masked {
			from.loadK(at, maskOf(j), v)
		} else {
			from.load(at, v)
		}
		fetch(j, at)
		return v
	}
	left := func(i int) reg.VecVirtual {
		x := e.vec()
		e.splat(rows.at(i), x)
		return x
	}
	step := func(masked bool, fetch func(j int, at Mem)) {
		if (m+1)*n+1 > e.registers { // the rows' elements are fewer than the vectors
			x := make([]reg.VecVirtual, m)
			for i := range x {
				x[i] = left(i)
			}
			for j := range n {
				v := right(j, masked, fetch)
				for i := range m {
					e.accumulate(v, x[i], acc[i][j])
				}
			}
			ADDQ(bK, b)
			rows.advance(aK)
			return
		}
		bv := make([]reg.VecVirtual, n)
		for j := range bv {
			bv[j] = right(j, masked, fetch)
		}
		ADDQ(bK, b)
		for i := range m {
			x := left(i)
			for j := range n {
				e.accumulate(bv[j], x, acc[i][j])
			}
		}
		rows.advance(aK)
	}
	if e.masked {
		loop("masked", depth, 1, func() { step(true, func(int, Mem) {}) }, func() {
			flags := param("flags")
			TESTQ(U32(flagPadded), flags)
			JNZ(LabelRef("padded"))
			cols := param("cols")
			CMPQ(cols, Imm(uint64(n*e.lanes)))
			JEQ(LabelRef("padded"))
		})
		JMP(LabelRef("done"))
		Label("padded")
	}
	CMPQ(depth, Imm(shallow))
	JG(LabelRef("deep"))
	flags := param("flags")
	TESTQ(U32(flagBelow), flags)
	JZ(LabelRef("deep"))
	below := GP64()
	IMUL3Q(U32(uint32(m)), ldc, below)
	ADDQ(c, below)
	loop("shallow", depth, 1, func() {
		step(false, func(j int, _ Mem) { PREFETCHT0(Mem{Base: below, Disp: j * e.lanes * e.size}) })
		ADDQ(ldc, below)
	}, func() {})
	JMP(LabelRef("done"))
	Label("deep")
	pairs(depth, func() {
		step(false, func(j int, at Mem) {
			if at.Disp%line == 0 {
				PREFETCHT0(Mem{Base: b, Index: bK, Scale: 8, Disp: at.Disp})
			}
		})
		PREFETCHT1(Mem{Base: next})
		ADDQ(ahead, next)
	})
	Label("done")
	result(e, acc, c, ldc)
	VZEROUPPER()
	RET()
}

// loop repeats body until the count, which is not zero, is used up.
func loop(name string, count Op, by int, body, first func()) {
	first()
	Label(name)
	body()
	SUBQ(Imm(uint64(by)), count)
	JNZ(LabelRef(name))
}

// pairs repeats body count times, which is not zero, two at a time.
func pairs(count reg.GPVirtual, body func()) {
	TESTQ(U32(1), count)
	JZ(LabelRef("even"))
	body()
	DECQ(count)
	JZ(LabelRef("done"))
	Label("even")
	body()
	body()
	SUBQ(Imm(2), count)
	JNZ(LabelRef("even"))
}

var maskRegs = []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4}

func maskOf(j int) Op { return maskRegs[j] }

// masks sets the mask registers to the columns that exist.
func masks(e *elem, n int) {
	cols, all := param("cols"), GP64()
	MOVQ(I64(-1), all)
	BZHIQ(cols, all, all)
	for j := range n {
		if j > 0 {
			SHRQ(Imm(uint64(e.lanes)), all)
		}
		KMOVW(all.As32(), maskRegs[j])
	}
}

// shallow is up to which depth the sums take less time than a line takes from memory: the tile above asks for it then,
// a row at a step. Panels so shallow stay in the first-level cache.
const shallow = 64

// line is how many bytes the caches' lines have.
const line = 64

// prefetchRows asks for the tile of c, with rows of so many bytes, while the sums are computed.
func prefetchRows(c, ldc reg.GPVirtual, m, bytes int) {
	p := GP64()
	MOVQ(c, p)
	for range m {
		for at := 0; at < bytes; at += line {
			PREFETCHT0(Mem{Base: p, Disp: at})
		}
		ADDQ(ldc, p)
	}
}

// result stores or adds the sums.
func result(e *elem, acc [][]reg.VecVirtual, c, ldc reg.GPVirtual) {
	alpha := alphaOf(e)
	flags := param("flags")
	TESTQ(U32(flagAdd), flags)
	JNZ(LabelRef("add"))
	for _, row := range acc {
		for j, v := range row {
			e.mul(alpha, v, v)
			put(e, v, j, c)
		}
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
	Label("add")
	for _, row := range acc {
		for j, v := range row {
			old := e.vec()
			at := Mem{Base: c, Disp: j * e.lanes * e.size}
			if e.masked {
				e.loadK(at, maskOf(j), old)
			} else {
				e.load(at, old)
			}
			e.fma(alpha, v, old)
			put(e, old, j, c)
		}
		ADDQ(ldc, c)
	}
}

func put(e *elem, v reg.VecVirtual, j int, c reg.GPVirtual) {
	at := Mem{Base: c, Disp: j * e.lanes * e.size}
	if e.masked {
		e.storeK(v, maskOf(j), at)
		return
	}
	e.store(v, at)
}
