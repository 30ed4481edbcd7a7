package kernels

// CountRows sets counts to how many rows ReduceRows combines in each row, of which there are
// len(counts), its own among them if includeSelf; and firsts to 1 for the entries of the index that come
// first in a row that does not count itself.
func CountRows(counts []int64, firsts []uint8, index []int64, includeSelf bool) {
	own := int64(0)
	if includeSelf {
		own = 1
	}
	for i := range counts {
		counts[i] = own
	}
	for j, ix := range index {
		p := checked(ix, len(counts))
		firsts[j] = flag(counts[p] == 0)
		counts[p]++
	}
}

// ReduceRows is ScatterReduce by rows: source is [len(index), inner], and dst is [len(counts), inner].
// Units lo..hi-1 are columns, each of which is combined in index order. counts and firsts are those of
// CountRows.
func ReduceRows[T Number](dst []T, index []int64, source []T, how Combine, counts []int64, firsts []uint8, inner, lo, hi int) {
	for j, ix := range index {
		row := dst[int(ix)*inner+lo : int(ix)*inner+hi]
		from := source[j*inner+lo : j*inner+hi]
		if firsts[j] != 0 {
			copy(row, from)
			continue
		}
		combineRow(how, row, from)
	}
	if how != CombineMean {
		return
	}
	for r, n := range counts {
		divideBy(dst[r*inner+lo:r*inner+hi], n)
	}
}
