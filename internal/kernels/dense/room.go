package dense

import (
	"math/bits"
	"sync"

	"github.com/loris-ml/loris/internal/parallel"
)

// rooms are matrices that were freed, by the logarithm of their size: clearing new memory and collecting
// it takes as long as factoring some hundred rows.
var rooms [64]sync.Pool

// Borrow is From of a matrix in memory that Free takes back, whose large products a Limiter bounds the goroutines of.
func Borrow(x []float64, rows, cols int, l *parallel.Limiter) *Matrix {
	stride := start(cols + block - 1)
	n := rows * stride
	class := bits.Len(uint(n))
	m, _ := rooms[class].Get().(*Matrix)
	if m == nil {
		m = &Matrix{Data: make([]float64, 1<<class)}
	}
	m.Data, m.Rows, m.Cols, m.Stride, m.Limiter = m.Data[:n], rows, cols, stride, l
	for i := range rows {
		row := m.Data[i*stride:][:stride]
		copy(row, x[i*cols:(i+1)*cols])
		clear(row[cols:])
	}
	return m
}

// Free gives the memory of a matrix that Borrow made to later ones. Nothing may use it any more.
func (m *Matrix) Free() {
	class := bits.Len(uint(len(m.Data)))
	m.Data, m.Limiter = m.Data[:cap(m.Data)], nil
	rooms[class].Put(m)
}
