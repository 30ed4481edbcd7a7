// Package strided describes where the elements of a tensor lie in memory, and copies them.
//
// A View is the layout: what broadcasting, transposing, slicing and reshaping make of the
// dense order, without moving anything. Read and Write copy elements between a View's memory
// and dense memory.
package strided

import "slices"

// MaxRank is the largest number of dimensions of a View.
const MaxRank = 8

// Bits128 is the bits of an element of 16 bytes.
type Bits128 struct{ Lo, Hi uint64 }

// Bits is an unsigned type for each size of elements. Code that only moves elements is
// instantiated by their size and takes their bits.
type Bits interface {
	uint8 | uint16 | uint32 | uint64 | Bits128
}

// View is a strided way of reading a dense slice: element (i0, i1, …) is at
// Offset + i0·Strides[0] + i1·Strides[1] + …. Strides may be 0 (broadcasting) or
// negative. A View numbers its elements in row-major order of its dimensions.
type View struct {
	Offset  int
	Rank    int
	Dims    [MaxRank]int
	Strides [MaxRank]int
}

// Dense returns the View of a dense row-major slice.
func Dense(dims []int) View {
	v := View{Rank: len(dims)}
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		v.Dims[i], v.Strides[i] = dims[i], n
		n *= dims[i]
	}
	return v
}

// Len returns the number of elements.
func (v *View) Len() int {
	n := 1
	for _, d := range v.Dims[:v.Rank] {
		n *= d
	}
	return n
}

// Merge returns a View of the same elements in the same order with as few dimensions as possible:
// it drops those of size 1 and joins neighbours that step alike.
func (v View) Merge() View {
	out := View{Offset: v.Offset}
	for i := range v.Rank {
		d, s := v.Dims[i], v.Strides[i]
		if d == 1 {
			continue
		}
		if k := out.Rank - 1; k >= 0 && out.Strides[k] == s*d {
			out.Dims[k] *= d
			out.Strides[k] = s
			continue
		}
		out.Dims[out.Rank], out.Strides[out.Rank] = d, s
		out.Rank++
	}
	return out
}

// Expand returns the View broadcast to dims: dimensions of size 1, and those added in front, get
// the stride 0.
func (v View) Expand(dims []int) View {
	if slices.Equal(dims, v.Dims[:v.Rank]) {
		return v
	}
	out := Dense(dims)
	out.Offset = v.Offset
	off := len(dims) - v.Rank
	for i := range dims {
		out.Strides[i] = 0
		if i >= off && v.Dims[i-off] != 1 {
			out.Strides[i] = v.Strides[i-off]
		}
	}
	return out
}

// Reshape returns the View of the same elements with other dimensions, whose product must be the
// same. It returns false if no strides express it.
func (v View) Reshape(dims []int) (out View, ok bool) {
	out = Dense(dims)
	if out.Len() == 0 {
		return out, true
	}
	old := v.Merge()
	out.Offset = old.Offset
	d := out.Rank
	// Each merged dimension is a product of new ones.
	for i := old.Rank - 1; i >= 0; i-- {
		n, stride := old.Dims[i], old.Strides[i]
		for n > 1 {
			d--
			if d < 0 || n%out.Dims[d] != 0 {
				return out, false
			}
			out.Strides[d] = stride
			stride *= out.Dims[d]
			n /= out.Dims[d]
		}
	}
	return out, true // the dimensions left over are of size 1
}

// Halves returns the View of elements of half the size: a last dimension runs over
// the two of each.
func (v View) Halves() View {
	v.Offset *= 2
	for i := range v.Rank {
		v.Strides[i] *= 2
	}
	v.Dims[v.Rank], v.Strides[v.Rank] = 2, 1
	v.Rank++
	return v
}

// Doubled returns the View of elements of twice the size, each of which is the two of
// the last dimension; ok is false if these are not neighbours, or no whole element.
func (v View) Doubled() (out View, ok bool) {
	v.Rank--
	ok = v.Strides[v.Rank] == 1 && v.Offset%2 == 0
	v.Offset /= 2
	for i := range v.Rank {
		ok = ok && (v.Strides[i]%2 == 0 || v.Dims[i] == 1)
		v.Strides[i] /= 2
	}
	return v, ok || v.Len() == 0
}

// Permute returns the View whose dimension i is dimension order[i] of v.
func (v View) Permute(order []int) View {
	out := v
	for i, d := range order {
		out.Dims[i], out.Strides[i] = v.Dims[d], v.Strides[d]
	}
	return out
}

// Slice returns the View of n elements of a dimension, from start on, step apart.
func (v View) Slice(dim, start, n, step int) View {
	v.Offset += start * v.Strides[dim]
	v.Strides[dim] *= step
	v.Dims[dim] = n
	return v
}

// Unfold returns the View of windows of size elements of a dimension, which begin step apart: the dimension
// counts them, and a new last one runs inside them.
func (v View) Unfold(dim, windows, size, step int) View {
	v.Dims[v.Rank], v.Strides[v.Rank] = size, v.Strides[dim]
	v.Rank++
	v.Dims[dim] = windows
	v.Strides[dim] *= step
	return v
}

// SliceMerged is Slice of the View that has dimensions dim and dim+1 merged to one, of two that no stride
// goes through. It returns false if no stride goes through what is sliced either.
func (v View) SliceMerged(dim, start, n, step int) (out View, ok bool) {
	cols := v.Dims[dim+1]
	if n < 1 || cols < 1 {
		return v, false
	}
	row, col := start/cols, start%cols
	down, right := step/cols, step%cols
	if right < 0 {
		down, right = down-1, right+cols
	}
	if last := col + (n-1)*right; last >= cols {
		// The next row, and to the left.
		down, right = down+1, right-cols
		if col+(n-1)*right < 0 {
			return v, false
		}
	}
	out = v
	out.Rank--
	copy(out.Dims[dim+1:], v.Dims[dim+2:])
	copy(out.Strides[dim+1:], v.Strides[dim+2:])
	out.Offset += row*v.Strides[dim] + col*v.Strides[dim+1]
	out.Dims[dim], out.Strides[dim] = n, down*v.Strides[dim]+right*v.Strides[dim+1]
	return out, true
}

// Flip returns the View with the marked dimensions reversed.
func (v View) Flip(mask [MaxRank]bool) View {
	for d := range v.Rank {
		if mask[d] && v.Dims[d] > 0 {
			v.Offset += (v.Dims[d] - 1) * v.Strides[d]
			v.Strides[d] = -v.Strides[d]
		}
	}
	return v
}

// IsDense reports whether the View's elements are those of a dense slice from its start, in order.
func (v View) IsDense() bool {
	m := v.Merge()
	return m.Offset == 0 && (m.Len() == 0 || m.Rank == 0 || (m.Rank == 1 && m.Strides[0] == 1))
}

// Same reports whether two Views have the same dimensions and the same elements in the same order.
func (v *View) Same(w *View) bool {
	if v.Rank != w.Rank || v.Offset != w.Offset {
		return false
	}
	for i, n := range v.Dims[:v.Rank] {
		if n != w.Dims[i] || n != 1 && v.Strides[i] != w.Strides[i] {
			return false
		}
	}
	return true
}

// Seek sets at to the coordinates of an element, counted in row-major order, and returns its
// position in memory.
func (v *View) Seek(element int, at *[MaxRank]int) int {
	pos := v.Offset
	for d := v.Rank - 1; d >= 0; d-- {
		at[d] = element % v.Dims[d]
		element /= v.Dims[d]
		pos += at[d] * v.Strides[d]
	}
	return pos
}

// Next advances the coordinates of the dimensions before last by one element, and returns the
// position that pos becomes. After the last element they are those of the first.
func (v *View) Next(at *[MaxRank]int, last, pos int) int {
	return v.nextWithin(at, 0, last, pos)
}

// nextWithin is Next of the dimensions from first on.
func (v *View) nextWithin(at *[MaxRank]int, first, last, pos int) int {
	for d := last - 1; d >= first; d-- {
		at[d]++
		pos += v.Strides[d]
		if at[d] < v.Dims[d] {
			return pos
		}
		pos -= v.Dims[d] * v.Strides[d]
		at[d] = 0
	}
	return pos
}

// SquareRows is how many rows a Read should have of a View that is Transposed, so that it reads each
// cache line once.
const SquareRows = 64

// Transposed reports whether the elements of the View's columns are adjacent, in either order, and those
// of its rows are not, and there are enough of both for it to be read in squares.
func (v *View) Transposed() bool {
	if v.Rank < 2 {
		return false
	}
	last := v.Rank - 1
	step := v.Strides[last]
	down := v.Strides[last-1]
	return (down == 1 || down == -1) && step != 1 && step != -1 && step != 0 && v.Dims[last-1] >= 8 && v.Dims[last] >= 8
}

// Squares calls f for squares of whole rows of a Transposed View, n elements from start on: rows rows
// from element at of what is read, which is dense, whose cols elements lie step apart from position pos
// on, and those of their columns next to each other, one after the other or one before the other. It returns false, and does nothing, for other Views
// and ranges.
func (v *View) Squares(start, n int, f func(at, pos, rows, cols, step int)) bool {
	if !v.Transposed() {
		return false
	}
	last := v.Rank - 1
	cols, step, rows, down := v.Dims[last], v.Strides[last], v.Dims[last-1], v.Strides[last-1]
	if start%cols != 0 || n%cols != 0 || n < 8*cols {
		return false
	}
	var coordinates [MaxRank]int
	pos := v.Seek(start, &coordinates)
	for r, at := coordinates[last-1], 0; at < n; r = 0 {
		band := min(rows-r, (n-at)/cols)
		for k := 0; k < band; k += SquareRows {
			for c := 0; c < cols; c += SquareRows {
				f(at+k*cols+c, pos+k*down+c*step, min(SquareRows, band-k), min(SquareRows, cols-c), step)
			}
		}
		at += band * cols
		pos = v.Next(&coordinates, last-1, pos-r*down)
	}
	return true
}

// fillMost bounds what fill copies at a time, so that it stays in the first-level cache.
const fillMost = 1024

// fill copies what it has filled, since that moves whole vectors.
func fill[T any](dst []T, x T) {
	n := min(32, len(dst))
	for i := range dst[:n] {
		dst[i] = x
	}
	for n > 0 && n < len(dst) {
		n += copy(dst[n:], dst[:min(n, fillMost)])
	}
}
