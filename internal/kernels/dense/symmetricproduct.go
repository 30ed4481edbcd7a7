package dense

import (
	"math"
	"unsafe"
)

func bothOf(a *float64, lda int, f, down, x, y *float64, rows, blocks int) {
	n := lanes * blocks
	m, along, to := unsafe.Slice(a, (rows-1)*lda+n), unsafe.Slice(x, n), unsafe.Slice(y, n)
	factors, sums := unsafe.Slice(f, rows), unsafe.Slice(down, rows)
	for i, factor := range factors {
		var sum [lanes]float64
		for j, v := range m[i*lda:][:n] {
			sum[j%lanes] = math.FMA(v, along[j], sum[j%lanes])
			to[j] = math.FMA(factor, v, to[j])
		}
		sums[i] += folded(sum)
	}
}

// both adds the products of rows of a, which lie lda apart, with x to down, and that of f with the rows to
// y. There are so many columns, rounded up to lanes.
func both(a []float64, lda int, f, down, x, y []float64, rows, cols int) {
	if rows == 0 || cols <= 0 {
		return
	}
	blocks := (cols + lanes - 1) / lanes
	n := blocks * lanes
	_, _, _, _, _ = a[(rows-1)*lda+n-1], f[rows-1], down[rows-1], x[n-1], y[n-1]
	use.both(&a[0], lda, &f[0], &down[0], &x[0], &y[0], rows, blocks)
}

// timesUpper makes y, from an element on that is a multiple of lanes, the product with x of a symmetric m, of
// which only the blocks of lanes on the diagonal and right of it are read: each once, for itself and for what
// is opposite.
func (m *Matrix) timesUpper(y, x []float64, from int) {
	n := m.Rows
	clear(y[from:])
	for i := from; i < n; i += lanes {
		rows := min(lanes, n-i)
		var own [lanes]float64
		dots(own[:rows], m.at(i, i), m.Stride, x[i:], rows)
		for r, v := range own[:rows] {
			y[i+r] += v
		}
		if i+lanes < n {
			both(m.at(i, i+lanes), m.Stride, x[i:], y[i:], x[i+lanes:], y[i+lanes:], rows, n-i-lanes)
		}
	}
}
