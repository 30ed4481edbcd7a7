package kernels

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/strided"
)

// Lines of a few elements are gone through without a call for each, which would take longer than they do.

// shortLine is how many elements such a line has at most.
const shortLine = 16

// shortIndex is how many elements a line of an index has at most that is gone through like that.
const shortIndex = 64

// rowStep returns how far apart the rows of a View are, if all of them are equally far apart.
func rowStep(v *strided.View) (step int, ok bool) {
	last := v.Rank - 1
	if last <= 0 {
		return 0, last == 0
	}
	for d := last - 2; d >= 0; d-- {
		if v.Dims[d] != 1 && v.Strides[d] != v.Strides[d+1]*v.Dims[d+1] {
			return 0, false
		}
	}
	return v.Strides[last-1], true
}

// short reports whether the index selects in short lines along the last dimension, and how far apart in the
// indexed tensor these are.
func (l *Lines) short() (step int, ok bool) {
	if l.inner != 1 || l.step != 1 || l.n > shortIndex || l.outer < 2 || l.base.Rank < 2 || along(&l.base) != 0 {
		return 0, false
	}
	return rowStep(&l.base)
}

// gatherShort is Gather in short lines.
func gatherShort[T strided.Bits](dst, x []T, index []int64, l *Lines, step, lo, hi int) {
	var one T
	size := unsafe.Sizeof(one)
	dst, index = dst[:hi], index[:hi]
	if l.n == 1 {
		at, to := l.base.Offset+lo*step, dst[lo:]
		for i, ix := range index[lo:][:len(to)] {
			to[i] = x[at+checked(ix, l.size)]
			at += step
		}
		return
	}
	for row, skip := lo/l.n, lo%l.n; lo < hi; row, skip = row+1, 0 {
		line := unsafe.Pointer(unsafe.SliceData(x[l.base.Offset+row*step:][:l.size]))
		for end := min(lo+l.n-skip, hi); lo < end; lo++ {
			at := uintptr(checked(index[lo], l.size))
			dst[lo] = *(*T)(unsafe.Add(line, at*size))
		}
	}
}

// scatterShort is Scatter in short lines, of lines of src that are apart elements from each other.
func scatterShort[T strided.Bits](dst []T, index []int64, src []T, offset, apart int, l *Lines, step, lo, hi int) {
	if l.n == 1 {
		at, from := l.base.Offset+lo*step, offset+lo*apart
		for _, ix := range index[lo:hi] {
			dst[at+checked(ix, l.size)] = src[from]
			at, from = at+step, from+apart
		}
		return
	}
	size := unsafe.Sizeof(*new(T))
	for row := lo; row < hi; row++ {
		line := unsafe.Pointer(unsafe.SliceData(dst[l.base.Offset+row*step:][:l.size]))
		from := src[offset+row*apart:][:l.n]
		for j, ix := range index[row*l.n:][:len(from)] {
			*(*T)(unsafe.Add(line, uintptr(checked(ix, l.size))*size)) = from[j]
		}
	}
}

// addShort is scatterShort that adds.
func addShort[T Number](dst []T, index []int64, src []T, offset, apart int, l *Lines, step, lo, hi int) {
	if l.n == 1 {
		at, from := l.base.Offset+lo*step, offset+lo*apart
		for _, ix := range index[lo:hi] {
			dst[at+checked(ix, l.size)] += src[from]
			at, from = at+step, from+apart
		}
		return
	}
	size := unsafe.Sizeof(*new(T))
	for row := lo; row < hi; row++ {
		line := unsafe.Pointer(unsafe.SliceData(dst[l.base.Offset+row*step:][:l.size]))
		from := src[offset+row*apart:][:l.n]
		for j, ix := range index[row*l.n:][:len(from)] {
			*(*T)(unsafe.Add(line, uintptr(checked(ix, l.size))*size)) += from[j]
		}
	}
}

// selectShort sets lines of dst to the elements of lines of x, of size each, that an index selects: column
// by column, in parts that stay in the first-level cache.
func selectShort[T strided.Bits](dst, x []T, index []int64, size int) {
	n := len(index)
	const most = 256
	for rows := len(dst) / n; rows > 0; {
		k := min(rows, most)
		for j, ix := range index {
			from, to := x[checked(ix, size):(k-1)*size+checked(ix, size)+1], dst[:k*n]
			at := 0
			for i := j; i < len(to); i += n {
				to[i] = from[at]
				at += size
			}
		}
		rows -= k
		dst, x = dst[k*n:], x[k*size:]
	}
}

// addShortRows adds pieces of n elements of source, one for each of an index, to those of the rows that it
// selects, in the order of the index. Rows of both are stride elements apart.
func addShortRows[T Number](dst []T, index []int64, source []T, size, n, stride int) {
	for j, ix := range index {
		to, from := dst[checked(ix, size)*stride:][:n], source[j*stride:][:n]
		for i, v := range from {
			to[i] += v
		}
	}
}

// addShortLines adds the elements of lines of source, one for each of an index, to those of lines of dst, of
// size each, that the index selects, in its order.
func addShortLines[T Number](dst []T, index []int64, source []T, size int) {
	for _, ix := range index {
		checked(ix, size)
	}
	width := unsafe.Sizeof(*new(T))
	for n := len(index); len(source) > 0; dst, source = dst[size:], source[n:] {
		line := unsafe.Pointer(unsafe.SliceData(dst[:size]))
		for j, v := range source[:n] {
			*(*T)(unsafe.Add(line, uintptr(index[j])*width)) += v
		}
	}
}
