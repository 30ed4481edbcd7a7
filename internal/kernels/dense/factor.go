package dense

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// LU makes m its factors L and U with the rows exchanged so that the pivots, the greatest elements left
// in their columns, are on the diagonal: pivots gets for each row the one that it was exchanged with.
// A column without a pivot stays as it is.
func LU(m *Matrix, pivots []int) {
	blocks := (len(pivots) + block - 1) / block
	if blocks > 0 {
		m.factor(newColumns(m), pivots, 0, blocks)
	}
	m.solveUnit(0, len(pivots), blocks*block, m.Cols-blocks*block)
}

// factor is LU of some blocks of columns: of their left half, and of the right less its product.
func (m *Matrix) factor(c *columns, pivots []int, first, last int) {
	if last-first == 1 {
		m.factorBlock(c, pivots, first*block)
		return
	}
	middle := (first + last) / 2
	m.factor(c, pivots, first, middle)
	j0, j, end := first*block, middle*block, last*block
	m.solveUnit(j0, j, j, end-j)
	m.minus(j, j, m.Rows-j, end-j, tail(m, j, j0), m.Stride, 1, tail(m, j0, j), m.Stride, j-j0)
	m.factor(c, pivots, middle, last)
}

// factorBlock is LU of block columns from j0 on.
func (m *Matrix) factorBlock(c *columns, pivots []int, j0 int) {
	c.load(m, j0)
	for k := range min(block, len(pivots)-j0) {
		p := c.pivot(k)
		if pivots[j0+k] = j0 + p; p != k {
			c.exchange(k, p)
			m.SwapRows(j0+k, j0+p)
		}
		if d := c.row(k)[k]; d != 0 {
			c.divide(k, d)
			c.eliminate(k, block, c.data[min(k+1, block-1)*c.stride+k:], c.stride)
		}
	}
	c.store(m, j0)
}

// solveUnit solves with the lower triangle of rows first to last-1 and ones on the diagonal for so many columns
// from col on.
func (m *Matrix) solveUnit(first, last, col, cols int) {
	if cols <= 0 {
		return
	}
	if last-first > block {
		middle := first + roundedUp((last-first)/2)
		m.solveUnit(first, middle, col, cols)
		m.minus(middle, col, last-middle, cols, m.at(middle, first), m.Stride, 1, m.at(first, col), m.Stride, middle-first)
		m.solveUnit(middle, last, col, cols)
		return
	}
	var t triangle
	t.set(m.Data, first*(m.Stride+1), m.Stride, 1, last-first, true)
	t.solve(m.Data, first*m.Stride+col, m.Stride, last-first, cols)
}

// tail returns what begins with an element, nothing for one that is behind the last.
func tail(m *Matrix, i, j int) []float64 { return m.Data[min(i*m.Stride+j, len(m.Data)):] }

// Cholesky makes the lower triangle of a square m its factor L, and the rest zeros. It returns the order
// of the first leading minor that is not positive, which has no factor, or 0.
func Cholesky(m *Matrix) (order int) {
	order = m.cholesky()
	for i := range m.Rows {
		clear(m.Data[i*m.Stride+i+1 : (i+1)*m.Stride])
	}
	return order
}

func (m *Matrix) cholesky() (order int) {
	if m.Rows == 0 {
		return 0
	}
	across := m.room.zeros((m.Rows + 2*block) / 2 * m.Stride) // the left half of the columns at most, as rows
	return m.choleskyOf(newColumns(m), across, 0, (m.Rows+block-1)/block)
}

// choleskyOf factors some blocks of columns: their left half, and the right less its product.
func (m *Matrix) choleskyOf(c *columns, across []float64, first, last int) (order int) {
	if last-first == 1 {
		return m.choleskyBlock(c, first*block)
	}
	middle := (first + last) / 2
	if order = m.choleskyOf(c, across, first, middle); order != 0 {
		return order
	}
	j0, j, end := first*block, middle*block, min(last*block, m.Rows)
	depth, stride := j-j0, start(end-j+block-1)
	gemm.Transpose(across, stride, m.at(j, j0), m.Stride, end-j, depth)
	const rows = 4 * block // of the triangle at a time
	for i := j; i < end; i += rows {
		n := min(rows, end-i)
		m.minus(i, j, n, i+n-j, m.at(i, j0), m.Stride, 1, across, stride, depth)
	}
	m.minus(end, j, m.Rows-end, end-j, tail(m, end, j0), m.Stride, 1, across, stride, depth)
	return m.choleskyOf(c, across, middle, last)
}

// choleskyBlock factors block columns from j0 on.
func (m *Matrix) choleskyBlock(c *columns, j0 int) (order int) {
	c.load(m, j0)
	n := min(block, m.Rows-j0)
	for k := range n {
		d := c.row(k)[k]
		if !(d > 0) {
			order = j0 + k + 1
			break
		}
		d = math.Sqrt(d)
		c.row(k)[k] = d
		c.divide(k, d)
		c.eliminate(k, n, c.vector[k+1:], 1)
	}
	c.store(m, j0)
	return order
}
