package kernels

// Chain makes lists of equal indices, in their order: heads has for each of its rows the place of its
// first index, or -1, and next for each place that of the next equal index, or -1. An index without a
// row makes it panic with an IndexError.
func Chain(heads, next, index []int64) {
	for i := range heads {
		heads[i] = -1
	}
	for i := len(index) - 1; i >= 0; i-- {
		at := checked(index[i], len(heads))
		next[i], heads[at] = heads[at], int64(i)
	}
}

// ChainColumns is how many columns of a row CombineChained does at a time, and bags.CombineChained too.
const ChainColumns = 4096

// ChainUnits returns how many units CombineChained has for so many rows.
func ChainUnits(rows, inner int) int { return rows * ((inner + ChainColumns - 1) / ChainColumns) }

// CombineChained sets rows of dst, [outer, len(heads), inner], to those of self, with rows of source,
// [outer, len(next), inner], combined with them in the order of the lists of Chain; unless include is set,
// rows that have a list are ignored in self. dst and self may be the same memory. It does units lo..hi-1,
// which are pieces of rows.
func CombineChained[T Number](dst, self []T, heads, next []int64, source []T, how Combine, include bool, inner, lo, hi int) {
	size, n := len(heads), len(next)
	pieces := ChainUnits(1, inner)
	for u := lo; u < hi; {
		row, from := u/pieces, u%pieces*ChainColumns
		o, r := row/size, row%size
		k := min(ChainColumns, inner-from)
		// The units that follow it are the same piece of the next rows, where rows are of one piece.
		for end := min(hi, u+size-r); u < end; u, r = u+1, r+1 {
			at := (o*size+r)*inner + from
			to, own := dst[at:at+k], self[at:at+k]
			i, count := heads[r], int64(1)
			if i >= 0 && !include {
				p := (o*n+int(i))*inner + from
				copy(to, source[p:p+k])
				i = next[i]
			} else if &to[0] != &own[0] {
				copy(to, own)
			}
			for ; i >= 0; i = next[i] {
				p := (o*n+int(i))*inner + from
				CombineRow(how, to, source[p:p+k])
				count++
			}
			if how == CombineMean {
				DivideBy(to, count)
			}
			if pieces > 1 {
				u++
				break
			}
		}
	}
}
