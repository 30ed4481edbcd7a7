package bags

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Chain makes lists of equal indices, in their order: heads has for each of its rows the place of its
// first index, or -1, and next for each place that of the next equal index, or -1. An index without a
// row makes it panic with an IndexError.
func Chain(heads, next, index []int64) {
	for i := range heads {
		heads[i] = -1
	}
	for i := len(index) - 1; i >= 0; i-- {
		at := index[i]
		if uint64(at) >= uint64(len(heads)) {
			panic(kernels.IndexError{Index: at, Size: len(heads)})
		}
		next[i], heads[at] = heads[at], int64(i)
	}
}

// AddChained adds rows of 16-bit floats: source is [outer, len(index), inner] and dst [outer, size, inner],
// with the lists of Chain. Each row of dst is summed in float32 in the order of the indices, and rounded
// once. Units lo..hi-1 are the rows of source; the first of a list does all of it.
func AddChained[E vec.BF16 | vec.F16](dst []E, heads, next, index []int64, source []E, inner, lo, hi int) {
	n, size := len(index), len(heads)
	lines := make([]float32, 2*inner)
	sum, wide := lines[:inner], lines[inner:]
	for unit := lo; unit < hi; unit++ {
		o, j := unit/n, unit%n
		if heads[index[j]] != int64(j) {
			continue
		}
		to := dst[(o*size+int(index[j]))*inner:][:inner]
		vec.Load(sum, to)
		for i := int64(j); i >= 0; i = next[i] {
			vec.Load(wide, source[(o*n+int(i))*inner:][:inner])
			vec.Add(sum, sum, wide)
		}
		vec.Store(to, sum)
	}
}
