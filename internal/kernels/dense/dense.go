// Package dense factors dense matrices of float64 and solves with the factors, by blocks: all but a
// little is products, whose elements are added in one order by all kernels.
package dense

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// block is the columns of a block, and what the room of rows is rounded up to.
const block = 16

// Matrix has rows of Stride elements, of which the first Cols are its own and the others room.
type Matrix struct {
	Data               []float64
	Rows, Cols, Stride int
	room               *Room // of what is computed with it
}

// To writes the elements to x, one row after the other.
func (m *Matrix) To(x []float64) {
	for i := range m.Rows {
		copy(x[i*m.Cols:(i+1)*m.Cols], m.row(i))
	}
}

// ToSingles is To in float32.
func (m *Matrix) ToSingles(x []float32) {
	for i := range m.Rows {
		Narrow(x[i*m.Cols:(i+1)*m.Cols], m.row(i))
	}
}

// Transposed returns a copy with rows and columns exchanged.
func (m *Matrix) Transposed() *Matrix {
	t := m.room.New(m.Cols, m.Rows)
	gemm.Transpose(t.Data, t.Stride, m.Data, m.Stride, m.Rows, m.Cols)
	return t
}

func (m *Matrix) row(i int) []float64 { return m.Data[i*m.Stride:][:m.Cols] }

// Row returns the elements of a row.
func (m *Matrix) Row(i int) []float64 { return m.row(i) }

// SwapRows exchanges two rows.
func (m *Matrix) SwapRows(i, j int) {
	if i != j {
		SwapRows(m.Data, m.Stride, i, j)
	}
}

// at returns what begins with an element.
func (m *Matrix) at(i, j int) []float64 { return m.Data[i*m.Stride+j:] }

// kernels is a set of kernels of one instruction set. Its functions are told apart where they are called, since memory
// that variables of functions are called with is allocated each time.
type kernels int

// use is what the processor can run; tests change it.
var use = available()[0]

func subtractRows(c *float64, ldc int, a *float64, row, col int, b *float64, ldb, k, rows, tiles int) {
	n := 8 * tiles
	dst, x := unsafe.Slice(c, (rows-1)*ldc+n), unsafe.Slice(b, (k-1)*ldb+n)
	factors := unsafe.Slice(a, (rows-1)*row+(k-1)*col+1)
	for i := range rows {
		to := dst[i*ldc:][:n]
		for p := range k {
			f := -factors[i*row+p*col]
			for j, v := range x[p*ldb:][:n] {
				to[j] = math.FMA(f, v, to[j])
			}
		}
	}
}

// subtract takes from rows of c, which lie ldc apart, the product of a matrix a of k columns with k rows
// of b. Element i, p of a lies at i·row+p·col. Of the rows of c and b as many elements are treated as
// make whole tiles, at least cols.
func subtract(c []float64, ldc, rows, cols int, a []float64, row, col int, b []float64, ldb, k int) {
	if rows <= 0 || cols <= 0 || k <= 0 {
		return
	}
	tiles := (cols + use.cols() - 1) / use.cols()
	n := tiles * use.cols()
	_, _, _ = c[(rows-1)*ldc+n-1], a[(rows-1)*row+(k-1)*col], b[(k-1)*ldb+n-1]
	use.subtract(&c[0], ldc, &a[0], row, col, &b[0], ldb, k, rows, tiles)
}

// Mirror makes a square symmetric by what is above its diagonal, or below it.
func (m *Matrix) Mirror(upper bool) {
	for i := range m.Rows {
		for j, v := range m.row(i)[:i] {
			if other := &m.Data[j*m.Stride+i]; upper {
				m.Data[i*m.Stride+j] = *other
			} else {
				*other = v
			}
		}
	}
}
