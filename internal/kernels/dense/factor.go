package dense

import "math"

// LU makes m its factors L and U with the rows exchanged so that the pivots, the greatest elements left
// in their columns, are on the diagonal: pivots gets for each row the one that it was exchanged with.
// A column without a pivot stays as it is.
func LU(m *Matrix, pivots []int) {
	for j0 := 0; j0 < len(pivots); j0 += block {
		end := min(j0+block, len(pivots))
		for j := j0; j < end; j++ {
			pivots[j] = m.pivot(j)
			if p := m.at(j, j)[0]; p != 0 {
				for i := j + 1; i < m.Rows; i++ {
					m.at(i, j)[0] /= p
				}
				var right [block]float64
				copy(right[j+1-j0:], m.at(j, 0)[j+1:j0+block])
				subtract(tail(m, j+1, j0), m.Stride, m.Rows-j-1, block, tail(m, j+1, j), m.Stride, 1, right[:], block, 1)
			}
		}
		rest := m.Cols - j0 - block
		for i := j0 + 1; i < end && rest > 0; i++ {
			subtract(m.at(i, j0+block), m.Stride, 1, rest, m.at(i, j0), m.Stride, 1, m.at(j0, j0+block), m.Stride, i-j0)
		}
		subtract(tail(m, end, j0+block), m.Stride, m.Rows-end, rest, tail(m, end, j0), m.Stride, 1, tail(m, j0, j0+block), m.Stride, end-j0)
	}
}

// tail returns what begins with an element, nothing for one that is behind the last.
func tail(m *Matrix, i, j int) []float64 { return m.Data[min(i*m.Stride+j, len(m.Data)):] }

// pivot brings the row with the greatest element of column j, from row j on, to row j.
func (m *Matrix) pivot(j int) int {
	p, most := j, math.Abs(m.at(j, j)[0])
	for i := j + 1; i < m.Rows; i++ {
		if v := math.Abs(m.at(i, j)[0]); v > most {
			p, most = i, v
		}
	}
	if p != j {
		x, y := m.row(j), m.row(p)
		for k, v := range x {
			x[k], y[k] = y[k], v
		}
	}
	return p
}

// Cholesky makes the lower triangle of a square m its factor L, and the rest zeros. It returns the order
// of the first leading minor that is not positive, which has no factor, or 0.
func Cholesky(m *Matrix) (order int) {
	order = m.cholesky()
	for i := range m.Rows {
		clear(m.row(i)[i+1:])
	}
	return order
}

func (m *Matrix) cholesky() (order int) {
	across := New(block, m.Rows)
	for j0 := 0; j0 < m.Rows; j0 += block {
		end := min(j0+block, m.Rows)
		for j := j0; j < end; j++ {
			d := m.at(j, j)[0]
			if !(d > 0) {
				return j + 1
			}
			d = math.Sqrt(d)
			m.at(j, j)[0] = d
			for i := j + 1; i < m.Rows; i++ {
				m.at(i, j)[0] /= d
			}
			var right [block]float64
			for i := j + 1; i < end; i++ {
				right[i-j0] = m.at(i, j)[0]
			}
			subtract(tail(m, j+1, j0), m.Stride, m.Rows-j-1, block, tail(m, j+1, j), m.Stride, 1, right[:], block, 1)
		}
		for i := end; i < m.Rows; i++ {
			for k, v := range m.at(i, j0)[:block] {
				across.at(k, i)[0] = v
			}
		}
		const rows = 4 * block // of the triangle at a time
		for i := end; i < m.Rows; i += rows {
			n := min(rows, m.Rows-i)
			subtract(m.at(i, end), m.Stride, n, i+n-end, m.at(i, j0), m.Stride, 1, across.at(0, end), across.Stride, block)
		}
	}
	return 0
}

// Solve makes b the solution x of a·x = b for a triangle of a square a, with ones on the diagonal if
// unit. The rest of a is not read.
func Solve(a, b *Matrix, upper, unit bool) {
	n := a.Rows
	for i0 := 0; i0 < n; i0 += block {
		// Rows first..last-1, which need those before them, or behind them.
		first, last := i0, min(i0+block, n)
		known, from := first, 0
		if upper {
			first, last = max(n-i0-block, 0), n-i0
			known, from = n-last, last
		}
		subtract(b.at(first, 0), b.Stride, last-first, b.Cols, tail(a, first, from), a.Stride, 1, tail(b, from, 0), b.Stride, known)
		for k := range last - first {
			i, from := first+k, first
			if upper {
				i = last - 1 - k
				from = i + 1
			}
			subtract(b.at(i, 0), b.Stride, 1, b.Cols, tail(a, i, from), a.Stride, 1, tail(b, from, 0), b.Stride, k)
			if d := a.at(i, i)[0]; !unit {
				for j := range b.row(i) {
					b.at(i, j)[0] /= d
				}
			}
		}
	}
}

// Product returns a·b.
func Product(a, b *Matrix) *Matrix {
	c := New(a.Rows, b.Cols)
	if a.Cols > 0 && len(c.Data) > 0 {
		subtract(c.Data, c.Stride, a.Rows, b.Cols, a.Data, a.Stride, 1, b.Data, b.Stride, a.Cols)
	}
	for i, v := range c.Data {
		c.Data[i] = 0 - v
	}
	return c
}
