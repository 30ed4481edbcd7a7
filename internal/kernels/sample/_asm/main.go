// Command asm writes the loops of package sample for amd64.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the elements of a vector, and most the vectors of a row that are treated at once.
const (
	lanes = 16
	most  = 4
)

// notLess is a comparison of VPCMPD.
const notLess = 5

func main() {
	ConstraintExpr("amd64,!noasm")
	weighRows()
	addRows()
	multiplyRows()
	weighPlane()
	multiplyPlane()
	weighPairs()
	greatest()
	Generate()
}

// begin writes the head of a function.
func begin(name, signature string, doc ...string) {
	TEXT(name+"AVX512", NOSPLIT, signature)
	doc[0] = name + "AVX512 " + doc[0]
	Doc(doc...)
	Pragma("noescape")
}

func param(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }

// firstLanes returns a mask of the first n lanes, of which there is at least one; all if there are more.
func firstLanes(n reg.GPVirtual, label string) reg.OpmaskVirtual {
	ones, mask := GP64(), K()
	MOVL(U32(0xffff), ones.As32())
	CMPQ(n, Imm(lanes))
	JGE(LabelRef(label))
	BZHIL(n.As32(), ones.As32(), ones.As32())
	Label(label)
	KMOVW(ones.As32(), mask)
	return mask
}

func zero(v reg.VecVirtual) { VPXORD(v, v, v) }

// rowChunks writes body for parts of rows of so many columns: of four vectors as long as there are so many, then of what is
// left. Columns of all rows before have been added to the pointers. The last vector of a part has a mask.
func rowChunks(columns reg.GPVirtual, pointers []reg.GPVirtual, body func(label func(string) string, vectors int, last reg.OpmaskVirtual)) {
	Label("columns")
	for vectors := most; vectors > 0; vectors-- {
		label := func(s string) string { return fmt.Sprintf("%s%d", s, vectors) }
		if vectors > 1 {
			CMPQ(columns, Imm(uint64((vectors-1)*lanes)))
			JLE(LabelRef(label("fewer")))
		}
		rest := GP64()
		LEAQ(Mem{Base: columns, Disp: -(vectors - 1) * lanes}, rest)
		body(label, vectors, firstLanes(rest, label("mask")))
		for _, p := range pointers {
			ADDQ(U32(uint32(vectors*lanes*4)), p)
		}
		SUBQ(Imm(uint64(vectors*lanes)), columns)
		JG(LabelRef("columns"))
		JMP(LabelRef("end"))
		Label(label("fewer"))
	}
	Label("end")
}

// load and store move a vector; the last of a row has a mask.
func load(m Mem, v reg.VecVirtual, mask reg.OpmaskVirtual, last bool) {
	if last {
		VMOVUPS_Z(m, mask, v)
	} else {
		VMOVUPS(m, v)
	}
}

func store(v reg.VecVirtual, m Mem, mask reg.OpmaskVirtual, last bool) {
	if last {
		VMOVUPS(v, mask, m)
	} else {
		VMOVUPS(v, m)
	}
}

// vectorOf returns where vector i of a row is.
func vectorOf(row reg.GPVirtual, i int) Mem { return Mem{Base: row, Disp: 4 * lanes * i} }

// eachPlace writes a loop over places, each with a row of its own from own on, and over their taps that count. It writes begin
// and end with the place's row, and tap with the row that a tap selects and the weight of that. Rows have so many bytes.
func eachPlace(label func(string) string, own, rows, bytes, step reg.GPVirtual, begin func(row reg.GPVirtual), tap func(row reg.GPVirtual, weight reg.VecVirtual), end func(row reg.GPVirtual)) {
	at, weights, n, place := param("at"), param("weights"), param("n"), GP64()
	MOVQ(own, place)
	Label(label("place"))
	begin(place)
	p, w, t := GP64(), GP64(), param("taps")
	MOVQ(at, p)
	MOVQ(weights, w)
	Label(label("tap"))
	row, weight := GP64(), ZMM()
	MOVLQSX(Mem{Base: p}, row)
	TESTQ(row, row)
	JL(LabelRef(label("none")))
	IMULQ(bytes, row)
	ADDQ(rows, row)
	VBROADCASTSS(Mem{Base: w}, weight)
	tap(row, weight)
	Label(label("none"))
	ADDQ(step, p)
	ADDQ(step, w)
	DECQ(t)
	JNE(LabelRef(label("tap")))
	end(place)
	ADDQ(bytes, place)
	ADDQ(Imm(4), at)
	ADDQ(Imm(4), weights)
	DECQ(n)
	JNE(LabelRef(label("place")))
}

// weighRows writes the weighted sums of the rows that each place reads.
func weighRows() {
	begin("weighRows", "func(dst, rows *float32, width int, at *int32, weights *float32, step, taps, n int)",
		"sets n rows of dst to the sums of the rows that at selects, times weights. Rows have width columns, above zero.",
		"Taps of a place are step apart; those below zero count for nothing.")
	dst, rows, width, columns := param("dst"), param("rows"), param("width"), param("width")
	step, bytes := param("step"), GP64()
	SHLQ(Imm(2), step)
	MOVQ(width, bytes)
	SHLQ(Imm(2), bytes)
	rowChunks(columns, []reg.GPVirtual{dst, rows}, func(label func(string) string, vectors int, mask reg.OpmaskVirtual) {
		sums := make([]reg.VecVirtual, vectors)
		eachPlace(label, dst, rows, bytes, step, func(reg.GPVirtual) {
			for i := range sums {
				sums[i] = ZMM()
				zero(sums[i])
			}
		}, func(row reg.GPVirtual, weight reg.VecVirtual) {
			for i, sum := range sums {
				if i == vectors-1 {
					VFMADD231PS(vectorOf(row, i), weight, mask, sum)
				} else {
					VFMADD231PS(vectorOf(row, i), weight, sum)
				}
			}
		}, func(to reg.GPVirtual) {
			for i, sum := range sums {
				store(sum, vectorOf(to, i), mask, i == vectors-1)
			}
		})
	})
	VZEROUPPER()
	RET()
}

// addRows writes the addition of the rows of places to those that they read.
func addRows() {
	begin("addRows", "func(rows, src *float32, width int, at *int32, weights *float32, step, taps, n int)",
		"adds each of n rows of src, times weights, to the rows that at selects. Rows have width columns, above zero.",
		"Taps of a place are step apart; those below zero are none.")
	rows, src, width, columns := param("rows"), param("src"), param("width"), param("width")
	step, bytes := param("step"), GP64()
	SHLQ(Imm(2), step)
	MOVQ(width, bytes)
	SHLQ(Imm(2), bytes)
	rowChunks(columns, []reg.GPVirtual{src, rows}, func(label func(string) string, vectors int, mask reg.OpmaskVirtual) {
		values := make([]reg.VecVirtual, vectors)
		eachPlace(label, src, rows, bytes, step, func(from reg.GPVirtual) {
			for i := range values {
				values[i] = ZMM()
				load(vectorOf(from, i), values[i], mask, i == vectors-1)
			}
		}, func(row reg.GPVirtual, weight reg.VecVirtual) {
			for i, v := range values {
				m, sum, last := vectorOf(row, i), ZMM(), i == vectors-1
				load(m, sum, mask, last)
				VFMADD231PS(v, weight, sum)
				store(sum, m, mask, last)
			}
		}, func(reg.GPVirtual) {})
	})
	VZEROUPPER()
	RET()
}

// multiplyRows writes the products of the row of a place and each of those that it reads.
func multiplyRows() {
	begin("multiplyRows", "func(dst, src, rows *float32, width int, at *int32, step, n int)",
		"sets four elements of dst for each of n rows of src to its products with the rows that at selects, of width columns, above",
		"zero. The elements of a place are step apart, as its rows in at are; those for rows below zero are 0.")
	dst, src, rows, width := param("dst"), param("src"), param("rows"), param("width")
	at, step, n, nothing := param("at"), param("step"), param("n"), GP64()
	SHLQ(Imm(2), step)
	XORQ(nothing, nothing)
	Label("place")
	p, row := GP64(), make([]reg.GPVirtual, 4)
	sums := make([]reg.VecVirtual, 4)
	MOVQ(at, p)
	for t := range row {
		row[t], sums[t] = GP64(), ZMM()
		MOVLQSX(Mem{Base: p}, row[t])
		ADDQ(step, p)
		TESTQ(row[t], row[t])
		CMOVQLT(nothing, row[t])
		IMULQ(width, row[t])
		LEAQ(Mem{Base: rows, Index: row[t], Scale: 4}, row[t])
		zero(sums[t])
	}
	left := GP64()
	MOVQ(width, left)
	Label("columns")
	mask, v := firstLanes(left, "mask"), ZMM()
	VMOVUPS_Z(Mem{Base: src}, mask, v)
	for t := range row {
		VFMADD231PS(Mem{Base: row[t]}, v, mask, sums[t])
		ADDQ(Imm(4*lanes), row[t])
	}
	ADDQ(Imm(4*lanes), src)
	SUBQ(Imm(lanes), left)
	JG(LabelRef("columns"))
	LEAQ(Mem{Base: src, Index: left, Scale: 4}, src) // to the end of the row
	total := sumOfEach(sums)
	q := GP64()
	MOVQ(at, p)
	MOVQ(dst, q)
	for t := range 4 {
		sum := GP32()
		VPEXTRD(Imm(uint64(t)), total, sum)
		CMPL(Mem{Base: p}, Imm(0))
		CMOVLLT(nothing.As32(), sum)
		MOVL(sum, Mem{Base: q})
		if t < 3 {
			ADDQ(step, p)
			ADDQ(step, q)
		}
	}
	ADDQ(Imm(4), at)
	ADDQ(Imm(4), dst)
	DECQ(n)
	JNE(LabelRef("place"))
	VZEROUPPER()
	RET()
}

// sumOfEach returns the sums of the elements of each of four vectors.
func sumOfEach(v []reg.VecVirtual) reg.VecVirtual {
	for _, x := range v {
		high := YMM()
		VEXTRACTF64X4(Imm(1), x, high)
		VADDPS(high, x.AsY(), x.AsY())
	}
	VHADDPS(v[1].AsY(), v[0].AsY(), v[0].AsY())
	VHADDPS(v[3].AsY(), v[2].AsY(), v[2].AsY())
	VHADDPS(v[2].AsY(), v[0].AsY(), v[0].AsY())
	high := XMM()
	VEXTRACTF128(Imm(1), v[0].AsY(), high)
	total := XMM()
	VADDPS(high, v[0].AsX(), total)
	return total
}

// weighPlane writes the weighted sums of the pixels that places read.
func weighPlane() {
	begin("weighPlane", "func(dst, plane *float32, at *int32, weights *float32, step, taps, n int, add bool)",
		"sets n elements of dst to the sums of the elements of plane that at selects, times weights, or adds them. Taps of a",
		"place are step apart; those below zero count for nothing.")
	dst, plane, at, weights := param("dst"), param("plane"), param("at"), param("weights")
	step, n, nothing := param("step"), param("n"), ZMM()
	SHLQ(Imm(2), step)
	zero(nothing)
	Label("places")
	mask, sum := firstLanes(n, "mask"), ZMM()
	zero(sum)
	CMPB(NewParamAddr("add", 56), Imm(0))
	JEQ(LabelRef("set"))
	VMOVUPS_Z(Mem{Base: dst}, mask, sum)
	Label("set")
	p, w, t := GP64(), GP64(), param("taps")
	MOVQ(at, p)
	MOVQ(weights, w)
	Label("tap")
	index, inside := tapsAt(p, mask, nothing)
	value, weight := gathered(plane, index, inside), ZMM()
	VMOVUPS_Z(Mem{Base: w}, mask, weight)
	VFMADD231PS(value, weight, sum)
	ADDQ(step, p)
	ADDQ(step, w)
	DECQ(t)
	JNE(LabelRef("tap"))
	VMOVUPS(sum, mask, Mem{Base: dst})
	ADDQ(Imm(4*lanes), dst)
	ADDQ(Imm(4*lanes), at)
	ADDQ(Imm(4*lanes), weights)
	SUBQ(Imm(lanes), n)
	JG(LabelRef("places"))
	VZEROUPPER()
	RET()
}

// tapsAt returns a vector of taps in memory, of which a mask has some, and which of them are not below zero.
func tapsAt(p reg.GPVirtual, mask reg.OpmaskVirtual, nothing reg.VecVirtual) (index reg.VecVirtual, inside reg.OpmaskVirtual) {
	index, inside = ZMM(), K()
	VMOVDQU32_Z(Mem{Base: p}, mask, index)
	VPCMPD(Imm(notLess), nothing, index, mask, inside)
	return index, inside
}

// gathered returns the elements of a plane at places of a mask, which it clears, and 0 for others.
func gathered(plane reg.GPVirtual, index reg.VecVirtual, inside reg.OpmaskVirtual) reg.VecVirtual {
	value := ZMM()
	zero(value)
	VGATHERDPS(Mem{Base: plane, Index: index, Scale: 4}, inside, value)
	return value
}

// multiplyPlane writes the products of an element for each place and the pixels that it reads.
func multiplyPlane() {
	begin("multiplyPlane", "func(dst, src, plane *float32, at *int32, step, taps, n int)",
		"adds n elements of src times those of plane that at selects to dst, for each tap. The elements of a place are step apart,",
		"as its taps in at are; those below zero are 0.")
	dst, src, plane, at := param("dst"), param("src"), param("plane"), param("at")
	step, n, nothing := param("step"), param("n"), ZMM()
	SHLQ(Imm(2), step)
	zero(nothing)
	Label("places")
	mask, v := firstLanes(n, "mask"), ZMM()
	VMOVUPS_Z(Mem{Base: src}, mask, v)
	p, q, t := GP64(), GP64(), param("taps")
	MOVQ(at, p)
	MOVQ(dst, q)
	Label("tap")
	index, inside := tapsAt(p, mask, nothing)
	kept := K()
	KMOVW(inside, kept)
	value, sum := gathered(plane, index, inside), ZMM()
	VMOVUPS_Z(Mem{Base: q}, mask, sum)
	VFMADD231PS(value, v, kept, sum)
	VMOVUPS(sum, mask, Mem{Base: q})
	ADDQ(step, p)
	ADDQ(step, q)
	DECQ(t)
	JNE(LabelRef("tap"))
	ADDQ(Imm(4*lanes), dst)
	ADDQ(Imm(4*lanes), src)
	ADDQ(Imm(4*lanes), at)
	SUBQ(Imm(lanes), n)
	JG(LabelRef("places"))
	VZEROUPPER()
	RET()
}

// greatest writes the maximum of a list.
func greatest() {
	begin("greatest", "func(x *int32, n int) int32", "returns the greatest of n numbers, or -1 if that is greater.")
	x, n, most := param("x"), param("n"), ZMM()
	VPTERNLOGD(Imm(0xff), most, most, most)
	Label("numbers")
	mask, v := firstLanes(n, "mask"), ZMM()
	VMOVDQU32_Z(Mem{Base: x}, mask, v)
	VPMAXSD(v, most, mask, most)
	ADDQ(Imm(4*lanes), x)
	SUBQ(Imm(lanes), n)
	JG(LabelRef("numbers"))
	high := YMM()
	VEXTRACTI64X4(Imm(1), most, high)
	VPMAXSD(high, most.AsY(), most.AsY())
	half := XMM()
	VEXTRACTI128(Imm(1), most.AsY(), half)
	VPMAXSD(half, most.AsX(), half)
	for _, order := range []uint64{0x4e, 0xb1} {
		other := XMM()
		VPSHUFD(Imm(order), half, other)
		VPMAXSD(other, half, half)
	}
	out := GP32()
	VMOVD(half, out)
	Store(out, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
