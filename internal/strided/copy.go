package strided

import "unsafe"

// MergeBoth returns Views of the same elements as two Views of the same dimensions, in the same order, that
// have the same and as few dimensions as possible.
func MergeBoth(a, b View) (x, y View) {
	x, y = View{Offset: a.Offset}, View{Offset: b.Offset}
	for i := range a.Rank {
		n := a.Dims[i]
		if n == 1 {
			continue
		}
		if k := x.Rank - 1; k >= 0 && x.Strides[k] == a.Strides[i]*n && y.Strides[k] == b.Strides[i]*n {
			x.Dims[k], y.Dims[k] = x.Dims[k]*n, y.Dims[k]*n
			x.Strides[k], y.Strides[k] = a.Strides[i], b.Strides[i]
			continue
		}
		x.Dims[x.Rank], x.Strides[x.Rank] = n, a.Strides[i]
		y.Dims[y.Rank], y.Strides[y.Rank] = n, b.Strides[i]
		x.Rank, y.Rank = x.Rank+1, y.Rank+1
	}
	return x, y
}

// Short reports whether CopyShort is for two Views that are merged together, of elements of so many bytes:
// whether their last dimension is of few.
func Short(to, from *View, size int) bool {
	if to.Rank < 1 || to.Len() == 0 {
		return false
	}
	last := to.Rank - 1
	n := to.Dims[last]
	if from.Strides[last] == 0 {
		return false // an element that is repeated is written by vectors
	}
	if to.Strides[last] == 1 && from.Strides[last] == 1 {
		return to.Rank > 1 && n*size <= fewBytes
	}
	return n <= fewColumns || to.Rank == 1
}

// CopyShort copies elements lo..hi-1 of the first dimension of Views that are Short. No two elements of the
// View of dst may be the same memory.
func CopyShort[T Bits](dst, src []T, to, from *View, lo, hi int) {
	t, f := *to, *from
	t.Offset, f.Offset = t.Offset+lo*t.Strides[0], f.Offset+lo*f.Strides[0]
	t.Dims[0], f.Dims[0] = hi-lo, hi-lo
	if hi <= lo {
		return
	}
	last := t.Rank - 1
	if last == 0 {
		copyColumn(dst, src, t.Offset, f.Offset, t.Strides[0], f.Strides[0], t.Dims[0])
		return
	}
	// The longer one of the two dimensions before the last is gone through inside.
	inner, other := last-1, -1
	if last >= 2 && t.Dims[last-2] > t.Dims[last-1] {
		inner, other = last-2, last-1
	} else if last >= 2 {
		other = last - 2
	}
	together := t.Dims[inner]
	if n := t.Dims[last] * int(unsafe.Sizeof(*new(T))); other > inner {
		together = max(1, blockBytes/(n*t.Dims[other]))
	}
	var at [MaxRank]int
	outer := max(0, last-2)
	x, y := t.Offset, f.Offset
	for {
		for first := 0; first < t.Dims[inner]; first += together {
			runs := min(together, t.Dims[inner]-first)
			p, q := x+first*t.Strides[inner], y+first*f.Strides[inner]
			copyRuns(dst, src, &t, &f, p, q, inner, runs)
			for j := 1; other >= 0 && j < t.Dims[other]; j++ {
				copyRuns(dst, src, &t, &f, p+j*t.Strides[other], q+j*f.Strides[other], inner, runs)
			}
		}
		before := at
		x, y = t.Next(&at, outer, x), f.Next(&before, outer, y)
		if at == [MaxRank]int{} {
			return
		}
	}
}

// copyRuns copies runs of the last dimension, from positions to and from on, that follow each other along
// dimension dim.
func copyRuns[T Bits](dst, src []T, t, f *View, to, from, dim, runs int) {
	last := t.Rank - 1
	if t.Strides[last] == 1 && f.Strides[last] == 1 {
		moveRuns(dst, src, to, from, t.Strides[dim], f.Strides[dim], t.Dims[last], runs)
		return
	}
	for j := range t.Dims[last] {
		copyColumn(dst, src, to+j*t.Strides[last], from+j*f.Strides[last], t.Strides[dim], f.Strides[dim], runs)
	}
}

// copyColumn copies elements that are up apart in dst, from element to on, and down apart in src.
func copyColumn[T Bits](dst, src []T, to, from, up, down, count int) {
	if count <= 0 {
		return
	}
	_, _, _, _ = dst[to], dst[to+(count-1)*up], src[from], src[from+(count-1)*down]
	size := int(unsafe.Sizeof(*new(T)))
	moveWords[T](unsafe.Pointer(&dst[to]), unsafe.Pointer(&src[from]), up*size, down*size, count)
}

// moveWords copies words that are up bytes apart, from there on, and down bytes apart from here on.
func moveWords[T Bits](there, here unsafe.Pointer, up, down, count int) {
	up3, down3, to, from := 3*up, 3*down, 0, 0
	for ; count >= 4; count -= 4 {
		t, f := unsafe.Add(there, to), unsafe.Add(here, from)
		*(*T)(t) = *(*T)(f)
		*(*T)(unsafe.Add(t, up)) = *(*T)(unsafe.Add(f, down))
		*(*T)(unsafe.Add(t, 2*up)) = *(*T)(unsafe.Add(f, 2*down))
		*(*T)(unsafe.Add(t, up3)) = *(*T)(unsafe.Add(f, down3))
		to, from = to+4*up, from+4*down
	}
	for ; count > 0; count-- {
		*(*T)(unsafe.Add(there, to)) = *(*T)(unsafe.Add(here, from))
		to, from = to+up, from+down
	}
}
