package backendtest

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	makers["linalg_cholesky_ex"] = func(m *maker) {
		m.matrices(true, func(x input) { m.call(fmt.Sprint(x.shape), []input{x}, ir.A("upper", true)) })
	}
	makers["linalg_lu_factor_ex"] = func(m *maker) {
		m.matrices(false, func(x input) { m.call(fmt.Sprint(x.shape), []input{x}) })
	}
	makers["geqrf"] = makers["linalg_lu_factor_ex"]
	makers["_linalg_svd"] = makers["linalg_lu_factor_ex"]
	makers["linalg_matrix_exp"] = func(m *maker) {
		m.matrices(true, func(x input) { m.call(fmt.Sprint(x.shape), []input{x}) })
	}
	makers["linalg_eig"] = makers["linalg_matrix_exp"]
	makers["_linalg_eigh"] = func(m *maker) {
		m.matrices(true, func(x input) { m.call(fmt.Sprint(x.shape), []input{x}, "U") })
	}
	makers["linalg_solve_triangular"] = func(m *maker) {
		m.matrices(true, func(x input) {
			n := x.shape.Dim(-1)
			m.call(fmt.Sprint("left ", x.shape), []input{x, m.random(2, 1, n, 3)}, ir.A("upper", true))
			m.call(fmt.Sprint("right ", x.shape), []input{x, m.random(3, n)}, ir.A("upper", false), ir.A("left", false))
		})
	}
	makers["lu_unpack"] = func(m *maker) {
		for _, s := range [][2]int{{3, 3}, {4, 2}, {2, 4}} {
			pivots := input{ir.MakeShape(ir.I32, 2, min(s[0], s[1])), elements.EncodeInts(ir.I32, []int64{2, 2, 1, 2, 2, 2}[:2*min(s[0], s[1])])}
			m.call(fmt.Sprint(s), []input{m.random(2, s[0], s[1]), pivots})
		}
	}
	makers["linalg_householder_product"] = func(m *maker) { m.call("of two", []input{m.random(2, 5, 3), m.random(2, 2)}) }
	makers["ormqr"] = func(m *maker) {
		m.call("left", []input{m.random(5, 3), m.random(2), m.random(5, 4)})
		m.call("right", []input{m.random(5, 3), m.random(3), m.random(4, 5)}, false, true)
	}
	makers["_fft_line"] = func(m *maker) {
		for _, n := range []int{1, 2, 7, 12, 16} {
			m.add(fmt.Sprint(n), []input{m.random(3, n, 2)}, func(b *ir.Builder, x []ir.Value) []ir.Value {
				z := b.Unary(aten.ViewAsComplex, x[0])
				return []ir.Value{b.Unary(aten.ViewAsReal, b.Call1(m.op, []any{z, true})), b.Unary(aten.ViewAsReal, b.Call1(m.op, []any{z, false}))}
			})
		}
	}
}

// matrices calls f with batches of matrices: symmetric and positive-definite ones, or of any form.
func (m *maker) matrices(definite bool, f func(x input)) {
	if !m.dtype.IsFloat() {
		return
	}
	for _, dims := range [][]int{{1, 1}, {4, 4}, {2, 5, 5}, {0, 3, 3}, {2, 0, 0}, {5, 3}, {2, 3, 6}} {
		x := m.random(dims...)
		n := dims[len(dims)-1]
		if definite && n != dims[len(dims)-2] {
			continue
		}
		if definite && n > 0 {
			v := elements.DecodeFloats(m.dtype, x.data)
			for i := range v {
				row, col := i/n%n, i%n
				if v[i] /= 8; row == col {
					v[i] += float64(2*n + row)
				} else if col > row {
					v[i] = v[i-row*n-col+col*n+row] / 8
				}
			}
			for i := range v { // the lower triangle is the upper one
				if row, col := i/n%n, i%n; col < row {
					v[i] = v[i-row*n-col+col*n+row]
				}
			}
			x.data = elements.EncodeFloats(m.dtype, v)
		}
		f(x)
	}
}
