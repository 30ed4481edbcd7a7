package kernels

import (
	"github.com/loris-ml/loris/internal/strided"
)

// checked panics with an IndexError unless 0 <= i < size.
func checked(i int64, size int) int {
	if uint64(i) >= uint64(size) { // a negative index is a huge unsigned one
		panic(IndexError{i, size})
	}
	return int(i)
}

// fromEnd returns what an index that counts from the end, where it is negative, counts from the start.
func fromEnd(i int64, size int) int64 {
	if i < 0 {
		i += int64(size)
	}
	return i
}

// Lines is the geometry of gather and scatter. For each element of an index tensor, in row-major
// order, it gives the position in the indexed tensor where the line that the element indexes
// begins.
type Lines struct {
	base strided.View // the index's dimensions; the stride of the indexed one is 0
	size int          // of the indexed dimension
	step int          // the stride of the indexed dimension
	// The index's dimensions around the indexed one.
	outer, n, inner int
}

// NewLines returns the geometry of an index of dimensions index along dim of a
// dense tensor of dimensions dims.
func NewLines(dims []int, dim int, index []int) Lines {
	l := Lines{base: strided.Dense(dims), size: 1, step: 1, outer: 1, n: 1, inner: 1}
	if len(dims) > 0 {
		l.size, l.step = dims[dim], l.base.Strides[dim]
		l.base.Strides[dim] = 0
	}
	for d, n := range index {
		switch {
		case d < dim:
			l.outer *= n
		case d > dim:
			l.inner *= n
		default:
			l.n = n
		}
	}
	copy(l.base.Dims[:], index)
	return l
}

// Units returns into how many units scatters can be cut, none of which writes what another does.
func (l *Lines) Units() int {
	if l.outer == 1 {
		return l.inner
	}
	return l.outer
}

// UnitSize returns how many elements of the index a unit has.
func (l *Lines) UnitSize() int { return l.outer * l.n * l.inner / max(l.Units(), 1) }

// units calls f as runs does, for the elements of some units: in each line in the order of the index.
func (l *Lines) units(view *strided.View, lo, hi int, f func(i, pos, from, n int)) {
	if l.outer != 1 {
		l.runs(view, lo*l.n*l.inner, hi*l.n*l.inner, f)
		return
	}
	if lo == 0 && hi == l.inner {
		l.runs(view, 0, l.n*l.inner, f)
		return
	}
	for j := range l.n {
		l.runs(view, j*l.inner+lo, j*l.inner+hi, f)
	}
}

// runs goes through the elements lo..hi-1 of the index by parts of rows: n of them, from element i
// on, select from the position pos on, and belong to what lies at from in a view of the index's
// dimensions.
func (l *Lines) runs(view *strided.View, lo, hi int, f func(i, pos, from, n int)) {
	if lo >= hi {
		return
	}
	last := l.base.Rank - 1
	if last < 0 {
		f(0, l.base.Offset, view.Offset, 1)
		return
	}
	var at, viewAt [strided.MaxRank]int
	pos, from := l.base.Seek(lo, &at), view.Seek(lo, &viewAt)
	for skip := at[last]; lo < hi; skip = 0 {
		n := min(l.base.Dims[last]-skip, hi-lo)
		f(lo, pos, from, n)
		lo += n
		pos = l.base.Next(&at, last, pos-skip*l.base.Strides[last])
		from = view.Next(&viewAt, last, from-skip*view.Strides[last])
	}
}

// along returns how far apart the positions of a row's elements are.
func along(v *strided.View) int {
	if v.Rank == 0 {
		return 0
	}
	return v.Strides[v.Rank-1]
}

// Gather sets dst[i] to the element of x that index[i] selects, for lo <= i < hi.
func Gather[T strided.Bits](dst, x []T, index []int64, l *Lines, lo, hi int) {
	merged := *l
	merged.base = l.base.Merge() // with one index in each line, lines that follow one another are one run
	step := along(&merged.base)
	if up, ok := l.short(); ok {
		gatherShort(dst, x, index, l, up, lo, hi)
		return
	}
	merged.runs(&merged.base, lo, hi, func(i, pos, _, n int) {
		row := dst[i : i+n]
		if step == 0 && l.step == 1 {
			prefetch(x[min(pos+l.size, len(x)):min(pos+2*l.size, len(x))])
			takeEach(row, x[pos:pos+l.size], index[i:i+n])
			return
		}
		for j, ix := range index[i : i+n] {
			row[j] = x[pos+checked(ix, l.size)*l.step]
			pos += step
		}
	})
}

// Scatter sets the elements of dst that units lo..hi-1 of the index select to those of src, in the
// order of the index. view is the layout of src, with the dimensions of the index.
func Scatter[T strided.Bits](dst []T, index []int64, src []T, view *strided.View, l *Lines, lo, hi int) {
	step, next := along(&l.base), along(view)
	if up, ok := l.short(); ok && next == 1 {
		if apart, ok := rowStep(view); ok {
			scatterShort(dst, index, src, view.Offset, apart, l, up, lo, hi)
			return
		}
	}
	l.units(view, lo, hi, func(i, pos, from, n int) {
		if step == 0 && l.step == 1 && next == 1 {
			prefetch(dst[min(pos+l.size, len(dst)):min(pos+2*l.size, len(dst))])
			putEach(dst[pos:pos+l.size], index[i:i+n], src[from:from+n])
			return
		}
		for _, ix := range index[i : i+n] {
			dst[pos+checked(ix, l.size)*l.step] = src[from]
			pos += step
			from += next
		}
	})
}

// ScatterRows sets rows of dst, [size, inner], to those of source, [len(index), inner], in the order
// of index, in the columns lo..hi-1.
func ScatterRows[T strided.Bits](dst []T, index []int64, source []T, size, inner, lo, hi int) {
	for j, ix := range index {
		p := checked(ix, size) * inner
		copy(dst[p+lo:p+hi], source[j*inner+lo:j*inner+hi])
	}
}

// Combine says how ScatterReduce combines elements.
type Combine uint8

// The ways of ScatterReduce.
const (
	CombineSum Combine = iota
	CombineProd
	CombineMean
	CombineMax
	CombineMin
)

// ScatterReduce combines each element of src that belongs to units lo..hi-1 of the index with the
// element of dst that index selects. Unless includeSelf is set, what dst held there before is
// ignored. count is scratch memory as long as dst, and all units must be done at once; it may be nil
// if includeSelf is set and how is not CombineMean.
func ScatterReduce[T Number](dst []T, index []int64, src []T, view *strided.View, l *Lines, how Combine, includeSelf bool, count []int64, lo, hi int) {
	if l.base.Len() == 0 {
		return
	}
	if how == CombineMean || !includeSelf {
		scatterCounting(dst, index, src, view, l, how, includeSelf, count, lo, hi)
		return
	}
	step, next := along(&l.base), along(view)
	if up, ok := l.short(); ok && next == 1 && how == CombineSum {
		if apart, ok := rowStep(view); ok {
			addShort(dst, index, src, view.Offset, apart, l, up, lo, hi)
			return
		}
	}
	l.units(view, lo, hi, func(i, pos, from, n int) {
		// The commonest ways have loops of their own: a call for each element takes longer than the rest.
		part := index[i : i+n]
		if how == CombineSum && step == 0 && l.step == 1 && next == 1 {
			prefetch(dst[min(pos+l.size, len(dst)):min(pos+2*l.size, len(dst))])
			addEach(dst[pos:pos+l.size], part, src[from:from+n])
			return
		}
		if bytes, ok := any(dst).([]uint8); ok && how == CombineMax && step == 0 && l.step == 1 && next == 1 {
			maxScattered(bytes[pos:pos+l.size], part, any(src).([]uint8)[from:from+n])
			return
		}
		switch how {
		case CombineSum:
			for _, ix := range part {
				dst[pos+checked(ix, l.size)*l.step] += src[from]
				pos, from = pos+step, from+next
			}
		case CombineMax:
			for _, ix := range part {
				p := pos + checked(ix, l.size)*l.step
				dst[p] = max(dst[p], src[from])
				pos, from = pos+step, from+next
			}
		default:
			for _, ix := range part {
				p := pos + checked(ix, l.size)*l.step
				dst[p] = combine(how, dst[p], src[from])
				pos, from = pos+step, from+next
			}
		}
	})
}

// ScatterPlaces sets an element for each of the index to where it leads: the position in the indexed tensor in the
// upper 32 bits, and that of what belongs there, in a view of the index's dimensions, in the lower ones.
func ScatterPlaces(places, index []int64, view *strided.View, l *Lines) {
	step, next := along(&l.base), along(view)
	l.runs(view, 0, len(index), func(i, pos, from, n int) {
		for j, ix := range index[i : i+n] {
			places[i+j] = int64(pos+checked(ix, l.size)*l.step)<<32 | int64(from)
			pos, from = pos+step, from+next
		}
	})
}

// maxScattered is addEach for the greater of two bytes, with bools the sum. Bytes are compared as words,
// of which there are conditional moves: which one is greater is not to be foreseen.
func maxScattered(row []uint8, index []int64, src []uint8) {
	src = src[:len(index)]
	for j, ix := range index {
		p := checked(ix, len(row))
		row[p] = uint8(max(uint32(row[p]), uint32(src[j])))
	}
}

// scatterCounting is ScatterReduce where it matters how many elements each one combines.
func scatterCounting[T Number](dst []T, index []int64, src []T, view *strided.View, l *Lines, how Combine, includeSelf bool, count []int64, lo, hi int) {
	self := int64(0)
	if includeSelf {
		self = 1
	}
	for i := range count {
		count[i] = self
	}
	step, next := along(&l.base), along(view)
	l.units(view, lo, hi, func(i, pos, from, n int) {
		for _, ix := range index[i : i+n] {
			p := pos + checked(ix, l.size)*l.step
			if count[p]++; count[p] == 1 {
				dst[p] = src[from]
			} else {
				dst[p] = combine(how, dst[p], src[from])
			}
			pos += step
			from += next
		}
	})
	if how == CombineMean {
		divideCounts(dst, count)
	}
}

func combine[T Number](how Combine, a, b T) T {
	switch how {
	case CombineProd:
		return a * b
	case CombineMax:
		return max(a, b)
	case CombineMin:
		return min(a, b)
	}
	return a + b
}

// divideCounts divides each sum by the number of its elements.
func divideCounts[T Number](dst []T, count []int64) {
	for i, c := range count {
		DivideBy(dst[i:i+1], c)
	}
}

// DivideBy divides sums of c elements; integers round towards minus infinity.
func DivideBy[T Number](sums []T, c int64) {
	if c <= 1 {
		return
	}
	if half := 0.5; T(half) != 0 {
		for i := range sums {
			sums[i] /= T(c)
		}
		return
	}
	for i, v := range sums {
		s := int64(v)
		q := s / c
		if s%c < 0 {
			q--
		}
		sums[i] = T(q)
	}
}

// IndexSelect copies rows: x is [outer, size, inner] and dst is
// [outer, len(index), inner]; units lo..hi-1 are the outer·len(index) rows.
func IndexSelect[T strided.Bits](dst, x []T, index []int64, size, inner, lo, hi int) {
	n := len(index)
	for lo < hi {
		o, first := lo/n, lo%n
		part := index[first:min(n, first+hi-lo)]
		to, from := dst[lo*inner:(lo+len(part))*inner], x[o*size*inner:(o+1)*size*inner]
		if inner == 1 && n <= shortLine && first == 0 && hi-lo >= n {
			rows := (hi - lo) / n
			selectShort(dst[lo:][:rows*n], x[o*size:], part, size)
			lo += rows * n
			continue
		}
		if inner == 1 {
			if lo += len(part); lo < hi { // the next row is read in no order
				prefetch(x[(o+1)*size : (o+2)*size])
			}
			takeEach(to, from, part)
			continue
		}
		takeRows(to, from, part, size, inner)
		lo += len(part)
	}
}

// SelectElements copies elements of a matrix, which are numbered row by row, negative ones, with wraps, from
// the end.
func SelectElements[T strided.Bits](dst, x []T, index []int64, v *strided.View, wraps bool) {
	n, cols := v.Dims[0]*v.Dims[1], v.Dims[1]
	for j, ix := range index {
		if wraps {
			ix = fromEnd(ix, n)
		}
		p := checked(ix, n)
		row := p / cols
		dst[j] = x[v.Offset+row*v.Strides[0]+(p-row*cols)*v.Strides[1]]
	}
}

// IndexAdd adds rows: source is [outer, len(index), inner] and dst is
// [outer, size, inner]. Units lo..hi-1 are the outer·inner columns, each of
// which is added in index order.
func IndexAdd[T Number](dst []T, index []int64, source []T, size, inner, lo, hi int) {
	n := len(index)
	if inner == 1 && n > 0 && n <= shortLine {
		addShortLines(dst[lo*size:hi*size], index, source[lo*n:hi*n], size)
		return
	}
	if inner == 1 {
		for ; lo < hi; lo++ {
			addEach(dst[lo*size:(lo+1)*size], index, source[lo*n:(lo+1)*n])
		}
		return
	}
	for lo < hi {
		o, c := lo/inner, lo%inner
		k := min(inner-c, hi-lo)
		if n > 0 && k <= shortLine {
			addShortRows(dst[o*size*inner+c:], index, source[o*n*inner+c:], size, k, inner)
		} else if n > 0 {
			addIndexedRows(dst[o*size*inner+c:], index, source[o*n*inner+c:], size, k, inner, inner)
		}
		lo += k
	}
}
