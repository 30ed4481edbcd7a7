package kernels

import "math"

// Sort sorts lines lo..hi-1 of x, seen as [outer, n, inner] with outer·inner
// lines, along the middle: values get the sorted elements and indices where
// they were. The sort is stable and a NaN counts as greater than all else. The
// scratch slices have 2n elements each.
func Sort[T Number](values []T, indices []int64, x []T, n, inner int, descending bool, keys []uint64, order []int32, lo, hi int) {
	for l := lo; l < hi; l++ {
		base := l/inner*n*inner + l%inner
		p := base
		for i := range n {
			k := sortKey(x[p])
			if descending {
				k = ^k
			}
			keys[i], order[i] = k, int32(i)
			p += inner
		}
		sorted := sortKeys(keys[:2*n], order[:2*n], n)
		p = base
		for _, i := range sorted {
			values[p], indices[p] = x[base+int(i)*inner], int64(i)
			p += inner
		}
	}
}

// sortKey maps numbers to integers of the same order: 0 and -0 are one, and so
// are all NaNs, above the rest.
func sortKey[T Number](x T) uint64 {
	half := 0.5
	if T(half) == 0 {
		return uint64(int64(x)) ^ 1<<63
	}
	if x != x {
		return math.MaxUint64
	}
	b := math.Float64bits(float64(x) + 0) // -0 + 0 is +0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// sortKeys sorts the first n keys, and order with them, stably; the second
// halves are scratch. It returns the sorted order, in either half.
func sortKeys(keys []uint64, order []int32, n int) []int32 {
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
