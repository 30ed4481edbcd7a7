// Package strided describes where the elements of a tensor lie in memory, and copies them.
//
// A View is the layout: what broadcasting, transposing, slicing and reshaping make of the
// dense order, without moving anything. Read and Write copy elements between a View's memory
// and dense memory.
package strided

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

// Read fills dst with the elements start, start+1, … of the View of src.
func Read[T Bits](dst, src []T, v *View, start int) {
	if len(dst) == 0 {
		return
	}
	if v.Rank == 0 {
		fill(dst, src[v.Offset])
		return
	}
	if v.Rank >= 2 && readTransposed(dst, src, v, start) {
		return
	}
	last := v.Rank - 1
	n, step := v.Dims[last], v.Strides[last]
	var at [MaxRank]int
	pos := v.Seek(start, &at)
	for i := at[last]; ; i = 0 {
		k := min(n-i, len(dst))
		readRun(dst[:k], src, pos, step)
		dst = dst[k:]
		if len(dst) == 0 {
			return
		}
		pos -= i * step
		pos = v.Next(&at, last, pos)
	}
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
	for d := last - 1; d >= 0; d-- {
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

func readRun[T Bits](dst, src []T, pos, step int) {
	switch step {
	case 1:
		copy(dst, src[pos:pos+len(dst)])
	case 0:
		fill(dst, src[pos])
	default:
		for i := range dst {
			dst[i] = src[pos]
			pos += step
		}
	}
}

// tile is the edge of the squares in which readTransposed works: two of them
// stay in the first-level cache for all element sizes.
const tile = 32

// readTransposed is Read for whole rows of a View in which the elements of a column are adjacent
// and those of a row are not. It copies square by square, so that it reads each cache line once. It
// returns false, and does nothing, for other Views and ranges.
func readTransposed[T Bits](dst, src []T, v *View, start int) bool {
	last := v.Rank - 1
	cols, colStep := v.Dims[last], v.Strides[last]
	rows := v.Dims[last-1]
	if v.Strides[last-1] != 1 || colStep == 1 || colStep == 0 || rows < 8 || cols < 8 ||
		start%cols != 0 || len(dst)%cols != 0 || len(dst) < 8*cols {
		return false
	}
	var at [MaxRank]int
	pos := v.Seek(start, &at)
	for r := at[last-1]; len(dst) > 0; r = 0 {
		n := min(rows-r, len(dst)/cols)
		for c0 := 0; c0 < cols; c0 += tile {
			c1 := min(c0+tile, cols)
			for k := range n {
				row := dst[k*cols+c0 : k*cols+c1]
				p := pos + k + c0*colStep
				for i := range row {
					row[i] = src[p]
					p += colStep
				}
			}
		}
		dst = dst[n*cols:]
		pos = v.Next(&at, last-1, pos-r)
	}
	return true
}

// Write copies elements lo..hi-1 of src, which is dense, to those of the View of dst. No two
// elements of the View may be the same memory.
func Write[T Bits](dst, src []T, v *View, lo, hi int) {
	if lo >= hi {
		return
	}
	if v.Rank == 0 {
		dst[v.Offset] = src[0]
		return
	}
	last := v.Rank - 1
	n, step := v.Dims[last], v.Strides[last]
	var at [MaxRank]int
	pos := v.Seek(lo, &at)
	src = src[lo:hi]
	for i := at[last]; ; i = 0 {
		k := min(n-i, len(src))
		if step == 1 {
			copy(dst[pos:pos+k], src[:k])
		} else {
			p := pos
			for _, x := range src[:k] {
				dst[p] = x
				p += step
			}
		}
		src = src[k:]
		if len(src) == 0 {
			return
		}
		pos = v.Next(&at, last, pos-i*step)
	}
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
