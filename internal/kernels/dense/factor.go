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
		m.factor(pivots, 0, blocks)
	}
	m.solveUnit(0, len(pivots), blocks*block, m.Cols-blocks*block)
}

// factor is LU of some blocks of columns: of their left half, and of the right less its product.
func (m *Matrix) factor(pivots []int, first, last int) {
	if last-first == 1 {
		m.factorBlock(pivots, first*block)
		return
	}
	middle := (first + last) / 2
	m.factor(pivots, first, middle)
	j0, j, end := first*block, middle*block, last*block
	m.solveUnit(j0, j, j, end-j)
	m.minus(j, j, m.Rows-j, end-j, tail(m, j, j0), m.Stride, 1, tail(m, j0, j), m.Stride, j-j0)
	m.factor(pivots, middle, last)
}

// factorBlock is LU of block columns from j0 on.
func (m *Matrix) factorBlock(pivots []int, j0 int) {
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
	for i := first + 1; i < last; i++ {
		subtract(m.at(i, col), m.Stride, 1, cols, m.at(i, first), m.Stride, 1, m.at(first, col), m.Stride, i-first)
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
		clear(m.Data[i*m.Stride+i+1 : (i+1)*m.Stride])
	}
	return order
}

func (m *Matrix) cholesky() (order int) {
	if m.Rows == 0 {
		return 0
	}
	across := m.room.zeros((m.Rows + 2*block) / 2 * m.Stride) // the left half of the columns at most, as rows
	return m.choleskyOf(across, 0, (m.Rows+block-1)/block)
}

// choleskyOf factors some blocks of columns: their left half, and the right less its product.
func (m *Matrix) choleskyOf(across []float64, first, last int) (order int) {
	if last-first == 1 {
		return m.choleskyBlock(first * block)
	}
	middle := (first + last) / 2
	if order = m.choleskyOf(across, first, middle); order != 0 {
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
	return m.choleskyOf(across, middle, last)
}

// choleskyBlock factors block columns from j0 on.
func (m *Matrix) choleskyBlock(j0 int) (order int) {
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
	return 0
}

// Solve makes b the solution x of a·x = b for a triangle of a square a, with ones on the diagonal if
// unit. The rest of a is not read.
func Solve(a, b *Matrix, upper, unit bool) { solveRows(a, b, 0, a.Rows, upper, unit) }

// solveRows solves for rows first to last-1, from which the products with the others are taken already.
func solveRows(a, b *Matrix, first, last int, upper, unit bool) {
	if last-first > block {
		middle := first + roundedUp((last-first)/2)
		if upper {
			solveRows(a, b, middle, last, upper, unit)
			b.minus(first, 0, middle-first, b.Cols, a.at(first, middle), a.Stride, 1, b.at(middle, 0), b.Stride, last-middle)
			solveRows(a, b, first, middle, upper, unit)
			return
		}
		solveRows(a, b, first, middle, upper, unit)
		b.minus(middle, 0, last-middle, b.Cols, a.at(middle, first), a.Stride, 1, b.at(first, 0), b.Stride, middle-first)
		solveRows(a, b, middle, last, upper, unit)
		return
	}
	for k := range last - first {
		i, from := first+k, first
		if upper {
			i = last - 1 - k
			from = i + 1
		}
		subtract(b.at(i, 0), b.Stride, 1, b.Cols, tail(a, i, from), a.Stride, 1, tail(b, from, 0), b.Stride, k)
		if d := a.at(i, i)[0]; !unit {
			row := b.row(i)
			for j := range row {
				row[j] /= d
			}
		}
	}
}
