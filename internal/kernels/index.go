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

// Lines is the geometry of gather and scatter. For each element of an index tensor, in row-major
// order, it gives the position in the indexed tensor where the line that the element indexes
// begins.
type Lines struct {
	base strided.View // the index's dimensions; the stride of the indexed one is 0
	size int          // of the indexed dimension
	step int          // the stride of the indexed dimension
}

// NewLines returns the geometry of an index of dimensions index along dim of a
// dense tensor of dimensions dims.
func NewLines(dims []int, dim int, index []int) Lines {
	l := Lines{base: strided.Dense(dims), size: 1, step: 1}
	if len(dims) > 0 {
		l.size, l.step = dims[dim], l.base.Strides[dim]
		l.base.Strides[dim] = 0
	}
	copy(l.base.Dims[:], index)
	return l
}

// walk calls f for each of the elements lo..hi-1 of the index, with the position of the element
// that it selects. It panics with an IndexError.
func walk(l *Lines, index []int64, lo, hi int, f func(i, pos int)) {
	if lo >= hi {
		return
	}
	var at [strided.MaxRank]int
	pos := l.base.Seek(lo, &at)
	for i := lo; i < hi; i++ {
		f(i, pos+checked(index[i], l.size)*l.step)
		pos = l.base.Next(&at, l.base.Rank, pos)
	}
}

// Gather sets dst[i] to the element of x that index[i] selects, for lo <= i < hi.
func Gather[T strided.Bits](dst, x []T, index []int64, l *Lines, lo, hi int) {
	walk(l, index, lo, hi, func(i, pos int) { dst[i] = x[pos] })
}

// Scatter sets the element of dst that index[i] selects to element i of src, in the order of i.
// view is the layout of src, with the dimensions of the index.
func Scatter[T strided.Bits](dst []T, index []int64, src []T, view *strided.View, l *Lines) {
	n := l.base.Len()
	if n == 0 {
		return
	}
	var at [strided.MaxRank]int
	from := view.Seek(0, &at)
	walk(l, index, 0, n, func(_, pos int) {
		dst[pos] = src[from]
		from = view.Next(&at, view.Rank, from)
	})
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

// ScatterReduce combines each element of src with the element of dst that index selects. Unless
// includeSelf is set, what dst held there before is ignored. count is scratch memory as long as
// dst; it may be nil if includeSelf is set and how is not CombineMean.
func ScatterReduce[T Number](dst []T, index []int64, src []T, view *strided.View, l *Lines, how Combine, includeSelf bool, count []int64) {
	n := l.base.Len()
	if n == 0 {
		return
	}
	self := int64(0)
	if includeSelf {
		self = 1
	}
	counting := how == CombineMean || !includeSelf
	if counting {
		for i := range count {
			count[i] = self
		}
	}
	var at [strided.MaxRank]int
	from := view.Seek(0, &at)
	walk(l, index, 0, n, func(_, pos int) {
		v := src[from]
		from = view.Next(&at, view.Rank, from)
		if counting {
			count[pos]++
			if count[pos] == 1 {
				dst[pos] = v
				return
			}
		}
		dst[pos] = combine(how, dst[pos], v)
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
		if b > a || b != b {
			return b
		}
		return a
	case CombineMin:
		if b < a || b != b {
			return b
		}
		return a
	}
	return a + b
}

// divideCounts divides each sum by the number of its elements; integers round towards minus
// infinity.
func divideCounts[T Number](dst []T, count []int64) {
	half := 0.5
	floats := T(half) != 0
	for i, c := range count {
		switch {
		case c <= 1:
		case floats:
			dst[i] /= T(c)
		default:
			s := int64(dst[i])
			q := s / c
			if s%c < 0 {
				q--
			}
			dst[i] = T(q)
		}
	}
}

// IndexSelect copies rows: x is [outer, size, inner] and dst is
// [outer, len(index), inner]; units lo..hi-1 are the outer·len(index) rows.
func IndexSelect[T strided.Bits](dst, x []T, index []int64, size, inner, lo, hi int) {
	n := len(index)
	for r := lo; r < hi; r++ {
		p := (r/n*size + checked(index[r%n], size)) * inner
		copy(dst[r*inner:(r+1)*inner], x[p:p+inner])
	}
}

// IndexAdd adds rows: source is [outer, len(index), inner] and dst is
// [outer, size, inner]. Units lo..hi-1 are the outer·inner columns, each of
// which is added in index order.
func IndexAdd[T Number](dst []T, index []int64, source []T, size, inner, lo, hi int) {
	n := len(index)
	for lo < hi {
		o, c := lo/inner, lo%inner
		k := min(inner-c, hi-lo)
		for j, ix := range index {
			p := (o*size+checked(ix, size))*inner + c
			q := (o*n+j)*inner + c
			row := dst[p : p+k]
			Add(row, row, source[q:q+k])
		}
		lo += k
	}
}
