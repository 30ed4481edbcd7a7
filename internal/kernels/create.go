package kernels

// ArangeInt sets dst[i] = start + (lo+i)·step, computed in int64.
func ArangeInt[T Number](dst []T, start, step int64, lo int) {
	for i := range dst {
		dst[i] = T(start + int64(lo+i)*step)
	}
}

// ArangeFloat sets dst[i] = start + (lo+i)·step, computed in float64.
func ArangeFloat[T Number](dst []T, start, step float64, lo int) {
	for i := range dst {
		dst[i] = T(start + float64(lo+i)*step)
	}
}

// Linspace sets dst[i] to element lo+i of n evenly spaced numbers from start to
// end, counted from the nearer end, in float64.
func Linspace(dst []float64, start, end float64, n, lo int) {
	step := (end - start) / float64(n-1)
	for i := range dst {
		switch at := lo + i; {
		case n == 1:
			dst[i] = start
		case at < n/2:
			dst[i] = start + float64(at)*step
		default:
			dst[i] = end - float64(n-1-at)*step
		}
	}
}
