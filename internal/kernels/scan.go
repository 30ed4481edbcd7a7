package kernels

import (
	"math"
	"unsafe"
)

// The kernels of this file work along the middle of a tensor seen as
// [outer, n, inner]. Their units are the outer·inner lines; lo and hi bound
// them. dst and x may be the same slice.

// Cumsum sets dst to the running sums of x: floats in float64, integers in int64.
func Cumsum[R, T Number, A int64 | float64](dst []R, x []T, n, inner, lo, hi int) {
	if inner > 1 {
		alongLanes(n, inner, lo, hi, func(p, lanes int) {
			var sums [scanLanes]A
			acc := sums[:lanes]
			for range n {
				to, from := dst[p:p+lanes], x[p:p+lanes]
				for i, s := range acc {
					s += A(from[i])
					acc[i], to[i] = s, R(s)
				}
				p += inner
			}
		})
		return
	}
	for half := 0.5; A(half) != 0 && lo+4 <= hi; lo += 4 { // integers are added at once
		x0, x1, x2, x3 := fourRows(x, n, lo)
		y0, y1, y2, y3 := fourRows(dst, n, lo)
		var a, b, c, d A
		for i := range n {
			a, b, c, d = a+A(x0[i]), b+A(x1[i]), c+A(x2[i]), d+A(x3[i])
			y0[i], y1[i], y2[i], y3[i] = R(a), R(b), R(c), R(d)
		}
	}
	for ; lo < hi; lo++ {
		to, from := dst[lo*n:(lo+1)*n], x[lo*n:(lo+1)*n]
		var acc A
		for i, v := range from {
			acc += A(v)
			to[i] = R(acc)
		}
	}
}

// Cumprod sets dst to the running products of x.
func Cumprod[R, T Number, A int64 | float64](dst []R, x []T, n, inner, lo, hi int) {
	if inner > 1 {
		alongLanes(n, inner, lo, hi, func(p, lanes int) {
			var products [scanLanes]A
			acc := products[:lanes]
			for i := range acc {
				acc[i] = 1
			}
			for range n {
				to, from := dst[p:p+lanes], x[p:p+lanes]
				for i, s := range acc {
					s *= A(from[i])
					acc[i], to[i] = s, R(s)
				}
				p += inner
			}
		})
		return
	}
	for ; lo+4 <= hi; lo += 4 {
		x0, x1, x2, x3 := fourRows(x, n, lo)
		y0, y1, y2, y3 := fourRows(dst, n, lo)
		a, b, c, d := A(1), A(1), A(1), A(1)
		for i := range n {
			a, b, c, d = a*A(x0[i]), b*A(x1[i]), c*A(x2[i]), d*A(x3[i])
			y0[i], y1[i], y2[i], y3[i] = R(a), R(b), R(c), R(d)
		}
	}
	for ; lo < hi; lo++ {
		to, from := dst[lo*n:(lo+1)*n], x[lo*n:(lo+1)*n]
		acc := A(1)
		for i, v := range from {
			acc *= A(v)
			to[i] = R(acc)
		}
	}
}

// scanLanes is how many lines that lie beside each other are gone along together at most: lines of elements that
// are apart, one by one, would read each cache line once for each of its elements. Of lines of adjacent elements
// four are, since what is computed waits for the element before it, but not for that of another line.
const scanLanes = 32

// fourRows returns rows of n elements from the one on.
func fourRows[T any](x []T, n, first int) (a, b, c, d []T) {
	x = x[first*n:]
	return x[:n], x[n:][:n], x[2*n:][:n], x[3*n:][:n]
}

// alongLanes calls f for groups of the lines lo..hi-1 that lie beside each other, with where the first begins.
func alongLanes(n, inner, lo, hi int, f func(p, lanes int)) {
	for lo < hi {
		lanes := min(scanLanes, hi-lo, inner-lo%inner)
		f(lo/inner*n*inner+lo%inner, lanes)
		lo += lanes
	}
}

// gradientLines is how many lines that adjoin CumprodGradient goes along together at most.
const gradientLines = 8

// CumprodGradient sets dst to the gradient of the running products y of x, from their cotangents g:
//
//	dst[k] = y[k-1] · s[k],  s[k] = g[k] + x[k+1] · s[k+1]
func CumprodGradient[T Float](dst, g, x, y []T, n, inner, lo, hi int) {
	if inner == 1 && n > 0 {
		for ; hi-lo >= 2; lo += 2 {
			cumprodGradientRows(dst[lo*n:], g[lo*n:], x[lo*n:], y[lo*n:], n)
		}
	}
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

// cumprodGradientRows is CumprodGradient of the first two lines of elements that adjoin, together. Of four arrays no
// more lines fit the first cache where they are a multiple of its ways apart, as those of 1024 elements are.
func cumprodGradientRows[T Float](dst, g, x, y []T, n int) {
	d0, d1 := twoRows(dst, n)
	g0, g1 := twoRows(g, n)
	x0, x1 := twoRows(x, n)
	y0, y1 := twoRows(y, n)
	a, b := float64(g0[n-1]), float64(g1[n-1])
	for k := n - 1; k > 0; k-- {
		d0[k], d1[k] = T(a*float64(y0[k-1])), T(b*float64(y1[k-1]))
		a, b = a*float64(x0[k]), b*float64(x1[k])
		a, b = a+float64(g0[k-1]), b+float64(g1[k-1])
	}
	d0[0], d1[0] = T(a), T(b)
}

// twoRows returns the first rows of n elements.
func twoRows[T any](x []T, n int) (a, b []T) { return x[:n], x[n:][:n] }

// Cummax sets values to the running maxima of x, or with least to the minima, and indices to where they
// are; of equal ones the later, and a NaN stays the maximum.
func Cummax[T Number](values []T, indices []int64, x []T, least bool, n, inner, lo, hi int) {
	if n == 0 {
		return
	}
	if inner > 1 {
		cummaxLanes(values, indices, x, least, n, inner, lo, hi)
		return
	}
	half := 0.5
	if T(half) != 0 && n <= cummaxShort {
		cummaxShortRows(values, indices, x, least, n, lo, hi)
		return
	}
	for l := lo; l < hi; l++ {
		row, places, from := values[l*n:(l+1)*n], indices[l*n:(l+1)*n], x[l*n:(l+1)*n]
		if T(half) != 0 {
			cummaxRow(row, places, from, least)
		} else {
			cummaxIntegers(row, places, from, least)
		}
	}
}

// cummaxLanes is Cummax of lines that lie beside each other.
func cummaxLanes[T Number](values []T, indices []int64, x []T, least bool, n, inner, lo, hi int) {
	alongLanes(n, inner, lo, hi, func(p, lanes int) {
		var best [scanLanes]T
		var at [scanLanes]int64
		for i := range n {
			from, to, places := x[p:p+lanes], values[p:p+lanes], indices[p:p+lanes]
			for j, v := range from {
				b := best[j%scanLanes]
				more := v >= b
				if least {
					more = v <= b
				}
				if more || i == 0 || v != v {
					b, best[j%scanLanes], at[j%scanLanes] = v, v, int64(i)
				}
				to[j], places[j] = b, at[j%scanLanes]
			}
			p += inner
		}
	})
}

// cummaxShort is how many elements rows of floats have at most in which the ends of runs, which are not foreseen, take longer
// than comparing keys.
const cummaxShort = 8

// cummaxShortRows is Cummax of short rows of floats that adjoin: conditional moves of integers in the same order.
func cummaxShortRows[T Number](values []T, indices []int64, x []T, least bool, n, lo, hi int) {
	if unsafe.Sizeof(*new(T)) == 4 {
		cummaxShortSingles(values, indices, x, least, n, lo, hi)
		return
	}
	for ; lo < hi; lo++ {
		from, to, places := x[lo*n:][:n], values[lo*n:][:n], indices[lo*n:][:n]
		best, at := uint64(0), 0
		for i, v := range from {
			k := sortKey(v, false)
			if least && v == v {
				k = ^k
			}
			if k >= best {
				at = i
			}
			best = max(best, k)
			to[i], places[i] = from[at], int64(at)
		}
	}
}

// cummaxShortSingles is cummaxShortRows of float32, whose keys have 32 bits.
func cummaxShortSingles[T Number](values []T, indices []int64, x []T, least bool, n, lo, hi int) {
	flip := uint32(0)
	if least {
		flip = math.MaxUint32
	}
	for ; lo < hi; lo++ {
		from, to, places := x[lo*n:][:n], values[lo*n:][:n], indices[lo*n:][:n]
		best, at := uint32(0), 0
		for i, v := range from {
			k := math.Float32bits(float32(v) + 0) // -0 + 0 is +0
			k ^= uint32(int32(k)>>31) | 1<<31
			k ^= flip
			if v != v {
				k = math.MaxUint32
			}
			if k >= best {
				at = i
			}
			best = max(best, k)
			to[i], places[i] = from[at], int64(at)
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
		if inner == 1 {
			dst[l] = int64(argmaxRow(x[l*n : (l+1)*n]))
			continue
		}
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

// argmaxRow skips what is at most the greatest so far, as no NaN is.
func argmaxRow[T Number](x []T) (at int) {
	best := x[0]
	for i := 1; best == best; i++ {
		for i < len(x) && x[i] <= best {
			i++
		}
		if i == len(x) {
			break
		}
		best, at = x[i], i
	}
	return at
}

// Argmin is Argmax for the smallest element.
func Argmin[T Number](dst []int64, x []T, n, inner, lo, hi int) {
	for l := lo; l < hi; l++ {
		if inner == 1 {
			dst[l] = int64(argminRow(x[l*n : (l+1)*n]))
			continue
		}
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

func argminRow[T Number](x []T) (at int) {
	best := x[0]
	for i := 1; best == best; i++ {
		for i < len(x) && x[i] >= best {
			i++
		}
		if i == len(x) {
			break
		}
		best, at = x[i], i
	}
	return at
}
