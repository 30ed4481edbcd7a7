package strided

const (
	// fewColumns is how many elements a row has at most to be read column by column.
	fewColumns = 7
	// fewRows is how many rows that are read so stay in the first-level cache.
	fewRows = 256
)

// readFew is Read, from a coordinate on, of whole rows of few elements that do not adjoin. It returns how
// many of dst it has set.
func readFew[T Bits](dst, src []T, v *View, at *[MaxRank]int, pos int) int {
	last := v.Rank - 1
	n, step := v.Dims[last], v.Strides[last]
	if last == 0 {
		return 0
	}
	// The last row is left to the caller, who goes on to the next dimension from it.
	rows, down := min(v.Dims[last-1]-at[last-1]-1, len(dst)/n), v.Strides[last-1]
	if rows <= 0 {
		return 0
	}
	switch {
	case step == -1 && reverseVectors(dst, src[:pos+1], n, rows, down):
		// It is done.
	case n > fewRepeats:
		return 0
	case n == 2 && down == 1:
		a, b := src[pos:][:rows], src[pos+step:][:rows]
		for i, x := range a {
			to := dst[2*i:][:2]
			to[0], to[1] = x, b[i]
		}
	case n <= fewColumns:
		for r := 0; r < rows; r += fewRows {
			for j := range n {
				copyColumn(dst, src, r*n+j, pos+r*down+j*step, n, down, min(fewRows, rows-r))
			}
		}
	default:
		for i := range rows {
			to, p := dst[i*n:][:n], pos+i*down
			for j := range to {
				to[j] = src[p]
				p += step
			}
		}
	}
	at[last-1] += rows
	return rows * n
}
