package vec

import "math"

// SoftmaxColumns does one step of the softmax of each of cols columns of a
// matrix with the given row stride, of which x holds the next rows. For each
// column, most is the greatest scaled element of the rows before (−Inf for none)
// and sum the sum of exponentials relative to it; both are updated. The
// elements are replaced by exp(x·scale − most), and shrink is set to what
// results of the rows before must be multiplied with. Elements of columns that
// hold −Inf alone become 0.
func SoftmaxColumns[A Float](x []A, rows, cols, stride int, scale A, most, sum, shrink []A) {
	most, sum, shrink = most[:cols], sum[:cols], shrink[:cols]
	copy(shrink, most)
	if n := softmaxNative(x, rows, cols, stride, scale, most, sum, shrink); n > 0 {
		if n == cols {
			return
		}
		x, cols = x[n:], cols-n
		most, sum, shrink = most[n:], sum[n:], shrink[n:]
	}
	for r := range rows {
		row := x[r*stride:][:cols]
		for i, v := range row {
			if v *= scale; v > most[i] {
				most[i] = v
			}
		}
	}
	for i, m := range most {
		shrink[i] = A(math.Exp(float64(shrink[i] - base(m))))
		sum[i] *= shrink[i]
	}
	for r := range rows {
		row := x[r*stride:][:cols]
		for i, v := range row {
			e := A(math.Exp(float64(v*scale - base(most[i]))))
			row[i] = e
			sum[i] += e
		}
	}
}

// SoftmaxGradientColumns turns scores x of cols columns with the given row stride into probabilities
// exp(x·scale − base), and gradients g of probabilities into those of scores, x·(g − mean). base is
// the logarithm of a column's sum of exponentials, +Inf for a column of zeros, and mean the sum of the
// column's gradients weighted by probabilities.
func SoftmaxGradientColumns[A Float](x, g []A, rows, cols, stride int, scale A, base, mean []A) {
	n := softmaxGradientNative(x, g, rows, cols, stride, scale, base[:cols], mean[:cols])
	if n == cols {
		return
	}
	x, g, base, mean = x[n:], g[n:], base[n:cols], mean[n:cols]
	for r := range rows {
		row, slopes := x[r*stride:][:len(base)], g[r*stride:][:len(base)]
		for i, v := range row {
			p := A(math.Exp(float64(v*scale - base[i])))
			row[i], slopes[i] = p, p*(slopes[i]-mean[i])
		}
	}
}

// Dot returns the sum of the products of the elements of x with those of y.
func Dot[A Float](x, y []A) A {
	sum, n := dotNative(x, y)
	for i, v := range x[n:] {
		sum += v * y[n+i]
	}
	return sum
}

// base returns what is subtracted for a greatest element: zero for −Inf, so
// that no difference of infinities arises.
func base[A Float](most A) A {
	if math.IsInf(float64(most), -1) {
		return 0
	}
	return most
}

// Scale sets dst to src·f.
func Scale[A Float](dst, src []A, f A) {
	n := 0
	if s, ok := any(src).([]float32); ok {
		n = scaleNative(any(dst).([]float32), s, float32(f))
	}
	dst = dst[n:len(src)]
	for i, v := range src[n:] {
		dst[i] = v * f
	}
}
