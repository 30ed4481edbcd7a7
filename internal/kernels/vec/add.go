package vec

// Add writes the sums of x and y to dst, which may be one of them.
func Add(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := addNative(dst, x, y); i < len(dst); i++ {
		dst[i] = x[i] + y[i]
	}
}
