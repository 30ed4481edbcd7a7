package vec

// SumBags sets rows of dst, each width long, to the sums of those rows of a matrix that elements of index name, from
// the first on: row b to those of the elements from bounds[b] to bounds[b+1], which is no less. Each row named must exist.
func SumBags[T float32 | BF16 | F16](dst []float32, rows []T, width int, index, bounds []int64) {
	for width > 0 && len(bounds) > 1 {
		bags, from := sumBagsNative(dst, rows, width, index, bounds)
		for b := 0; b < bags && from < width; b++ {
			sumRest(dst[b*width:][:width], rows, index[bounds[b]:bounds[b+1]], from)
		}
		dst, bounds = dst[bags*width:], bounds[bags:]
	}
}

// sumRest sets the columns of dst from the one on to the sums of the rows that index names.
func sumRest[T float32 | BF16 | F16](dst []float32, rows []T, index []int64, from int) {
	width := len(dst)
	clear(dst[from:])
	var wide [64]float32
	for _, at := range index {
		row := rows[int(at)*width:][:width]
		for c := from; c < width; c += len(wide) {
			part := wide[:min(len(wide), width-c)]
			Load(part, row[c:c+len(part)])
			for i, v := range part {
				dst[c+i] += v
			}
		}
	}
}
