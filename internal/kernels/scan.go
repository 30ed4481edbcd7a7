package kernels

import "unsafe"

// The kernels of this file work along the middle of a tensor seen as
// [outer, n, inner]. Their units are the outer·inner lines; lo and hi bound
// them. dst and x may be the same slice.

// Cumsum sets dst to the running sums of x: floats in float64, integers in int64.
func Cumsum[R, T Number, A int64 | float64](dst []R, x []T, n, inner, lo, hi int) {
	l := lo
	if half := 0.5; A(half) != 0 && scansPairs[R](n, inner) {
		for ; l+1 < hi; l += 2 {
			p, q := l/inner*n*inner+l%inner, (l+1)/inner*n*inner+(l+1)%inner
			var a, b A
			for range n {
				a, b = a+A(x[p]), b+A(x[q])
				dst[p], dst[q] = R(a), R(b)
				p, q = p+inner, q+inner
			}
		}
	}
	for ; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		var acc A
		for range n {
			acc += A(x[p])
			dst[p] = R(acc)
			p += inner
		}
	}
}

// scansPairs reports whether two lines are gone along together: what is computed waits for the element
// before it, but not for that of another line. Long lines that lie apart wait for memory.
func scansPairs[R Number](n, inner int) bool {
	var x R
	return inner > 1 || n*int(unsafe.Sizeof(x)) <= 8<<10
}

// Cumprod sets dst to the running products of x.
func Cumprod[R, T Number, A int64 | float64](dst []R, x []T, n, inner, lo, hi int) {
	l := lo
	if scansPairs[R](n, inner) {
		for ; l+1 < hi; l += 2 {
			p, q := l/inner*n*inner+l%inner, (l+1)/inner*n*inner+(l+1)%inner
			a, b := A(1), A(1)
			for range n {
				a, b = a*A(x[p]), b*A(x[q])
				dst[p], dst[q] = R(a), R(b)
				p, q = p+inner, q+inner
			}
		}
	}
	for ; l < hi; l++ {
		p := l/inner*n*inner + l%inner
		acc := A(1)
		for range n {
			acc *= A(x[p])
			dst[p] = R(acc)
			p += inner
		}
	}
}

// ProductsOfOthers sets each of dst to the product of all others of its row of n elements of x: of those
// before it and of those behind, which are rounded, by round too unless it is nil, before they are
// multiplied. It goes along a row from both ends at once; rows are lo..hi-1.
func ProductsOfOthers[T Float](dst, x []T, n int, round func([]T), lo, hi int) {
	for r := lo; r < hi; r++ {
		to, from := dst[r*n:(r+1)*n], x[r*n:(r+1)*n]
		left, right := 1.0, 1.0
		i, j := 0, n-1
		for ; i < j; i, j = i+1, j-1 {
			to[i], to[j] = T(left), T(right)
			left, right = left*float64(from[i]), right*float64(from[j])
		}
		if i == j {
			to[i] = 1 // which both of its products are multiplied with
		}
		if round != nil {
			round(to)
		}
		var before, behind [256]T
		for i < n {
			k := min(n-i, len(before))
			for t := range k {
				before[t], behind[t] = T(left), T(right)
				left, right = left*float64(from[i+t]), right*float64(from[j-t])
			}
			if round != nil {
				round(before[:k])
				round(behind[:k])
			}
			for t := range k {
				to[i+t] *= before[t]
				to[j-t] *= behind[t]
			}
			i, j = i+k, j-k
		}
	}
}

// gradientLines is how many lines that adjoin CumprodGradient goes along together at most.
const gradientLines = 8

// CumprodGradient sets dst to the gradient of the running products y of x, from their cotangents g:
//
//	dst[k] = y[k-1] · s[k],  s[k] = g[k] + x[k+1] · s[k+1]
func CumprodGradient[T Float](dst, g, x, y []T, n, inner, lo, hi int) {
	if inner == 1 {
		for ; hi-lo >= 4; lo += 4 {
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

// cumprodGradientRows is CumprodGradient of the first four lines of elements that adjoin, together.
func cumprodGradientRows[T Float](dst, g, x, y []T, n int) {
	if n == 0 {
		return
	}
	p, q, r, s := n-1, 2*n-1, 3*n-1, 4*n-1
	a, b, c, d := float64(g[p]), float64(g[q]), float64(g[r]), float64(g[s])
	for range n - 1 {
		dst[p], dst[q], dst[r], dst[s] = T(a*float64(y[p-1])), T(b*float64(y[q-1])), T(c*float64(y[r-1])), T(d*float64(y[s-1]))
		a, b, c, d = a*float64(x[p]), b*float64(x[q]), c*float64(x[r]), d*float64(x[s])
		p, q, r, s = p-1, q-1, r-1, s-1
		a, b, c, d = a+float64(g[p]), b+float64(g[q]), c+float64(g[r]), d+float64(g[s])
	}
	dst[p], dst[q], dst[r], dst[s] = T(a), T(b), T(c), T(d)
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
