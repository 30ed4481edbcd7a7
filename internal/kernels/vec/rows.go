package vec

// SumRows sets dst to the sum of the rows of a matrix, each as long as dst, that index names, from the
// first on. Each row named must exist.
func SumRows[T float32 | BF16 | F16](dst []float32, rows []T, index []int64) {
	width := len(dst)
	from := sumRowsNative(dst, rows, index)
	if from == width {
		return
	}
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
