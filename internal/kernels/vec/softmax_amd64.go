//go:build amd64 && !noasm

package vec

// columns are the loops of one type over columns of a softmax, of several vectors at a time and of one, and its sum
// of products.
type columns[A Float] struct {
	lanes                int
	softmax4, softmax1   func(x *A, rows, stride int, scale A, most, sum, shrink *A)
	gradient2, gradient1 func(x, slope *A, rows, stride int, scale A, base, mean *A)
	dot                  func(x, y *A, n int) A
}

var (
	columns32 = [...]*columns[float32]{
		avx2:   {8, softmax4AVX2, softmax1AVX2, softmaxGradient2AVX2, softmaxGradient1AVX2, dotAVX2},
		avx512: {16, softmax4AVX512, softmax1AVX512, softmaxGradient2AVX512, softmaxGradient1AVX512, dotAVX512},
	}
	columns64 = [...]*columns[float64]{
		avx2:   {4, softmaxF64x4AVX2, softmaxF64x1AVX2, softmaxGradientF64x2AVX2, softmaxGradientF64x1AVX2, dotF64AVX2},
		avx512: {8, softmaxF64x4AVX512, softmaxF64x1AVX512, softmaxGradientF64x2AVX512, softmaxGradientF64x1AVX512, dotF64AVX512},
	}
)

// columnsOf returns the loops for a type, nil for those in Go.
func columnsOf[A Float]() *columns[A] {
	if c, ok := any(columns32[level]).(*columns[A]); ok {
		return c
	}
	return any(columns64[level]).(*columns[A])
}

// softmaxNative does whole vectors of columns and returns how many columns.
func softmaxNative[A Float](x []A, rows, cols, stride int, scale A, most, sum, shrink []A) int {
	l := columnsOf[A]()
	if l == nil || rows == 0 {
		return 0
	}
	_ = x[(rows-1)*stride+cols-1]
	c := 0
	for ; c+4*l.lanes <= cols; c += 4 * l.lanes {
		l.softmax4(&x[c], rows, stride, scale, &most[c], &sum[c], &shrink[c])
	}
	for ; c+l.lanes <= cols; c += l.lanes {
		l.softmax1(&x[c], rows, stride, scale, &most[c], &sum[c], &shrink[c])
	}
	return c
}

// softmaxGradientNative does whole vectors of columns and returns how many columns.
func softmaxGradientNative[A Float](x, g []A, rows, cols, stride int, scale A, base, mean []A) int {
	l := columnsOf[A]()
	if l == nil || rows == 0 {
		return 0
	}
	_, _ = x[(rows-1)*stride+cols-1], g[(rows-1)*stride+cols-1]
	c := 0
	for ; c+2*l.lanes <= cols; c += 2 * l.lanes {
		l.gradient2(&x[c], &g[c], rows, stride, scale, &base[c], &mean[c])
	}
	for ; c+l.lanes <= cols; c += l.lanes {
		l.gradient1(&x[c], &g[c], rows, stride, scale, &base[c], &mean[c])
	}
	return c
}

// dotNative sums whole vectors and returns how many elements.
func dotNative[A Float](x, y []A) (sum A, n int) {
	l := columnsOf[A]()
	if l == nil || len(x) < l.lanes {
		return 0, 0
	}
	n = len(x) / l.lanes * l.lanes
	_ = y[n-1]
	return l.dot(&x[0], &y[0], n), n
}
