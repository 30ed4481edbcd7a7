package fft

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// Layout is how lines lie in memory: element j of line u is element ((u/Inner)·Len+j)·Inner + u%Inner.
type Layout struct{ Inner, Len int }

func (l Layout) at(u int) int { return u/l.Inner*l.Len*l.Inner + u%l.Inner }

// group is the lines of a block.
type group struct{ first, n int }

// segments calls f for stretches of lines that lie side by side: lanes lo..hi-1, the first of which
// begins at element at.
func (g group) segments(l Layout, f func(lo, hi, at int)) {
	for lane := 0; lane < g.n; {
		u := g.first + lane
		k := min(l.Inner-u%l.Inner, g.n-lane)
		f(lane, lane+k, l.at(u))
		lane += k
	}
}

// read fills the first n rows with complex lines.
func (l *Lines[T]) read(a, src []T, from Layout, g group, n int) {
	row := rowFloats[T]()
	if from.Inner == 1 {
		transpose(l.k, a, row, src[2*g.first*from.Len:], 2*from.Len, g.n, n)
		return
	}
	g.segments(from, func(lo, hi, at int) {
		for j := range n {
			copy(a[j*row+2*lo:j*row+2*hi], src[2*(at+j*from.Inner):])
		}
	})
}

// write is the inverse of read.
func (l *Lines[T]) write(dst, a []T, to Layout, g group, n int) {
	row := rowFloats[T]()
	if to.Inner == 1 {
		transpose(l.k, dst[2*g.first*to.Len:], 2*to.Len, a, row, n, g.n)
		return
	}
	g.segments(to, func(lo, hi, at int) {
		for j := range n {
			copy(dst[2*(at+j*to.Inner):2*(at+j*to.Inner+hi-lo)], a[j*row+2*lo:])
		}
	})
}

// transpose sets element i of row j of dst to element j of row i of src, complex numbers both, for
// rows rows of cols of src; rows are so many floats apart.
func transpose[T Float](k *kernels[T], dst []T, dstRow int, src []T, srcRow, rows, cols int) {
	if rowFloats[T]() == rowBytes/4 { // two floats move like one of 64 bits
		gemm.Transpose(words(dst), dstRow/2, words(src), srcRow/2, rows, cols)
		return
	}
	across, down := cols&^1, rows&^1
	if k.square == nil || across == 0 || down == 0 {
		across, down = 0, 0
	} else {
		_, _ = dst[(across-1)*dstRow+2*down-1], src[(down-1)*srcRow+2*across-1]
		const size = 8
		outer, inner := [3]int{2 * srcRow * size, 4 * size, down / 2}, [3]int{4 * size, 2 * dstRow * size, across / 2}
		if down < across {
			outer, inner = inner, outer
		}
		k.square((*float64)(unsafe.Pointer(&dst[0])), (*float64)(unsafe.Pointer(&src[0])), srcRow*size, dstRow*size,
			outer[0], inner[0], outer[1], inner[1], outer[2], inner[2])
	}
	for i := range rows {
		from := across
		if i >= down {
			from = 0
		}
		for j := from; j < cols; j++ {
			p, q := j*dstRow+2*i, i*srcRow+2*j
			dst[p], dst[p+1] = src[q], src[q+1]
		}
	}
}

// words returns pairs of float32 as numbers of 64 bits, which are moved only.
func words[T Float](x []T) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}

// readReals fills the second halves of the first n rows with lines of reals.
func (l *Lines[T]) readReals(a, src []T, g group, n int) {
	row := rowFloats[T]()
	if l.in.Inner == 1 {
		gemm.Transpose(a[row/2:], row, src[g.first*l.in.Len:], l.in.Len, g.n, n)
		return
	}
	g.segments(l.in, func(lo, hi, at int) {
		for j := range n {
			copy(a[j*row+row/2+lo:j*row+row/2+hi], src[at+j*l.in.Inner:])
		}
	})
}

// writeReals writes the first halves of rows to lines of reals.
func (l *Lines[T]) writeReals(dst, a []T, g group) {
	row := rowFloats[T]()
	if l.out.Inner == 1 {
		gemm.Transpose(dst[g.first*l.n:], l.n, a, row, l.n, g.n)
		return
	}
	g.segments(l.out, func(lo, hi, at int) {
		for j := range l.n {
			copy(dst[at+j*l.out.Inner:at+j*l.out.Inner+hi-lo], a[j*row+lo:])
		}
	})
}

// gather makes the real parts of a row its first half.
func gather[T Float](x []T) {
	for i := range len(x) / 2 {
		x[i] = x[2*i]
	}
}
