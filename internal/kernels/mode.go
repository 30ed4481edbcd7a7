package kernels

import (
	"math"
	"unsafe"
)

// Mode sets values and indices, of lines lo..hi-1 of x as Sort has them, to the most frequent element, the least of
// several, and to where it is last. No NaN is equal to another. The scratch slices have 2n elements each.
func Mode[T Number](values []T, indices []int64, x []T, n, inner int, keys []uint64, order []int32, lo, hi int) {
	narrow := unsafe.Sizeof(*new(T)) <= 4
	var room ranks
	for l := lo; l < hi; l++ {
		base := l/inner*n*inner + l%inner
		var at int
		if narrow {
			at = modeOfPacked[T](sortPacked(x[base:], n, inner, false, keys, &room))
		} else {
			for i := range n {
				keys[i], order[i] = sortKey(x[base+i*inner], false), int32(i)
			}
			at = modeOf(x[base:], sortKeys(keys[:2*n], order[:2*n], n, &room), inner)
		}
		values[l], indices[l] = x[base+at*inner], int64(at)
	}
}

// modeOfPacked returns the place of the last of the first of the longest runs in a sorted line of packed elements.
func modeOfPacked[T Number](sorted []uint64) int {
	half, nan := 0.5, uint64(math.MaxUint64) // which no key of 32 bits is
	if T(half) != 0 {
		nan = math.MaxUint32
	}
	best, longest, length, before := 0, 0, 0, nan
	for i, packed := range sorted {
		key := packed >> 32
		if key != before || key == nan {
			length = 0
		}
		before = key
		if length++; length > longest {
			best, longest = i, length
		}
	}
	return int(uint32(sorted[best]))
}

// modeOf is modeOfPacked of elements inner apart, of whose places the order is given.
func modeOf[T Number](x []T, order []int32, inner int) int {
	best, longest, length := 0, 0, 0
	for i, place := range order {
		if i == 0 || x[int(place)*inner] != x[int(order[i-1])*inner] {
			length = 0
		}
		if length++; length > longest {
			best, longest = i, length
		}
	}
	return int(order[best])
}
