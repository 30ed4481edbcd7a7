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

// gradientLines is how many lines that adjoin CumprodGradient goes along together. Others it takes one by
// one: their elements would meet in the same places of the cache.
const gradientLines = 8

// CumprodGradient sets dst to the gradient of the running products y of x, from their cotangents g:
//
//	dst[k] = y[k-1] · s[k],  s[k] = g[k] + x[k+1] · s[k+1]
func CumprodGradient[T Float](dst, g, x, y []T, n, inner, lo, hi int) {
	for lo < hi {
		lines := min(gradientLines, hi-lo, inner-lo%inner)
		p := lo/inner*n*inner + lo%inner + n*inner
		var sums [gradientLines]float64
		acc := sums[:lines]
		for k := n - 1; k >= 0; k-- {
			p -= inner
			for i, s := range acc {
				if k+1 < n {
					s *= float64(x[p+inner+i])
				}
				s += float64(g[p+i])
				acc[i] = s
				if k > 0 {
					s *= float64(y[p-inner+i])
				}
				dst[p+i] = T(s)
			}
		}
		lo += lines
	}
}

// Cummax sets values to the running maxima of x, or with least to the minima, and indices to where they
// are; of equal ones the later, and a NaN stays the maximum.
func Cummax[T Number](values []T, indices []int64, x []T, least bool, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		if inner == 1 && n > 0 {
			row, places, from := values[l*n:(l+1)*n], indices[l*n:(l+1)*n], x[l*n:(l+1)*n]
			if half := 0.5; T(half) != 0 {
				cummaxRow(row, places, from, least)
			} else {
				cummaxIntegers(row, places, from, least)
			}
			continue
		}
		p := l/inner*n*inner + l%inner
		var best T
		at := int64(0)
		for i := range n {
			v := x[p]
			more := v >= best
			if least {
				more = v <= best
			}
			if more || i == 0 || v != v {
				best, at = v, int64(i)
			}
			values[p], indices[p] = best, at
			p += inner
		}
	}
}

// cummaxRow is Cummax of floats that adjoin. It looks for the end of each run that one of them rules, of
// which there are few in most rows, and fills it. Integers are often equal, which ends runs.
func cummaxRow[T Number](values []T, indices []int64, x []T, least bool) {
	for at := 0; at < len(x); {
		best, end := x[at], at+1
		switch {
		case best != best:
			for end < len(x) && x[end] == x[end] {
				end++
			}
		case least:
			for end < len(x) && x[end] > best {
				end++
			}
		default:
			for end < len(x) && x[end] < best {
				end++
			}
		}
		repeat(values[at:end], best)
		repeat(indices[at:end], int64(at))
		at = end
	}
}

// repeat sets all of dst to a number, by copying what it has set where there is much to set.
func repeat[T Number](dst []T, v T) {
	n := min(16, len(dst))
	for i := range dst[:n] {
		dst[i] = v
	}
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}

// cummaxIntegers is Cummax of integers that adjoin: two conditional moves for each.
func cummaxIntegers[T Number](values []T, indices []int64, x []T, least bool) {
	values, indices = values[:len(x)], indices[:len(x)]
	best, at := x[0], 0
	if least {
		for i, v := range x {
			if v <= best {
				at = i
			}
			best = min(best, v)
			values[i], indices[i] = best, int64(at)
		}
		return
	}
	for i, v := range x {
		if v >= best {
			at = i
		}
		best = max(best, v)
		values[i], indices[i] = best, int64(at)
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
