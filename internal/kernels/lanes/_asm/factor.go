package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// factor writes the factors of matrices by columns.
func (s *isa) factor() {
	s.begin("factor", "func(a *float64, rows, cols, count int, pivots, info *float64)", "is Factor of count pivots.")
	s.parts(func(off reg.GPVirtual) {
		row, pivots, info := pointer("a", off), pointer("pivots", off), pointer("info", off)
		below, right, n, step := number("rows"), number("cols"), number("count"), blocks("cols")
		diagonal := moved(row)
		unit, place, singular := s.all(one), s.all(one), s.vec()
		VXORPD(singular, singular, singular)
		loop("column", n, func() {
			DECQ(below)
			DECQ(right)
			p := s.search(diagonal, step, below, place, unit)
			VMOVUPD(p, Mem{Base: pivots})
			i := s.copied(place)
			left, other := moved(below), moved(row)
			loop("other", left, func() {
				ADDQ(step, other)
				VADDPD(unit, i, i)
				s.swap("other", s.compare(equal, p, i), row, other, func() reg.GPVirtual { return number("cols") })
			})
			s.note(diagonal, place, singular)
			s.eliminate(diagonal, step, below, right)
			VADDPD(unit, place, place)
			ADDQ(step, row)
			ADDQ(step, diagonal)
			ADDQ(U32(block), diagonal)
			ADDQ(U32(block), pivots)
		})
		VMOVUPD(singular, Mem{Base: info})
	})
}

// search returns the numbers of the rows with the greatest elements of a column, of which the first has a number.
func (s *isa) search(top, step, below reg.GPVirtual, first, unit reg.VecVirtual) reg.VecVirtual {
	absolute := s.all(magnitude)
	most, p, i := s.vec(), s.copied(first), s.copied(first)
	VANDPD(Mem{Base: top}, absolute, most)
	n, at := moved(below), moved(top)
	loop("search", n, func() {
		ADDQ(step, at)
		VADDPD(unit, i, i)
		v := s.vec()
		VANDPD(Mem{Base: at}, absolute, v)
		lanes := s.compare(greater, v, most)
		s.where(lanes, v, most)
		s.where(lanes, i, p)
	})
	return p
}

// swap exchanges lanes of two rows.
func (s *isa) swap(name string, lanes reg.Register, x, y reg.GPVirtual, cols func() reg.GPVirtual) {
	s.unless(lanes, name+"Same")
	n, first, second := cols(), moved(x), moved(y)
	loop(name+"Swap", n, func() {
		v, w := s.loaded(Mem{Base: first}), s.loaded(Mem{Base: second})
		kept := s.copied(v)
		s.where(lanes, w, v)
		s.where(lanes, kept, w)
		VMOVUPD(v, Mem{Base: first})
		VMOVUPD(w, Mem{Base: second})
		ADDQ(U32(block), first)
		ADDQ(U32(block), second)
	})
	Label(name + "Same")
}

// note keeps the number of the first pivot that is zero.
func (s *isa) note(pivot reg.GPVirtual, place, singular reg.VecVirtual) {
	zero := s.vec()
	VXORPD(zero, zero, zero)
	fresh := s.copied(singular)
	s.where(s.compare(equal, zero, Mem{Base: pivot}), place, fresh)
	s.where(s.compare(equal, zero, singular), fresh, singular)
}

// eliminate takes multiples of the pivot's row from those below it where the pivot is not zero.
func (s *isa) eliminate(diagonal, step, below, right reg.GPVirtual) {
	zero := s.vec()
	VXORPD(zero, zero, zero)
	d := s.loaded(Mem{Base: diagonal})
	lanes := s.compare(unequal, d, zero)
	at, left := moved(diagonal), moved(below)
	loop("row", left, func() {
		ADDQ(step, at)
		first, f := s.loaded(Mem{Base: at}), s.vec()
		VDIVPD(d, first, f)
		s.where(lanes, f, first)
		VMOVUPD(first, Mem{Base: at})
		n, from, to := moved(right), moved(diagonal), moved(at)
		loop("element", n, func() {
			ADDQ(U32(block), from)
			ADDQ(U32(block), to)
			v := s.loaded(Mem{Base: to})
			w := s.copied(v)
			VFNMADD231PD(Mem{Base: from}, f, w)
			s.where(lanes, w, v)
			VMOVUPD(v, Mem{Base: to})
		})
	})
}

// exchange writes the exchange of a row of each matrix with the one that its pivot names.
func (s *isa) exchange() {
	s.begin("exchange", "func(x *float64, cols, row, n int, pivots *float64)", "exchanges a row with the ones of n that pivots name.")
	s.parts(func(off reg.GPVirtual) {
		x, step, row := pointer("x", off), blocks("cols"), number("row")
		IMULQ(step, row)
		ADDQ(x, row)
		p := s.loaded(Mem{Base: pointer("pivots", off)})
		unit, i := s.all(one), s.all(one)
		loop("other", number("n"), func() {
			CMPQ(x, row)
			JE(LabelRef("otherSame"))
			s.swap("other", s.compare(equal, p, i), row, x, func() reg.GPVirtual { return number("cols") })
			VADDPD(unit, i, i)
			ADDQ(step, x)
		})
	})
}

// reduce writes a row of a product taken from a row, which is then divided.
func (s *isa) reduce() {
	s.begin("reduce", "func(to *float64, cols, across int, t *float64, step int, x *float64, width, depth int, d *float64)",
		"takes the products of depth blocks of t with rows of x from a row, and divides it by d unless that is nil.")
	s.parts(func(off reg.GPVirtual) {
		to, x, cols := pointer("to", off), pointer("x", off), number("cols")
		step, width, across := blocks("step"), blocks("width"), blocks("across")
		Label("four")
		CMPQ(cols, Imm(4))
		JL(LabelRef("single"))
		s.reduceBlocks("four", 4, to, x, across, step, width, off)
		SUBQ(Imm(4), cols)
		JMP(LabelRef("four"))
		Label("single")
		loop("one", cols, func() { s.reduceBlocks("one", 1, to, x, across, step, width, off) })
	})
}

// reduceBlocks writes the next elements of the row, which lie across bytes apart as those of rows of x do.
func (s *isa) reduceBlocks(name string, count int, to, x, across, step, width, off reg.GPVirtual) {
	sums, rows := make([]reg.VecVirtual, count), rowsOf(to, across, count)
	for j := range sums {
		sums[j] = s.loaded(rows[j])
	}
	at, from := pointer("t", off), moved(x)
	others := rowsOf(from, across, count)
	loop(name+"Depth", number("depth"), func() {
		f := s.loaded(Mem{Base: at})
		for j := range sums {
			VFNMADD231PD(others[j], f, sums[j])
		}
		ADDQ(step, at)
		ADDQ(width, from)
	})
	d := number("d")
	TESTQ(d, d)
	JZ(LabelRef(name + "Whole"))
	divisor := s.loaded(Mem{Base: d, Index: off, Scale: 1})
	for j := range sums {
		VDIVPD(divisor, sums[j], sums[j])
	}
	Label(name + "Whole")
	for j := range sums {
		VMOVUPD(sums[j], rows[j])
	}
	if count == 4 {
		LEAQ(Mem{Base: to, Index: across, Scale: 4}, to)
		LEAQ(Mem{Base: x, Index: across, Scale: 4}, x)
		return
	}
	ADDQ(across, to)
	ADDQ(across, x)
}

// root writes the division of a row by the root of its first element.
func (s *isa) root() {
	s.begin("root", "func(row *float64, n int) (ok bool)", "divides n elements by the root of the one before them, and reports whether that is greater than zero.")
	ok, always := GP64(), GP64()
	MOVQ(U32(1), ok)
	s.parts(func(off reg.GPVirtual) {
		row, zero := pointer("row", off), s.vec()
		VXORPD(zero, zero, zero)
		d := s.loaded(Mem{Base: row})
		XORQ(always, always)
		s.every(s.compare(greater, d, zero), always)
		ANDQ(always, ok)
		VSQRTPD(d, d)
		VMOVUPD(d, Mem{Base: row})
		loop("element", number("n"), func() {
			ADDQ(U32(block), row)
			v := s.loaded(Mem{Base: row})
			VDIVPD(d, v, v)
			VMOVUPD(v, Mem{Base: row})
		})
		Store(ok.As8(), ReturnIndex(0))
	})
}

// every makes is 1 if lanes are all of them.
func (s *isa) every(lanes reg.Register, is reg.GPVirtual) {
	if s.bytes == 64 {
		KORTESTB(lanes, lanes)
		SETCS(is.As8())
		return
	}
	bits := GP32()
	VMOVMSKPD(lanes, bits)
	CMPL(bits, Imm(15))
	SETEQ(is.As8())
}

// determinant writes the product of the pivots, negative where there was an odd number of exchanges.
func (s *isa) determinant() {
	s.begin("determinant", "func(lu *float64, n int, pivots, det *float64)", "is Determinant.")
	s.parts(func(off reg.GPVirtual) {
		at, pivots, step := pointer("lu", off), pointer("pivots", off), blocks("n")
		ADDQ(U32(block), step)
		det, place, unit, flip := s.all(one), s.all(one), s.all(one), s.all(sign)
		loop("pivot", number("n"), func() {
			VMULPD(Mem{Base: at}, det, det)
			other := s.vec()
			VXORPD(flip, det, other)
			s.where(s.compare(unequal, place, Mem{Base: pivots}), other, det)
			VADDPD(unit, place, place)
			ADDQ(step, at)
			ADDQ(U32(block), pivots)
		})
		VMOVUPD(det, Mem{Base: pointer("det", off)})
	})
}
