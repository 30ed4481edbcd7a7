package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// indexUnroll is how many elements a round of the loops over an index has.
const indexUnroll = 4

// indexed writes loops over elements that an index selects, which end before an index that is out of
// range.
func indexed() {
	for _, e := range []struct {
		name             string
		size             int
		load, store, add func(from, to Op)
		scratch          func() reg.Register
	}{
		{name: "1", size: 1, load: MOVBLZX, store: MOVB, add: ADDB, scratch: func() reg.Register { return GP32() }},
		{name: "2", size: 2, load: MOVWLZX, store: MOVW, add: ADDW, scratch: func() reg.Register { return GP32() }},
		{name: "4", size: 4, load: MOVL, store: MOVL, add: ADDL, scratch: func() reg.Register { return GP32() }},
		{name: "8", size: 8, load: MOVQ, store: MOVQ, add: ADDQ, scratch: func() reg.Register { return GP64() }},
	} {
		narrow := func(v reg.Register) Op {
			switch e.size {
			case 1:
				return v.(reg.GP).As8L()
			case 2:
				return v.(reg.GP).As16()
			}
			return v
		}
		take := func(dst, src, place Mem) {
			v := e.scratch()
			e.load(place, v)
			e.store(narrow(v), dst)
		}
		indexLoop("take"+e.name, e.size, "sets element j of dst to that of src which index[j] selects", take, false, false)
		indexLoop("takeWrapped"+e.name, e.size, "sets element j of dst to that of src which index[j] selects, or size more where that is negative",
			take, false, true)
		indexLoop("put"+e.name, e.size, "sets the element of dst that index[j] selects to element j of src",
			func(dst, src, place Mem) {
				v := e.scratch()
				e.load(src, v)
				e.store(narrow(v), place)
			}, true, false)
		indexLoop("putSum"+e.name, e.size, "adds element j of src to the element of dst that index[j] selects",
			func(dst, src, place Mem) {
				v := e.scratch()
				e.load(src, v)
				e.add(narrow(v), place)
			}, true, false)
	}
	for _, f := range []struct {
		name      string
		size      int
		load, add func(...Op)
	}{
		{"putSumSingles", 4, func(o ...Op) { MOVSS(o[0], o[1]) }, func(o ...Op) { ADDSS(o[0], o[1]) }},
		{"putSumDoubles", 8, func(o ...Op) { MOVSD(o[0], o[1]) }, func(o ...Op) { ADDSD(o[0], o[1]) }},
	} {
		indexLoop(f.name, f.size, "adds element j of src to the element of dst that index[j] selects",
			func(dst, src, place Mem) {
				v := XMM()
				f.load(place, v)
				f.add(src, v)
				f.load(v, place)
			}, true, false)
	}
	prefetch()
}

// indexLoop writes one loop. indexesDst says which of both is selected from, and wraps that negative ones count from the
// end.
func indexLoop(name string, size int, what string, one func(dst, src, place Mem), indexesDst, wraps bool) {
	name += "Indexed"
	TEXT(name, NOSPLIT, "func(dst, src *byte, index *int64, size, n int) int")
	Doc(fmt.Sprintf("%s %s, for each j below n from 0 on, until what index[j] selects is not below size or below zero. It returns how many were done.", name, what))
	Pragma("noescape")
	dst, src, index := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("index"), GP64())
	bound, n := Load(Param("size"), GP64()), Load(Param("n"), GP64())
	at := GP64()
	XORQ(at, at)
	step := func(i int) {
		ix := GP64()
		MOVQ(Mem{Base: index.(reg.Register), Index: at.(reg.Register), Scale: 8, Disp: 8 * i}, ix)
		if wraps {
			up := GP64()
			LEAQ(Mem{Base: ix, Index: bound.(reg.Register), Scale: 1}, up)
			TESTQ(ix, ix)
			CMOVQLT(up, ix)
		}
		CMPQ(ix, bound)
		JAE(LabelRef(fmt.Sprintf("bad%d", i)))
		from := Mem{Base: src.(reg.Register), Index: at.(reg.Register), Scale: uint8(size), Disp: size * i}
		to := Mem{Base: dst.(reg.Register), Index: at.(reg.Register), Scale: uint8(size), Disp: size * i}
		place := Mem{Base: src.(reg.Register), Index: ix.(reg.Register), Scale: uint8(size)}
		if indexesDst {
			place.Base = dst.(reg.Register)
		}
		one(to, from, place)
	}
	SUBQ(Imm(indexUnroll), n)
	JLT(LabelRef("rest"))
	Label("round")
	for i := range indexUnroll {
		step(i)
	}
	ADDQ(Imm(indexUnroll), at)
	SUBQ(Imm(indexUnroll), n)
	JGE(LabelRef("round"))
	Label("rest")
	ADDQ(Imm(indexUnroll), n)
	JEQ(LabelRef("bad0"))
	Label("single")
	step(0)
	INCQ(at)
	DECQ(n)
	JNZ(LabelRef("single"))
	JMP(LabelRef("bad0"))
	for i := indexUnroll - 1; i > 0; i-- {
		Label(fmt.Sprintf("bad%d", i))
		INCQ(at)
	}
	Label("bad0")
	Store(at, ReturnIndex(0))
	RET()
}

// prefetch writes the loop over the cache lines of a row.
func prefetch() {
	TEXT("prefetchLines", NOSPLIT, "func(p *byte, n int)")
	Doc("prefetchLines asks for n cache lines from that of p on.")
	Pragma("noescape")
	p, n := Load(Param("p"), GP64()), Load(Param("n"), GP64())
	Label("line")
	PREFETCHT0(Mem{Base: p.(reg.Register)})
	ADDQ(Imm(64), p)
	DECQ(n)
	JNZ(LabelRef("line"))
	RET()
}
