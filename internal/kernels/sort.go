package kernels

import (
	"math"
	"math/bits"
	"unsafe"
)

// Sort sorts lines lo..hi-1 of x, seen as [outer, n, inner] with outer·inner
// lines, along the middle: values get the sorted elements and indices where
// they were. The sort is stable and a NaN counts as greater than all else. The
// scratch slices have 2n elements each.
func Sort[T Number](values []T, indices []int64, x []T, n, inner int, descending bool, keys []uint64, order []int32, lo, hi int) {
	if n == 0 {
		return
	}
	var zero T
	narrow := unsafe.Sizeof(zero) <= 4
	bytes := isByte[T]() && n >= byteLeast
	var room ranks
	for l := lo; l < hi; l++ {
		base := l/inner*n*inner + l%inner
		if bytes {
			sortBytes(values[base:], indices[base:], x[base:], n, inner, descending)
			continue
		}
		if narrow {
			p := base
			for _, packed := range sortPacked(x[base:], n, inner, descending, keys, &room) {
				i := int(uint32(packed))
				values[p], indices[p] = x[base+i*inner], int64(i)
				p += inner
			}
			continue
		}
		p := base
		for i := range n {
			keys[i], order[i] = sortKey(x[p], descending), int32(i)
			p += inner
		}
		p = base
		for _, i := range sortKeys(keys[:2*n], order[:2*n], n, &room) {
			values[p], indices[p] = x[base+int(i)*inner], int64(i)
			p += inner
		}
	}
}

// sortPacked sorts a line of elements of at most 32 bits, inner apart, as numbers
// that have the key in the high half and the place in the low half, so that no two
// are equal. keys has 2n elements; the result is one half of it.
func sortPacked[T Number](x []T, n, inner int, descending bool, keys []uint64, room *ranks) []uint64 {
	k := keys[:n]
	p := 0
	for i := range k {
		k[i] = uint64(sortKey32(x[p], descending))<<32 | uint64(uint32(i))
		p += inner
	}
	switch {
	case n < bytesLeast:
		spare := keys[n : 2*n]
		for i, at := range room.of(k) {
			spare[at] = k[i]
		}
		return spare
	case n < radixLeast:
		return radixByBytes(k, keys[n:2*n])
	}
	return radixPacked(k, keys[n:2*n])
}

// ranks is memory for the places of keys in their order.
type ranks [bytesLeast]uint64

// of returns where each of fewer keys than bytesLeast goes: as many of the others come before as are less, or equal and
// before it already. That compares all of them, but has no branches, which could not be foreseen.
func (r *ranks) of(k []uint64) []uint64 {
	for i, x := range k {
		place, before := uint64(i), r[:i]
		for j, y := range k[:len(before)] {
			_, less := bits.Sub64(x, y, 0)
			place -= less
			before[j] += less
		}
		r[i] = place
	}
	return r[:len(k)]
}

// sortKey32 is sortKey of elements of at most 32 bits, in 32 bits.
func sortKey32[T Number](x T, descending bool) uint32 {
	half := 0.5
	k := uint32(math.MaxUint32)
	switch {
	case T(half) == 0:
		k = uint32(int32(x)) ^ 1<<31
	case x == x:
		k = math.Float32bits(float32(x) + 0) // -0 + 0 is +0
		k ^= uint32(int32(k)>>31) | 1<<31
	}
	if descending {
		k = ^k
	}
	return k
}

// sortKey maps numbers to integers of the same order: 0 and -0 are one, and so
// are all NaNs, above the rest. Of a descending order it is the complement.
func sortKey[T Number](x T, descending bool) uint64 {
	half := 0.5
	k := uint64(math.MaxUint64)
	switch {
	case T(half) == 0:
		k = uint64(int64(x)) ^ 1<<63
	case x == x:
		k = math.Float64bits(float64(x) + 0) // -0 + 0 is +0
		k ^= uint64(int64(k)>>63) | 1<<63
	}
	if descending {
		k = ^k
	}
	return k
}

// sortKeys sorts the first n keys, and order with them, stably; the second
// halves are scratch. It returns the sorted order, in either half.
func sortKeys(keys []uint64, order []int32, n int, room *ranks) []int32 {
	if n < bytesLeast {
		for i, at := range room.of(keys[:n]) {
			order[n+int(at)] = order[i]
		}
		return order[n : 2*n]
	}
	if n >= bucketLeast && n <= bucketMost {
		if sorted := bucketKeys(keys, order, n); sorted != nil {
			return sorted
		}
	}
	if n >= radixLeast {
		return radixKeys(keys, order, n)
	}
	const run = 16
	for lo := 0; lo < n; lo += run {
		insertionSort(keys[lo:min(lo+run, n)], order[lo:min(lo+run, n)])
	}
	k, k2 := keys[:n], keys[n:2*n]
	o, o2 := order[:n], order[n:2*n]
	for width := run; width < n; width *= 2 {
		for lo := 0; lo < n; lo += 2 * width {
			mid, hi := min(lo+width, n), min(lo+2*width, n)
			merge(k2[lo:hi], o2[lo:hi], k[lo:hi], o[lo:hi], mid-lo)
		}
		k, k2, o, o2 = k2, k, o2, o
	}
	return o
}

func insertionSort(k []uint64, o []int32) {
	for i := 1; i < len(k); i++ {
		key, at := k[i], o[i]
		j := i
		for ; j > 0 && k[j-1] > key; j-- {
			k[j], o[j] = k[j-1], o[j-1]
		}
		k[j], o[j] = key, at
	}
}

// merge merges the sorted k[:mid] and k[mid:]; of equal keys the left one first.
func merge(dk []uint64, do []int32, k []uint64, o []int32, mid int) {
	if mid >= len(k) || k[mid-1] <= k[mid] {
		copy(dk, k)
		copy(do, o)
		return
	}
	i, j := 0, mid
	for d := range dk {
		if i < mid && (j >= len(k) || k[i] <= k[j]) {
			dk[d], do[d] = k[i], o[i]
			i++
		} else {
			dk[d], do[d] = k[j], o[j]
			j++
		}
	}
}
