//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// matrix is a dense matrix, row by row.
type matrix struct {
	rows, cols int
	a          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

func (m matrix) at(i, j int) float64     { return m.a[i*m.cols+j] }
func (m matrix) set(i, j int, x float64) { m.a[i*m.cols+j] = x }
func (m matrix) row(i int) []float64     { return m.a[i*m.cols:][:m.cols] }

func (m matrix) clone() matrix {
	return matrix{m.rows, m.cols, append([]float64(nil), m.a...)}
}

func (m matrix) transposed() matrix {
	t := newMatrix(m.cols, m.rows)
	for i := range m.rows {
		for j, x := range m.row(i) {
			t.set(j, i, x)
		}
	}
	return t
}

func identity(rows, cols int) matrix {
	m := newMatrix(rows, cols)
	for i := range min(rows, cols) {
		m.set(i, i, 1)
	}
	return m
}

func multiply(x, y matrix) matrix {
	out := newMatrix(x.rows, y.cols)
	for i := range x.rows {
		to := out.row(i)
		for k, f := range x.row(i) {
			for j, g := range y.row(k) {
				to[j] += f * g
			}
		}
	}
	return out
}

// batch are the matrices in a tensor.
type batch struct {
	dims       []int // of the batch
	rows, cols int
	all        []matrix
}

// matrices reads the matrices of a tensor of real floats.
func matrices(v values, name string) (*tensor, batch, error) {
	t, err := v.tensor(name)
	if err != nil {
		return nil, batch{}, err
	}
	if d := dtypeOf(t); d != ir.F32 && d != ir.F64 {
		return nil, batch{}, fmt.Errorf("%w: matrices of %v", ir.ErrDType, d)
	}
	a, err := load[float64](t)
	if err != nil {
		return nil, batch{}, err
	}
	n := len(a.dims) - 2
	if n < 0 {
		return nil, batch{}, fmt.Errorf("%w: matrices in %v", ir.ErrShape, a.dims)
	}
	b := batch{a.dims[:n], a.dims[n], a.dims[n+1], nil}
	size := b.rows * b.cols
	for i := range product(b.dims) {
		b.all = append(b.all, matrix{b.rows, b.cols, a.data[i*size:][:size]})
	}
	return t, b, nil
}

// square is matrices for those that must be square.
func square(v values, name string) (*tensor, batch, error) {
	t, b, err := matrices(v, name)
	if err == nil && b.rows != b.cols {
		err = fmt.Errorf("%w: %q has matrices of %d×%d, which must be square", ir.ErrShape, name, b.rows, b.cols)
	}
	return t, b, err
}

// batches are two lists of matrices, of which the batches broadcast.
func batches(x, y batch) (dims []int, pairs [][2]matrix, err error) {
	if dims, err = broadcastDims(x.dims, y.dims); err != nil {
		return nil, nil, err
	}
	for i := range product(dims) {
		pairs = append(pairs, [2]matrix{x.all[positionIn(i, dims, x.dims)], y.all[positionIn(i, dims, y.dims)]})
	}
	return dims, pairs, nil
}

func broadcastDims(x, y []int) ([]int, error) {
	n := max(len(x), len(y))
	out := make([]int, n)
	for i := range n {
		a, b := 1, 1
		if k := len(x) - n + i; k >= 0 {
			a = x[k]
		}
		if k := len(y) - n + i; k >= 0 {
			b = y[k]
		}
		if a != b && a != 1 && b != 1 {
			return nil, fmt.Errorf("%w: %v and %v do not broadcast", ir.ErrShape, x, y)
		}
		out[i] = a
		if a == 1 {
			out[i] = b
		}
	}
	return out, nil
}

// positionIn returns which element of an array of dims from is broadcast to
// position i of one of dims.
func positionIn(i int, dims, from []int) int {
	at, step := 0, 1
	for d := len(dims) - 1; d >= 0; d-- {
		if k := len(from) - len(dims) + d; k >= 0 {
			if from[k] > 1 {
				at += i % dims[d] * step
			}
			step *= from[k]
		}
		i /= dims[d]
	}
	return at
}

// saveMatrices makes a tensor of matrices of rows × cols, each column by column.
func saveMatrices(dims []int, rows, cols int, all []matrix, d ir.DType) (*tensor, error) {
	t, err := saveRows(dims, rows, cols, all, d)
	if err != nil {
		return nil, err
	}
	defer release(t)
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	strides := append([]int64(nil), stridesOf(t)...)
	n := len(strides)
	strides[n-2], strides[n-1] = 1, int64(max(rows, 1))
	out, err := newStrided(s, strides)
	if err != nil {
		return nil, err
	}
	if err := copyTensor(out, t); err != nil {
		release(out)
		return nil, err
	}
	return out, nil
}

// saveRows is saveMatrices row by row.
func saveRows(dims []int, rows, cols int, all []matrix, d ir.DType) (*tensor, error) {
	flat := array[float64]{nil, append(append([]int(nil), dims...), rows, cols)}
	flat.data = make([]float64, 0, len(all)*rows*cols)
	for _, m := range all {
		flat.data = append(flat.data, m.a...)
	}
	return save(flat, d)
}

// several calls functions that make one tensor each.
func several(makers ...func() (*tensor, error)) ([]*tensor, error) {
	outs := make([]*tensor, len(makers))
	var err error
	for i, f := range makers {
		if outs[i], err = f(); err != nil {
			return all(err, outs...)
		}
	}
	return outs, nil
}
