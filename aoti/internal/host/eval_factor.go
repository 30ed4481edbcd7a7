//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loris-ml/loris/ir"
)

// factorEvals are the ops of torch.linalg, which libraries call by name.
var factorEvals = map[string]evalFunc{
	"linalg_inv_ex":              linalgInverse,
	"_linalg_det":                linalgDet,
	"_linalg_slogdet":            linalgLogDet,
	"linalg_lu_factor_ex":        linalgFactor,
	"linalg_lu":                  linalgLU,
	"linalg_lu_solve":            linalgLUSolve,
	"_linalg_solve_ex":           linalgSolve,
	"linalg_solve_triangular":    linalgTriangular,
	"linalg_cholesky_ex":         linalgCholesky,
	"linalg_qr":                  linalgQR,
	"linalg_householder_product": householderProduct,
	"_linalg_eigh":               linalgEigh,
	"_linalg_svd":                linalgSVD,
	"_linalg_check_errors":       checkErrors,
}

// errSingular says that a matrix has no inverse, or no factors of the kind that
// was asked for.
var errSingular = errors.New("the matrix is singular, or not positive definite")

// factored is a matrix as the product of a lower and an upper triangle, which
// share its place, after exchanges of rows.
type factored struct {
	matrix
	pivots []int64 // with which row each was exchanged, from one
	sign   float64
	info   int64 // the first column without a pivot, from one; 0 for none
}

func factorLU(m matrix) factored {
	f := factored{matrix: m.clone(), sign: 1}
	for k := range min(m.rows, m.cols) {
		best := k
		for i := k + 1; i < m.rows; i++ {
			if math.Abs(f.at(i, k)) > math.Abs(f.at(best, k)) {
				best = i
			}
		}
		f.pivots = append(f.pivots, int64(best+1))
		if best != k {
			f.sign = -f.sign
			for j, x := range f.row(k) {
				f.set(k, j, f.at(best, j))
				f.set(best, j, x)
			}
		}
		if f.at(k, k) == 0 {
			if f.info == 0 {
				f.info = int64(k + 1)
			}
			continue
		}
		for i := k + 1; i < m.rows; i++ {
			by := f.at(i, k) / f.at(k, k)
			f.set(i, k, by)
			for j := k + 1; j < m.cols; j++ {
				f.set(i, j, f.at(i, j)-by*f.at(k, j))
			}
		}
	}
	return f
}

// solve returns x of m·x = b.
func (f *factored) solve(b matrix) matrix {
	x := b.clone()
	for i, p := range f.pivots {
		if k := int(p - 1); k != i {
			for j, y := range x.row(i) {
				x.set(i, j, x.at(k, j))
				x.set(k, j, y)
			}
		}
	}
	solveTriangular(f.matrix, x, false, true)
	solveTriangular(f.matrix, x, true, false)
	return x
}

// diagonal returns the sign and the logarithm of the determinant.
func (f *factored) diagonal() (sign, log float64) {
	sign = f.sign
	for i := range f.rows {
		d := f.at(i, i)
		log += math.Log(math.Abs(d))
		if d < 0 {
			sign = -sign
		} else if d == 0 {
			sign = 0
		}
	}
	return sign, log
}

// factoredBatch factors the matrices of an argument.
func factoredBatch(v values, name string) (*tensor, batch, []factored, error) {
	t, b, err := matrices(v, name)
	if err != nil {
		return nil, b, nil, err
	}
	fs := make([]factored, len(b.all))
	for i, m := range b.all {
		fs[i] = factorLU(m)
	}
	return t, b, fs, nil
}

// tails make the results that come after others: the factors, the pivots and
// whether all went well.
func tails(b batch, fs []factored, d ir.DType) (lu, pivots, info func() (*tensor, error)) {
	var all []matrix
	var exchanged, infos []int64
	for _, f := range fs {
		all, exchanged, infos = append(all, f.matrix), append(exchanged, f.pivots...), append(infos, f.info)
	}
	lu = func() (*tensor, error) { return saveMatrices(b.dims, b.rows, b.cols, all, d) }
	pivots = func() (*tensor, error) {
		return save(array[int64]{exchanged, append(slices.Clone(b.dims), min(b.rows, b.cols))}, ir.I32)
	}
	info = func() (*tensor, error) { return save(array[int64]{infos, b.dims}, ir.I32) }
	return lu, pivots, info
}

// checked returns errSingular if a factorisation failed and the op is to say so.
func checked(v values, fs []factored) error {
	if v.bool("check_errors", false) {
		for i, f := range fs {
			if f.info != 0 {
				return fmt.Errorf("%w: matrix %d, column %d", errSingular, i, f.info)
			}
		}
	}
	return nil
}

func checkErrors(v values) ([]*tensor, error) {
	_, info, err := argument[int64](v, "info")
	if err != nil {
		return nil, err
	}
	for i, x := range info.data {
		if x != 0 {
			return nil, fmt.Errorf("%s: %w: matrix %d, column %d", v.text("api_name", "linalg"), errSingular, i, x)
		}
	}
	return nil, nil
}

// squareBatch is factoredBatch for matrices that must be square.
func squareBatch(v values, name string) (*tensor, batch, []factored, error) {
	t, b, fs, err := factoredBatch(v, name)
	if err == nil && b.rows != b.cols {
		err = fmt.Errorf("%w: matrices of %d×%d, which must be square", ir.ErrShape, b.rows, b.cols)
	}
	if err == nil {
		err = checked(v, fs)
	}
	return t, b, fs, err
}

func linalgInverse(v values) ([]*tensor, error) {
	t, b, fs, err := squareBatch(v, "A")
	if err != nil {
		return nil, err
	}
	all := make([]matrix, len(fs))
	for i := range fs {
		all[i] = fs[i].solve(identity(b.rows, b.rows))
	}
	_, _, info := tails(b, fs, dtypeOf(t))
	return several(func() (*tensor, error) { return saveMatrices(b.dims, b.rows, b.cols, all, dtypeOf(t)) }, info)
}

// determinants is squareBatch for determinants: PyTorch factors the transpose of
// matrices that lie row by row.
func determinants(v values) (*tensor, batch, []factored, error) {
	t, b, fs, err := squareBatch(v, "A")
	if err == nil && bool(C.lori_tensor_dense(t)) {
		for i, m := range b.all {
			fs[i] = factorLU(m.transposed())
		}
	}
	return t, b, fs, err
}

func linalgDet(v values) ([]*tensor, error) {
	t, b, fs, err := determinants(v)
	if err != nil {
		return nil, err
	}
	out := array[float64]{make([]float64, len(fs)), b.dims}
	for i := range fs {
		out.data[i] = fs[i].sign
		for k := range b.rows {
			out.data[i] *= fs[i].at(k, k)
		}
	}
	lu, pivots, _ := tails(b, fs, dtypeOf(t))
	return several(func() (*tensor, error) { return save(out, dtypeOf(t)) }, lu, pivots)
}

func linalgLogDet(v values) ([]*tensor, error) {
	t, b, fs, err := determinants(v)
	if err != nil {
		return nil, err
	}
	signs, logs := array[float64]{make([]float64, len(fs)), b.dims}, array[float64]{make([]float64, len(fs)), b.dims}
	for i := range fs {
		signs.data[i], logs.data[i] = fs[i].diagonal()
	}
	lu, pivots, _ := tails(b, fs, dtypeOf(t))
	return several(func() (*tensor, error) { return save(signs, dtypeOf(t)) }, func() (*tensor, error) { return save(logs, dtypeOf(t)) }, lu, pivots)
}

// pivoting refuses factorisations without exchanges of rows, which PyTorch has
// for CUDA only.
func pivoting(v values) error {
	if !v.bool("pivot", true) {
		return fmt.Errorf("%w: LU without pivoting", errUnimplemented)
	}
	return nil
}

func linalgFactor(v values) ([]*tensor, error) {
	t, b, fs, err := factoredBatch(v, "A")
	if err = errors.Join(err, pivoting(v)); err != nil {
		return nil, err
	}
	if err := checked(v, fs); err != nil {
		return nil, err
	}
	lu, pivots, info := tails(b, fs, dtypeOf(t))
	return several(lu, pivots, info)
}

func linalgLU(v values) ([]*tensor, error) {
	t, b, fs, err := factoredBatch(v, "A")
	if err = errors.Join(err, pivoting(v)); err != nil {
		return nil, err
	}
	ps, ls, us := make([]matrix, len(fs)), make([]matrix, len(fs)), make([]matrix, len(fs))
	for i, f := range fs {
		if ps[i], err = permutation(f.pivots, b.rows); err != nil {
			return nil, err
		}
		ls[i], us[i] = triangles(f.matrix)
	}
	k := min(b.rows, b.cols)
	return several(func() (*tensor, error) { return saveRows(b.dims, b.rows, b.rows, ps, dtypeOf(t)) },
		func() (*tensor, error) { return saveRows(b.dims, b.rows, k, ls, dtypeOf(t)) },
		func() (*tensor, error) { return saveRows(b.dims, k, b.cols, us, dtypeOf(t)) })
}

func linalgLUSolve(v values) ([]*tensor, error) {
	t, lu, err := square(v, "LU")
	if err != nil {
		return nil, err
	}
	_, pivots, err := argument[int64](v, "pivots")
	if err != nil {
		return nil, err
	}
	_, b, err := matrices(v, "B")
	if err != nil {
		return nil, err
	}
	if len(pivots.data) != lu.rows*len(lu.all) || len(b.all) != len(lu.all) || b.rows != lu.rows || !v.bool("left", true) || v.bool("adjoint", false) {
		return nil, fmt.Errorf("%w: %d×%d by %d×%d; only of equal batches, from the left", errUnimplemented, lu.rows, lu.cols, b.rows, b.cols)
	}
	for i := range b.all {
		f := factored{matrix: lu.all[i], pivots: pivots.data[i*lu.rows:][:lu.rows]}
		for _, p := range f.pivots {
			if p < 1 || p > int64(lu.rows) {
				return nil, fmt.Errorf("%w: pivot %d of %d rows", ir.ErrArg, p, lu.rows)
			}
		}
		b.all[i] = f.solve(b.all[i])
	}
	return one(saveMatrices(b.dims, b.rows, b.cols, b.all, dtypeOf(t)))
}

// linalgSolve returns the solutions, the factors, the pivots and whether all went
// well. The right sides may be vectors.
func linalgSolve(v values) ([]*tensor, error) {
	t, a, fs, err := squareBatch(v, "A")
	if err != nil {
		return nil, err
	}
	rt, flat, err := argument[float64](v, "B")
	if err != nil {
		return nil, err
	}
	left, vector := v.bool("left", true), len(flat.dims) == 1 || slices.Equal(flat.dims, append(slices.Clone(a.dims), a.rows))
	b := batch{}
	if vector {
		n := len(flat.dims) - 1
		b = batch{dims: flat.dims[:n], rows: flat.dims[n], cols: 1}
	} else {
		n := len(flat.dims) - 2
		b = batch{dims: flat.dims[:n], rows: flat.dims[n], cols: flat.dims[n+1]}
	}
	for i := range product(b.dims) {
		b.all = append(b.all, matrix{b.rows, b.cols, flat.data[i*b.rows*b.cols:][:b.rows*b.cols]})
	}
	if rows := b.rows; left && rows != a.rows || !left && (vector || b.cols != a.rows) || dtypeOf(rt) != dtypeOf(t) {
		return nil, fmt.Errorf("%w: matrices of %d×%d and right sides %v", ir.ErrShape, a.rows, a.cols, flat.dims)
	}
	dims, pairs, err := batches(b, a)
	if err != nil {
		return nil, err
	}
	out := make([]matrix, len(pairs))
	for i, p := range pairs {
		if left {
			f := fs[positionIn(i, dims, a.dims)]
			out[i] = f.solve(p[0])
		} else { // X·A = B is Aᵀ·Xᵀ = Bᵀ
			f := factorLU(p[1].transposed())
			x := f.solve(p[0].transposed())
			out[i] = x.transposed()
		}
	}
	lu, pivots, info := tails(a, fs, dtypeOf(t))
	solution := func() (*tensor, error) {
		switch {
		case vector:
			return saveVectors(dims, b.rows, out, dtypeOf(t))
		case left:
			return saveMatrices(dims, b.rows, b.cols, out, dtypeOf(t))
		}
		return saveRows(dims, b.rows, b.cols, out, dtypeOf(t))
	}
	return several(solution, lu, pivots, info)
}

// saveVectors makes a tensor of vectors of n elements. As PyTorch's solutions, it
// lies like a matrix column by column.
func saveVectors(dims []int, n int, all []matrix, d ir.DType) (*tensor, error) {
	x := matrix{len(all), n, nil}
	for _, m := range all {
		x.a = append(x.a, m.a...)
	}
	if len(dims) == 0 {
		return save(array[float64]{x.a, []int{n}}, d)
	}
	last := len(dims) - 1
	return saveMatrices(dims[:last], dims[last], n, []matrix{x}, d)
}

func linalgTriangular(v values) ([]*tensor, error) {
	t, a, err := square(v, "self")
	if err != nil {
		return nil, err
	}
	_, b, err := matrices(v, "B")
	if err != nil {
		return nil, err
	}
	left, upper, unit := v.bool("left", true), v.bool("upper", true), v.bool("unitriangular", false)
	if left && b.rows != a.rows || !left && b.cols != a.rows {
		return nil, fmt.Errorf("%w: triangles of %d×%d and right sides of %d×%d", ir.ErrShape, a.rows, a.cols, b.rows, b.cols)
	}
	dims, pairs, err := batches(b, a)
	if err != nil {
		return nil, err
	}
	out := make([]matrix, len(pairs))
	for i, p := range pairs {
		if left {
			out[i] = p[0].clone()
			solveTriangular(p[1], out[i], upper, unit)
		} else {
			x := p[0].transposed()
			solveTriangular(p[1].transposed(), x, !upper, unit)
			out[i] = x.transposed()
		}
	}
	return one(saveMatrices(dims, b.rows, b.cols, out, dtypeOf(t)))
}

// cholesky returns the lower factor of a matrix of which the lower triangle
// counts, and the first column at which it is not positive, from one.
func cholesky(m matrix) (matrix, int64) {
	l := newMatrix(m.rows, m.rows)
	for j := range m.rows {
		d := m.at(j, j) - dot(l.row(j)[:j], l.row(j)[:j])
		if !(d > 0) {
			return l, int64(j + 1)
		}
		l.set(j, j, math.Sqrt(d))
		for i := j + 1; i < m.rows; i++ {
			l.set(i, j, (m.at(i, j)-dot(l.row(i)[:j], l.row(j)[:j]))/l.at(j, j))
		}
	}
	return l, 0
}

func linalgCholesky(v values) ([]*tensor, error) {
	t, b, err := square(v, "self")
	if err != nil {
		return nil, err
	}
	fs, upper := make([]factored, len(b.all)), v.bool("upper", false)
	for i, m := range b.all {
		if upper {
			m = m.transposed()
		}
		m, fs[i].info = cholesky(m)
		if upper {
			m = m.transposed()
		}
		fs[i].matrix = m
	}
	if err := checked(v, fs); err != nil {
		return nil, err
	}
	l, _, info := tails(b, fs, dtypeOf(t))
	return several(l, info)
}

// linalgQR returns an orthogonal and an upper triangular factor.
func linalgQR(v values) ([]*tensor, error) {
	t, b, err := matrices(v, "A")
	if err != nil {
		return nil, err
	}
	mode, k := v.text("mode", "reduced"), min(b.rows, b.cols)
	if !strings.Contains("reduced complete r", mode) {
		return nil, fmt.Errorf("%w: QR in mode %q", ir.ErrArg, mode)
	}
	if mode == "complete" {
		k = b.rows
	}
	qs, rs := make([]matrix, len(b.all)), make([]matrix, len(b.all))
	for i, m := range b.all {
		tau := householder(m)
		qs[i], rs[i] = identity(b.rows, k), newMatrix(k, b.cols)
		applyQ(m, tau, qs[i], false)
		for row := range min(k, b.rows) {
			for col := row; col < b.cols; col++ {
				rs[i].set(row, col, m.at(row, col))
			}
		}
	}
	q := func() (*tensor, error) { return saveMatrices(b.dims, b.rows, k, qs, dtypeOf(t)) }
	if mode == "r" {
		q = func() (*tensor, error) { return save(array[float64]{nil, []int{0}}, dtypeOf(t)) }
	}
	return several(q, func() (*tensor, error) { return saveMatrices(b.dims, k, b.cols, rs, dtypeOf(t)) })
}

// householderProduct returns the first columns of the product of reflections.
func householderProduct(v values) ([]*tensor, error) {
	t, b, err := matrices(v, "input")
	if err != nil {
		return nil, err
	}
	_, taus, err := argument[float64](v, "tau")
	if err != nil {
		return nil, err
	}
	k := 0
	if n := len(taus.dims); n > 0 {
		k = taus.dims[n-1]
	}
	if k > b.cols || b.cols > b.rows || len(taus.data) != k*len(b.all) {
		return nil, fmt.Errorf("%w: %v reflections of %d×%d", ir.ErrShape, taus.dims, b.rows, b.cols)
	}
	for i, m := range b.all {
		q := identity(b.rows, b.cols)
		applyQ(m, taus.data[i*k:][:k], q, false)
		b.all[i] = q
	}
	return one(saveMatrices(b.dims, b.rows, b.cols, b.all, dtypeOf(t)))
}
