//go:build linux && cgo

package host

// matrix is a dense matrix, row by row.
type matrix struct {
	rows, cols int
	a          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

func (m matrix) set(i, j int, x float64) { m.a[i*m.cols+j] = x }
func (m matrix) row(i int) []float64     { return m.a[i*m.cols:][:m.cols] }

func (m matrix) transposed() matrix {
	t := newMatrix(m.cols, m.rows)
	for i := range m.rows {
		for j, x := range m.row(i) {
			t.set(j, i, x)
		}
	}
	return t
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
