//go:build linux && cgo

package host

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// maxSweeps bounds Jacobi's method, which needs about ten.
const maxSweeps = 60

// jacobi returns the eigenvalues of a symmetric matrix, of which the lower
// triangle counts, in ascending order, and the eigenvectors in its columns. It
// turns pairs of rows until nothing is left beside the diagonal.
func jacobi(m matrix) ([]float64, matrix, error) {
	n := m.rows
	a, q := m.clone(), identity(n, n)
	for i := range n {
		for j := range i {
			a.set(j, i, a.at(i, j))
		}
	}
	tiny := 0x1p-53 * math.Sqrt(dot(a.a, a.a)/float64(max(n, 1)))
	for sweep := 0; ; sweep++ {
		turned := false
		for i := range n {
			for j := range i {
				x := a.at(i, j)
				if math.Abs(x) <= tiny {
					continue
				}
				turned = true
				c, s := rotation(a.at(i, i), a.at(j, j), x)
				rotateColumns(a, i, j, c, s)
				rotateRows(a, i, j, c, s)
				rotateColumns(q, i, j, c, s)
				a.set(i, j, 0)
				a.set(j, i, 0)
			}
		}
		if !turned {
			break
		}
		if sweep == maxSweeps {
			return nil, q, fmt.Errorf("%w: the eigenvalues of a matrix do not settle", errUnimplemented)
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(a.at(i, i), a.at(j, j)) })
	vals, vecs := make([]float64, n), newMatrix(n, n)
	for to, from := range order {
		vals[to] = a.at(from, from)
		for i := range n {
			vecs.set(i, to, q.at(i, from))
		}
	}
	return vals, vecs, nil
}

// rotation returns the cosine and sine of the turn that makes the symmetric
// matrix (x o; o y) diagonal.
func rotation(x, y, o float64) (c, s float64) {
	theta := (y - x) / (2 * o)
	t := 1 / (math.Abs(theta) + math.Hypot(theta, 1))
	if theta < 0 {
		t = -t
	}
	c = 1 / math.Hypot(t, 1)
	return c, t * c
}

func rotateColumns(m matrix, i, j int, c, s float64) {
	for r := range m.rows {
		x, y := m.at(r, i), m.at(r, j)
		m.set(r, i, c*x-s*y)
		m.set(r, j, s*x+c*y)
	}
}

func rotateRows(m matrix, i, j int, c, s float64) {
	for r := range m.cols {
		x, y := m.at(i, r), m.at(j, r)
		m.set(i, r, c*x-s*y)
		m.set(j, r, s*x+c*y)
	}
}

// linalgEigh returns the eigenvalues and eigenvectors of symmetric matrices. The
// sign of each vector is arbitrary.
func linalgEigh(v values) ([]*tensor, error) {
	t, b, err := square(v, "A")
	if err != nil {
		return nil, err
	}
	vals, vecs := array[float64]{nil, append(slices.Clone(b.dims), b.rows)}, make([]matrix, len(b.all))
	for i, m := range b.all {
		if v.text("UPLO", "L") == "U" {
			m = m.transposed()
		}
		var x []float64
		if x, vecs[i], err = jacobi(m); err != nil {
			return nil, err
		}
		vals.data = append(vals.data, x...)
	}
	w := func() (*tensor, error) { return save(array[float64]{nil, []int{0}}, dtypeOf(t)) }
	if v.bool("compute_v", true) {
		w = func() (*tensor, error) { return saveMatrices(b.dims, b.rows, b.rows, vecs, dtypeOf(t)) }
	}
	return several(func() (*tensor, error) { return save(vals, dtypeOf(t)) }, w)
}

// singular returns the singular values of a matrix that is not wider than high,
// in descending order, with the vectors: u·diag(s)·vᵀ, u having as many columns as
// m, which are zero where the value is. It turns pairs of columns until all are orthogonal.
func singular(m matrix) (u matrix, s []float64, v matrix, err error) {
	a, w, n := m.transposed(), identity(m.cols, m.cols), m.cols // the rows of a are the columns
	tiny := 0x1p-104 * dot(a.a, a.a)                            // columns that are nothing but rounding
	for sweep := 0; ; sweep++ {
		turned := false
		for i := range n {
			for j := range i {
				x, y, o := dot(a.row(i), a.row(i)), dot(a.row(j), a.row(j)), dot(a.row(i), a.row(j))
				if math.Abs(o) <= 0x1p-52*math.Sqrt(x*y) || min(x, y) <= tiny {
					continue
				}
				turned = true
				c, t := rotation(x, y, o)
				rotateRows(a, i, j, c, t)
				rotateRows(w, i, j, c, t)
			}
		}
		if !turned {
			break
		}
		if sweep == maxSweeps {
			return u, nil, v, fmt.Errorf("%w: the singular values of a matrix do not settle", errUnimplemented)
		}
	}
	norms, order := make([]float64, n), make([]int, n)
	for i := range order {
		norms[i], order[i] = math.Sqrt(dot(a.row(i), a.row(i))), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(norms[j], norms[i]) })
	s, u, v = make([]float64, n), newMatrix(m.rows, n), newMatrix(n, n)
	for to, from := range order {
		s[to] = norms[from]
		for i, x := range a.row(from) {
			if s[to]*s[to] > tiny*float64(n) {
				u.set(i, to, x/s[to])
			}
		}
		for i, x := range w.row(from) {
			v.set(i, to, x)
		}
	}
	return u, s, v, nil
}

// completed returns an orthogonal matrix of k columns whose first ones are those
// of m, which are orthogonal or zero.
func completed(m matrix, k int) matrix {
	out := newMatrix(m.rows, k)
	have := make([][]float64, 0, k)
	orthogonal := func(x []float64) bool {
		for range 2 { // once more for what rounding leaves
			for _, y := range have {
				f := dot(x, y)
				for i := range x {
					x[i] -= f * y[i]
				}
			}
		}
		norm := math.Sqrt(dot(x, x))
		for i := range x {
			x[i] /= norm
		}
		return norm > 0.01
	}
	t := m.transposed()
	var empty []int
	columns := make([][]float64, k)
	for j := range k {
		if j < m.cols && dot(t.row(j), t.row(j)) > 0.5 {
			columns[j] = t.row(j)
			have = append(have, columns[j])
		} else {
			empty = append(empty, j)
		}
	}
	for axis := 0; len(empty) > 0 && axis < m.rows; axis++ {
		x := make([]float64, m.rows)
		x[axis] = 1
		if orthogonal(x) {
			columns[empty[0]], empty = x, empty[1:]
			have = append(have, x)
		}
	}
	for j, c := range columns {
		for i := range c {
			out.set(i, j, c[i])
		}
	}
	return out
}

// linalgSVD returns the singular values and vectors. The sign of each pair of
// vectors is arbitrary.
func linalgSVD(v values) ([]*tensor, error) {
	t, b, err := matrices(v, "A")
	if err != nil {
		return nil, err
	}
	k, ku, kv := min(b.rows, b.cols), min(b.rows, b.cols), min(b.rows, b.cols)
	if v.bool("full_matrices", false) {
		ku, kv = b.rows, b.cols
	}
	vals := array[float64]{nil, append(slices.Clone(b.dims), k)}
	us, vs := make([]matrix, len(b.all)), make([]matrix, len(b.all))
	for i, m := range b.all {
		var u, w matrix
		var s []float64
		if b.rows >= b.cols {
			u, s, w, err = singular(m)
		} else {
			w, s, u, err = singular(m.transposed())
		}
		if err != nil {
			return nil, err
		}
		vals.data = append(vals.data, s...)
		us[i], vs[i] = completed(u, ku), completed(w, kv).transposed()
	}
	empty := func() (*tensor, error) { return save(array[float64]{nil, []int{0}}, dtypeOf(t)) }
	u, w := empty, empty
	if v.bool("compute_uv", true) {
		u = func() (*tensor, error) { return saveMatrices(b.dims, b.rows, ku, us, dtypeOf(t)) }
		w = func() (*tensor, error) { return saveMatrices(b.dims, kv, b.cols, vs, dtypeOf(t)) }
	}
	return several(u, func() (*tensor, error) { return save(vals, dtypeOf(t)) }, w)
}
