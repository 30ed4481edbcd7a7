//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// linalgEvals are the ops on matrices. They compute in float64, matrix by matrix,
// and mostly return their matrices column by column, as LAPACK does: compiled
// models rely on the strides that PyTorch has.
var linalgEvals = map[string]evalFunc{
	"cholesky_solve":   choleskySolve,
	"cholesky_inverse": choleskyInverse,
	"triangular_solve": triangularSolve,
	"geqrf":            geqrf,
	"ormqr":            ormqr,
	"lu_unpack":        luUnpack,
}

// solveTriangular solves a·x = b in place of b, where a is triangular.
func solveTriangular(a, b matrix, upper, unit bool) {
	n := a.rows
	for k := range n {
		i := k
		if upper {
			i = n - 1 - k
		}
		row := b.row(i)
		lo, hi := 0, i
		if upper {
			lo, hi = i+1, n
		}
		for j := lo; j < hi; j++ {
			f := a.at(i, j)
			if f == 0 {
				continue
			}
			for c, x := range b.row(j) {
				row[c] -= f * x
			}
		}
		if !unit {
			for c := range row {
				row[c] /= a.at(i, i)
			}
		}
	}
}

// solveFactored solves with both triangles of a Cholesky factor.
func solveFactored(factor, b matrix, upper bool) matrix {
	x := b.clone()
	if upper {
		solveTriangular(factor.transposed(), x, false, false)
		solveTriangular(factor, x, true, false)
	} else {
		solveTriangular(factor, x, false, false)
		solveTriangular(factor.transposed(), x, true, false)
	}
	return x
}

// twoBatches reads the matrices of two arguments, the second of which is square,
// with as many rows.
func twoBatches(v values, x, a string) (t *tensor, dims []int, pairs [][2]matrix, err error) {
	t, b, err := matrices(v, x)
	if err != nil {
		return nil, nil, nil, err
	}
	_, f, err := square(v, a)
	if err != nil {
		return nil, nil, nil, err
	}
	if f.rows != b.rows {
		return nil, nil, nil, fmt.Errorf("%w: matrices of %d×%d and right sides of %d×%d", ir.ErrShape, f.rows, f.cols, b.rows, b.cols)
	}
	dims, pairs, err = batches(b, f)
	return t, dims, pairs, err
}

func choleskySolve(v values) ([]*tensor, error) {
	t, dims, pairs, err := twoBatches(v, "self", "input2")
	if err != nil {
		return nil, err
	}
	var out []matrix
	for _, p := range pairs {
		out = append(out, solveFactored(p[1], p[0], v.bool("upper", false)))
	}
	s := sizesOf(t)
	return one(saveMatrices(dims, int(s[len(s)-2]), int(s[len(s)-1]), out, dtypeOf(t)))
}

func choleskyInverse(v values) ([]*tensor, error) {
	t, b, err := square(v, "self")
	if err != nil {
		return nil, err
	}
	for i, m := range b.all {
		b.all[i] = solveFactored(m, identity(b.rows, b.rows), v.bool("upper", false))
	}
	return one(saveMatrices(b.dims, b.rows, b.cols, b.all, dtypeOf(t)))
}

// triangularSolve returns the solutions and a copy of the matrices.
func triangularSolve(v values) ([]*tensor, error) {
	t, dims, pairs, err := twoBatches(v, "self", "A")
	if err != nil {
		return nil, err
	}
	upper, turned, unit := v.bool("upper", true), v.bool("transpose", false), v.bool("unitriangular", false)
	var xs, as []matrix
	for _, p := range pairs {
		x, a := p[0].clone(), p[1]
		if turned {
			a = a.transposed()
		}
		solveTriangular(a, x, upper != turned, unit)
		xs, as = append(xs, x), append(as, p[1])
	}
	s := sizesOf(t)
	rows, cols := int(s[len(s)-2]), int(s[len(s)-1])
	x, err := saveMatrices(dims, rows, cols, xs, dtypeOf(t))
	if err != nil {
		return nil, err
	}
	a, err := saveMatrices(dims, rows, rows, as, dtypeOf(t))
	return all(err, x, a)
}

// householder brings m to the form of LAPACK's geqrf: R above, and below it the
// vectors of the reflections, of which it returns the factors.
func householder(m matrix) []float64 {
	tau := make([]float64, min(m.rows, m.cols))
	for k := range tau {
		var norm float64
		for i := k + 1; i < m.rows; i++ {
			norm = math.Hypot(norm, m.at(i, k))
		}
		alpha := m.at(k, k)
		if norm == 0 {
			continue // nothing to reflect
		}
		beta := -math.Copysign(math.Hypot(alpha, norm), alpha)
		tau[k] = (beta - alpha) / beta
		for i := k + 1; i < m.rows; i++ {
			m.set(i, k, m.at(i, k)/(alpha-beta))
		}
		m.set(k, k, beta)
		reflect(m, k, tau[k], m, k+1)
	}
	return tau
}

// reflect applies reflection k of qr to the columns of m from column on.
func reflect(qr matrix, k int, tau float64, m matrix, column int) {
	if tau == 0 {
		return
	}
	for j := column; j < m.cols; j++ {
		sum := m.at(k, j)
		for i := k + 1; i < m.rows; i++ {
			sum += qr.at(i, k) * m.at(i, j)
		}
		sum *= tau
		m.set(k, j, m.at(k, j)-sum)
		for i := k + 1; i < m.rows; i++ {
			m.set(i, j, m.at(i, j)-sum*qr.at(i, k))
		}
	}
}

// applyQ multiplies m from the left by Q, or by its transpose, in place.
func applyQ(qr matrix, tau []float64, m matrix, turned bool) {
	for i := range tau {
		k := len(tau) - 1 - i
		if turned {
			k = i
		}
		reflect(qr, k, tau[k], m, 0)
	}
}

func geqrf(v values) ([]*tensor, error) {
	t, b, err := matrices(v, "self")
	if err != nil {
		return nil, err
	}
	k := min(b.rows, b.cols)
	taus := array[float64]{nil, append(append([]int(nil), b.dims...), k)}
	for _, m := range b.all {
		taus.data = append(taus.data, householder(m)...)
	}
	a, err := saveMatrices(b.dims, b.rows, b.cols, b.all, dtypeOf(t))
	if err != nil {
		return nil, err
	}
	tau, err := save(taus, dtypeOf(t))
	return all(err, a, tau)
}

// ormqr multiplies by the Q that geqrf has found.
func ormqr(v values) ([]*tensor, error) {
	_, qr, err := matrices(v, "self")
	if err != nil {
		return nil, err
	}
	_, taus, err := argument[float64](v, "input2")
	if err != nil {
		return nil, err
	}
	t, c, err := matrices(v, "input3")
	if err != nil {
		return nil, err
	}
	left, turned := v.bool("left", true), v.bool("transpose", false)
	k := 0
	if n := len(taus.dims); n > 0 {
		k = taus.dims[n-1]
	}
	side := c.rows
	if !left {
		side = c.cols
	}
	if len(qr.all) != len(c.all) || len(taus.data) != k*len(c.all) || k > qr.cols || k > qr.rows || qr.rows != side {
		return nil, fmt.Errorf("%w: %d×%d by %d reflections of %d×%d", ir.ErrShape, c.rows, c.cols, k, qr.rows, qr.cols)
	}
	for i, m := range c.all {
		tau := taus.data[i*k:][:k]
		if left {
			applyQ(qr.all[i], tau, m, turned)
			continue
		}
		m = m.transposed() // C·Q is (Qᵀ·Cᵀ)ᵀ
		applyQ(qr.all[i], tau, m, !turned)
		c.all[i] = m.transposed()
	}
	return one(saveMatrices(c.dims, c.rows, c.cols, c.all, dtypeOf(t)))
}

// luUnpack returns the permutation and both triangles of a factored matrix.
func luUnpack(v values) ([]*tensor, error) {
	t, b, err := matrices(v, "LU_data")
	if err != nil {
		return nil, err
	}
	_, pivots, err := argument[int64](v, "LU_pivots")
	if err != nil {
		return nil, err
	}
	k := min(b.rows, b.cols)
	if len(pivots.data) != k*len(b.all) {
		return nil, fmt.Errorf("%w: %d pivots for %d matrices of %d×%d", ir.ErrShape, len(pivots.data), len(b.all), b.rows, b.cols)
	}
	ps, ls, us := make([]matrix, len(b.all)), make([]matrix, len(b.all)), make([]matrix, len(b.all))
	for i, m := range b.all {
		if ps[i], err = permutation(pivots.data[i*k:][:k], b.rows); err != nil {
			return nil, err
		}
		ls[i], us[i] = triangles(m)
	}
	empty := func() (*tensor, error) { return save(array[float64]{nil, []int{0}}, dtypeOf(t)) }
	p, l, u := empty, empty, empty
	if v.bool("unpack_pivots", true) {
		p = func() (*tensor, error) { return saveRows(b.dims, b.rows, b.rows, ps, dtypeOf(t)) }
	}
	if v.bool("unpack_data", true) {
		l = func() (*tensor, error) { return saveRows(b.dims, b.rows, k, ls, dtypeOf(t)) }
		u = func() (*tensor, error) { return saveRows(b.dims, k, b.cols, us, dtypeOf(t)) }
	}
	return several(p, l, u)
}

// permutation is the matrix P of P·L·U for the exchanges of rows, numbered from
// one.
func permutation(pivots []int64, n int) (matrix, error) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i, p := range pivots {
		if p < 1 || p > int64(n) {
			return matrix{}, fmt.Errorf("%w: pivot %d of %d rows", ir.ErrArg, p, n)
		}
		order[i], order[p-1] = order[p-1], order[i]
	}
	m := newMatrix(n, n)
	for i, k := range order {
		m.set(k, i, 1)
	}
	return m, nil
}

// triangles splits a factored matrix.
func triangles(m matrix) (l, u matrix) {
	k := min(m.rows, m.cols)
	l, u = identity(m.rows, k), newMatrix(k, m.cols)
	for i := range m.rows {
		for j := range m.cols {
			if i > j {
				l.set(i, j, m.at(i, j))
			} else if i < k {
				u.set(i, j, m.at(i, j))
			}
		}
	}
	return l, u
}
