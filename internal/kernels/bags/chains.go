package bags

import (
	"slices"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// AddChained adds rows of 16-bit floats: source is [outer, len(index), inner] and dst [outer, size, inner],
// with the lists of kernels.Chain. Each row of dst is summed in float32 in the order of the indices, and rounded
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

// CombineChained is kernels.CombineChained of rows of 16-bit floats: each row is combined in float32 and rounded
// once. Rows without a list are copied as they are.
func CombineChained[E vec.BF16 | vec.F16](dst, self []E, heads, next []int64, source []E, how kernels.Combine, include bool, inner, lo, hi int) {
	size, n := len(heads), len(next)
	pieces := kernels.ChainUnits(1, inner)
	most := min(inner, kernels.ChainColumns)
	lines := make([]float32, 2*most)
	for u := lo; u < hi; u++ {
		row, from := u/pieces, u%pieces*kernels.ChainColumns
		o, r := row/size, row%size
		k := min(kernels.ChainColumns, inner-from)
		to, own := dst[row*inner+from:][:k], self[row*inner+from:][:k]
		i, count := heads[r], int64(1)
		if i < 0 {
			if &to[0] != &own[0] {
				copy(to, own)
			}
			continue
		}
		sum, wide := lines[:k], lines[most:][:k]
		if include {
			vec.Load(sum, own)
		} else {
			vec.Load(sum, source[(o*n+int(i))*inner+from:][:k])
			i = next[i]
		}
		for ; i >= 0; i = next[i] {
			vec.Load(wide, source[(o*n+int(i))*inner+from:][:k])
			kernels.CombineRow(how, sum, wide)
			count++
		}
		if how == kernels.CombineMean {
			kernels.DivideBy(sum, count)
		}
		vec.Store(to, sum)
	}
}

// AddPlaced adds elements of 16-bit floats, of which there are few: element p&(1<<32-1) of source to element
// p>>32 of dst for each p of places, which are sorted. What is added to one element is summed in float32 in
// the order of source, and rounded once.
func AddPlaced[E vec.BF16 | vec.F16](dst, source []E, places []int64) {
	slices.Sort(places)
	for len(places) > 0 {
		at := places[0] >> 32
		sum := vec.Wide[float32](dst[at])
		for len(places) > 0 && places[0]>>32 == at {
			sum += vec.Wide[float32](source[uint32(places[0])])
			places = places[1:]
		}
		dst[at] = vec.Narrow[E](sum)
	}
}
