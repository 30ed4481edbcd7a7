package dense

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// columns is a block of columns of a matrix, from the diagonal on, as rows, so that what is done to a column is done
// to elements that adjoin. Behind the elements of a row are zeros, at least a tile.
type columns struct {
	data, vector []float64
	stride, rows int
}

func newColumns(m *Matrix) *columns {
	c := &columns{stride: strideOf(m.Rows + block)}
	room := m.room.take((block + 1) * c.stride)
	c.data, c.vector = room[:block*c.stride], room[block*c.stride:]
	return c
}

func (c *columns) row(k int) []float64 { return c.data[k*c.stride:][:c.stride] }

// load takes the columns of m from j0 on.
func (c *columns) load(m *Matrix, j0 int) {
	c.rows = m.Rows - j0
	gemm.Transpose(c.data, c.stride, m.at(j0, j0), m.Stride, c.rows, block)
	for k := range block {
		clear(c.row(k)[c.rows:][:block])
	}
	clear(c.vector[c.rows:][:block])
}

func (c *columns) store(m *Matrix, j0 int) {
	gemm.Transpose(m.at(j0, j0), m.Stride, c.data, c.stride, block, c.rows)
}

// pivot returns where the greatest element of row k is, from the one with the row's number on.
func (c *columns) pivot(k int) int {
	x := c.row(k)[k:]
	most := use.greatest(&x[0], (c.rows-k+lanes-1)/lanes)
	if first := math.Abs(x[0]); first == most || first != first {
		return k
	}
	for i, v := range x[:c.rows-k] {
		if math.Abs(v) == most {
			return k + i
		}
	}
	return k
}

// exchange exchanges elements i and p of all rows.
func (c *columns) exchange(i, p int) {
	for at := 0; at < len(c.data); at += c.stride {
		c.data[at+i], c.data[at+p] = c.data[at+p], c.data[at+i]
	}
}

// divide divides the elements of row k behind the one with its number by a number. The vector is then them, with
// zeros in front.
func (c *columns) divide(k int, by float64) {
	from := (k + 1) &^ (lanes - 1)
	if from >= c.rows {
		return
	}
	row, v := c.row(k), c.vector
	if divisible(by) {
		use.quotientsBy(&v[from], &row[from], by, 1/by, (c.rows-from+lanes-1)/lanes)
	} else {
		for i, x := range row[from:c.rows] {
			v[from+i] = x / by
		}
	}
	clear(v[from : k+1])
	copy(row[min(k+1, c.rows):c.rows], v[min(k+1, c.rows):])
}

// eliminate takes from rows k+1 to n-1 the product of the vector with a factor for each, which lie step apart.
func (c *columns) eliminate(k, n int, factors []float64, step int) {
	if k+1 < n {
		from := (k + 1) &^ (lanes - 1)
		subtract(c.data[(k+1)*c.stride+from:], c.stride, n-k-1, c.rows-from, factors, step, 1, c.vector[from:], c.stride, 1)
	}
}

func quotientsByOf(dst, src *float64, by, _ float64, blocks int) {
	to := unsafe.Slice(dst, lanes*blocks)
	for i, v := range unsafe.Slice(src, lanes*blocks) {
		to[i] = v / by
	}
}

// greatestOf returns the size of the greatest of numbers; those that are none don't count.
func greatestOf(x *float64, blocks int) (most float64) {
	for _, v := range unsafe.Slice(x, lanes*blocks) {
		if v = math.Abs(v); v > most {
			most = v
		}
	}
	return most
}

func exchanged(x, y *float64, blocks int) {
	from, to := unsafe.Slice(x, lanes*blocks), unsafe.Slice(y, lanes*blocks)
	for i, v := range from {
		from[i], to[i] = to[i], v
	}
}
