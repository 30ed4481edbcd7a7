package dense

import "github.com/loris-ml/loris/internal/kernels/gemm"

// Products of a depth and a size from these on are package gemm's, which lays operands out for the cache and
// shares the work.
const (
	deepProduct  = 64
	largeProduct = 1 << 20
)

// minus takes from a part of m that begins with an element the product of a matrix a of k columns with k rows
// of b, as subtract does.
func (m *Matrix) minus(i, j, rows, cols int, a []float64, row, col int, b []float64, ldb, k int) {
	if rows <= 0 || cols <= 0 || k <= 0 {
		return
	}
	if k < deepProduct || rows*cols*k < largeProduct {
		subtract(m.at(i, j), m.Stride, rows, cols, a, row, col, b, ldb, k)
		return
	}
	l := m.room.limiter()
	o := &gemm.Options[float64]{Alpha: -1, Beta: 1, Limiter: l}
	if l == nil {
		o.Threads = 1
	}
	gemm.Mul(gemm.Matrix[float64]{Data: m.at(i, j), Rows: rows, Cols: cols, RowStride: m.Stride, ColStride: 1},
		gemm.Matrix[float64]{Data: a, Rows: rows, Cols: k, RowStride: row, ColStride: col},
		gemm.Matrix[float64]{Data: b, Rows: k, Cols: cols, RowStride: ldb, ColStride: 1}, o)
}

// strip is how many columns, or rows, are treated at a time where that keeps them in the cache.
const strip = 64

// strips calls f for parts of n columns or rows, on several goroutines if the work, in multiplications, is
// worth that.
func (m *Matrix) strips(n, work int, f func(lo, hi int)) {
	count := (n + strip - 1) / strip
	part := func(lo, hi int) {
		for ; lo < hi; lo++ {
			f(lo*strip, min((lo+1)*strip, n))
		}
	}
	l := m.room.limiter()
	if l == nil || work < largeProduct {
		part(0, count)
		return
	}
	l.For(count, 1, part)
}

// Product returns a·b.
func Product(a, b *Matrix) *Matrix {
	c := a.room.New(a.Rows, b.Cols)
	c.minus(0, 0, a.Rows, b.Cols, a.Data, a.Stride, 1, b.Data, b.Stride, a.Cols)
	for i, v := range c.Data {
		c.Data[i] = 0 - v
	}
	return c
}
