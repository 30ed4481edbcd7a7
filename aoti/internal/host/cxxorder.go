package host

import "math/bits"

// PyTorch picks and orders elements with the algorithms of C++'s library. None of
// them is stable, so which of equal elements comes first follows from how they
// work: these do the same steps as libstdc++'s.

// cxxSort is std::sort.
func cxxSort[T any](a []T, less func(x, y T) bool) {
	introsort(a, 2*(bits.Len(uint(len(a)))-1), less)
	insertionSort(a, less)
}

// cxxNthElement is std::nth_element: what belongs at position n is there
// afterwards, and nothing after it is less.
func cxxNthElement[T any](a []T, n int, less func(x, y T) bool) {
	if n >= len(a) {
		return
	}
	depth := 2 * (bits.Len(uint(len(a))) - 1)
	lo, hi := 0, len(a)
	for hi-lo > 3 {
		if depth == 0 {
			heapSelect(a[lo:hi], n+1-lo, less)
			a[lo], a[n] = a[n], a[lo]
			return
		}
		depth--
		if cut := lo + partition(a[lo:hi], less); cut <= n {
			lo = cut
		} else {
			hi = cut
		}
	}
	insertionSort(a[lo:hi], less)
}

// cxxPartialSort is std::partial_sort: the least n elements come first, in order.
func cxxPartialSort[T any](a []T, n int, less func(x, y T) bool) {
	heapSelect(a, n, less)
	for last := n - 1; last > 0; last-- {
		popHeap(a[:last], &a[last], less)
	}
}

// introsort leaves runs of up to 16 elements, each in its place, for an insertion
// sort to finish.
func introsort[T any](a []T, depth int, less func(x, y T) bool) {
	for len(a) > 16 {
		if depth == 0 {
			cxxPartialSort(a, len(a), less)
			return
		}
		depth--
		cut := partition(a, less)
		introsort(a[cut:], depth, less)
		a = a[:cut]
	}
}

func insertionSort[T any](a []T, less func(x, y T) bool) {
	for i := 1; i < len(a); i++ {
		x, j := a[i], i
		for ; j > 0 && less(x, a[j-1]); j-- {
			a[j] = a[j-1]
		}
		a[j] = x
	}
}

// partition parts a around the median of its second, middle and last element,
// which it brings to the front, and returns where the upper part begins.
func partition[T any](a []T, less func(x, y T) bool) int {
	i, j := 1, len(a)
	m := median3(a, 1, len(a)/2, len(a)-1, less)
	a[0], a[m] = a[m], a[0]
	for {
		for less(a[i], a[0]) {
			i++
		}
		for j--; less(a[0], a[j]); j-- {
		}
		if i >= j {
			return i
		}
		a[i], a[j] = a[j], a[i]
		i++
	}
}

// median3 returns which of three positions has the median.
func median3[T any](a []T, x, y, z int, less func(x, y T) bool) int {
	lo, hi := x, y
	if !less(a[x], a[y]) {
		lo, hi = y, x
	}
	switch {
	case less(a[hi], a[z]):
		return hi
	case less(a[lo], a[z]):
		return z
	}
	return lo
}

// heapSelect brings the least n elements to the front, as a heap with the largest
// of them on top.
func heapSelect[T any](a []T, n int, less func(x, y T) bool) {
	for top := n/2 - 1; top >= 0; top-- {
		siftDown(a[:n], top, a[top], less)
	}
	for i := n; i < len(a); i++ {
		if less(a[i], a[0]) {
			popHeap(a[:n], &a[i], less)
		}
	}
}

// popHeap moves the top of the heap to where it is told, and what was there into
// the heap.
func popHeap[T any](heap []T, to *T, less func(x, y T) bool) {
	x := *to
	*to = heap[0]
	siftDown(heap, 0, x, less)
}

// siftDown fills the hole at a position of the heap by the larger child all the
// way down, and lets x rise from there.
func siftDown[T any](heap []T, hole int, x T, less func(x, y T) bool) {
	top, n := hole, len(heap)
	for hole < (n-1)/2 {
		child := 2*hole + 2
		if less(heap[child], heap[child-1]) {
			child--
		}
		heap[hole], hole = heap[child], child
	}
	if n%2 == 0 && hole == (n-2)/2 {
		heap[hole], hole = heap[2*hole+1], 2*hole+1
	}
	for hole > top && less(heap[(hole-1)/2], x) {
		heap[hole] = heap[(hole-1)/2]
		hole = (hole - 1) / 2
	}
	heap[hole] = x
}
