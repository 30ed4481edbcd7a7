package kernels

// The kernels of this file work along the middle of a tensor seen as
// [outer, n, inner]. Their units are the outer·inner lines; lo and hi bound
// them. dst and x may be the same slice.

// Cumsum sets dst to the running sums of x: floats in float64, integers in int64.
func Cumsum[T Number, A int64 | float64](dst, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		var acc A
		for range n {
			acc += A(x[p])
			dst[p] = T(acc)
			p += inner
		}
	}
}

// Cumprod sets dst to the running products of x.
func Cumprod[T Number, A int64 | float64](dst, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		acc := A(1)
		for range n {
			acc *= A(x[p])
			dst[p] = T(acc)
			p += inner
		}
	}
}

// Cummax sets values to the running maxima of x and indices to where they are;
// of equal ones the later, and a NaN stays the maximum.
func Cummax[T Number](values []T, indices []int64, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		var best T
		at := int64(0)
		for i := range n {
			if v := x[p]; i == 0 || v >= best || v != v {
				best, at = v, int64(i)
			}
			values[p], indices[p] = best, at
			p += inner
		}
	}
}

// Argmax sets dst, one element a line, to the index of the first greatest
// element; the first NaN if there is one.
func Argmax[T Number](dst []int64, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		best, at := x[p], 0
		for i := 1; i < n && best == best; i++ {
			p += inner
			if v := x[p]; v > best || v != v {
				best, at = v, i
			}
		}
		dst[l] = int64(at)
	}
}

// Argmin is Argmax for the smallest element.
func Argmin[T Number](dst []int64, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		best, at := x[p], 0
		for i := 1; i < n && best == best; i++ {
			p += inner
			if v := x[p]; v < best || v != v {
				best, at = v, i
			}
		}
		dst[l] = int64(at)
	}
}
