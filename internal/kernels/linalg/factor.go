package linalg

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/lapack"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/dense"
	"github.com/loris-ml/loris/ir"
)

var solver lapackgonum.Implementation

var families = map[ir.Op]family{
	aten.LinalgCholeskyEx:         {core: []int{2}, make: cholesky},
	aten.LinalgLUFactorEx:         {core: []int{2}, make: factor},
	aten.LUUnpack:                 {core: []int{2, 1}, make: unpack},
	aten.LinalgSolveTriangular:    {core: []int{2, 2}, make: solveTriangular},
	aten.Geqrf:                    {core: []int{2}, make: reflect},
	aten.LinalgHouseholderProduct: {core: []int{2, 1}, make: product},
	aten.Ormqr:                    {core: []int{2, 1, 2}, make: applyProduct},
	aten.LinalgEigh:               {core: []int{2}, make: symmetric},
	aten.LinalgEig:                {core: []int{2}, make: general},
	aten.LinalgSVD:                {core: []int{2}, make: singular},
	aten.LinalgMatrixExp:          {core: []int{2}, make: exponential},
	aten.FftLine: {core: []int{1}, make: transform, cost: func(a ir.Args) float64 {
		return 40 * float64(a.In[0].Dim(-1))
	}},
}

// sizes returns the rows and columns of an operand's matrices.
func sizes(v ir.Value) (m, n int) { return v.Dim(-2), v.Dim(-1) }

func triangle(upper bool) blas.Uplo {
	if upper {
		return blas.Upper
	}
	return blas.Lower
}

func cholesky(a ir.Args) kernel {
	n, upper, check := a.In[0].Dim(-1), a.Bool("upper"), a.Bool("check_errors")
	return func(in, out [][]float64) error {
		l := dense.From(in[0], n, n)
		if upper {
			l = l.Transposed()
		}
		order := dense.Cholesky(l)
		if upper {
			l = l.Transposed()
		}
		l.To(out[0])
		out[1][0] = float64(order)
		if order != 0 && check {
			return fmt.Errorf("the factorization could not be completed because the input is not positive-definite "+
				"(the leading minor of order %d is not positive-definite)", order)
		}
		return nil
	}
}

func factor(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	check := a.Bool("check_errors")
	return func(in, out [][]float64) error {
		lu, factors, pivots := out[0], dense.From(in[0], m, n), make([]int, min(m, n))
		dense.LU(factors, pivots)
		factors.To(lu)
		for i, p := range pivots {
			out[1][i] = float64(p + 1)
			if lu[i*n+i] == 0 && out[2][0] == 0 {
				out[2][0] = float64(i + 1)
			}
		}
		if check && out[2][0] != 0 {
			return fmt.Errorf("the diagonal element %v of U is zero: the matrix is singular", out[2][0])
		}
		return nil
	}
}

func unpack(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	k, data, order := min(m, n), a.Bool("unpack_data"), a.Bool("unpack_pivots")
	return func(in, out [][]float64) error {
		for i := range m {
			for j := range n {
				switch {
				case !data:
				case i > j:
					out[1][i*k+j] = in[0][i*n+j]
				case i < k:
					out[2][i*n+j] = in[0][i*n+j]
				}
			}
			if data && i < k {
				out[1][i*k+i] = 1
			}
		}
		if !order {
			return nil
		}
		rows := make([]int, m)
		for i := range rows {
			rows[i] = i
		}
		for i, p := range in[1] {
			if p < 1 || p > float64(m) {
				return fmt.Errorf("pivot %v of %d rows", p, m)
			}
			rows[i], rows[int(p)-1] = rows[int(p)-1], rows[i]
		}
		for i, r := range rows {
			out[0][r*m+i] = 1
		}
		return nil
	}
}

func solveTriangular(a ir.Args) kernel {
	m, n := sizes(a.In[1])
	upper, left, unit := a.Bool("upper"), a.Bool("left"), a.Bool("unitriangular")
	rank := a.In[0].Dim(-1)
	return func(in, out [][]float64) error {
		t, x := dense.From(in[0], rank, rank), dense.From(in[1], m, n)
		if left {
			dense.Solve(t, x, upper, unit)
		} else { // x·t = b is tᵀ·xᵀ = bᵀ
			x = x.Transposed()
			dense.Solve(t.Transposed(), x, !upper, unit)
			x = x.Transposed()
		}
		x.To(out[0])
		return nil
	}
}

// workspace is the memory of a blocked algorithm over n rows or columns.
func workspace(n int) []float64 { return make([]float64, 32*max(n, 1)) }

func reflect(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	return func(in, out [][]float64) error {
		copy(out[0], in[0])
		if m > 0 && n > 0 {
			work := workspace(n)
			solver.Dgeqrf(m, n, out[0], n, out[1], work, len(work))
		}
		return nil
	}
}

func product(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	k := a.In[1].Dim(-1)
	return func(in, out [][]float64) error {
		copy(out[0], in[0])
		if m > 0 && n > 0 {
			work := workspace(n)
			solver.Dorgqr(m, n, k, out[0], n, in[1], work, len(work))
		}
		return nil
	}
}

func applyProduct(a ir.Args) kernel {
	m, n := sizes(a.In[2])
	k, lda := a.In[1].Dim(-1), a.In[0].Dim(-1)
	side, trans, span := blas.Left, blas.NoTrans, n
	if !a.Bool("left") {
		side, span = blas.Right, m
	}
	if a.Bool("transpose") {
		trans = blas.Trans
	}
	return func(in, out [][]float64) error {
		copy(out[0], in[2])
		if m > 0 && n > 0 && k > 0 {
			// Dlarft slices from the row after the last reflection, which a square matrix lacks, unless
			// the last factor is 0, as geqrf has it.
			reflections := append(slices.Clip(in[0]), make([]float64, lda)...)
			work := workspace(span)
			solver.Dormqr(side, trans, m, n, k, reflections, lda, in[1], out[0], n, work, len(work))
		}
		return nil
	}
}

func symmetric(a ir.Args) kernel {
	n, upper, job := a.In[0].Dim(-1), a.Str("UPLO") == "U", lapack.EVNone
	if a.Bool("compute_v") {
		job = lapack.EVCompute
	}
	return func(in, out [][]float64) error {
		if n == 0 {
			return nil
		}
		v, work := append([]float64(nil), in[0]...), make([]float64, 34*n)
		if !solver.Dsyev(job, triangle(upper), n, v, n, out[0], work, len(work)) {
			return fmt.Errorf("the algorithm failed to converge because the input is ill-conditioned or has too many repeated eigenvalues")
		}
		copy(out[1], v)
		return nil
	}
}

func general(a ir.Args) kernel {
	n := a.In[0].Dim(-1)
	return func(in, out [][]float64) error {
		if n == 0 {
			return nil
		}
		m := append([]float64(nil), in[0]...)
		re, im, v, work := make([]float64, n), make([]float64, n), make([]float64, n*n), make([]float64, 36*n)
		if solver.Dgeev(lapack.LeftEVNone, lapack.RightEVCompute, n, m, n, re, im, nil, 1, v, n, work, len(work)) != 0 {
			return fmt.Errorf("the algorithm failed to converge because the input is ill-conditioned or has too many repeated eigenvalues")
		}
		for j := range n {
			out[0][2*j], out[0][2*j+1] = re[j], im[j]
			for i := range n {
				to := out[1][2*(i*n+j):]
				switch { // a pair of conjugates has its real and its imaginary part in two columns
				case im[j] == 0:
					to[0] = v[i*n+j]
				case im[j] > 0:
					to[0], to[1] = v[i*n+j], v[i*n+j+1]
				default:
					to[0], to[1] = v[i*n+j-1], -v[i*n+j]
				}
			}
		}
		return nil
	}
}

func singular(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	job, ku, kv := lapack.SVDNone, 1, 1
	if a.Bool("compute_uv") {
		job, ku, kv = lapack.SVDStore, min(m, n), n
		if a.Bool("full_matrices") {
			job, ku = lapack.SVDAll, m
		}
	}
	return func(in, out [][]float64) error {
		if m == 0 || n == 0 {
			identity(out[0], m, ku)
			identity(out[2], n, n)
			return nil
		}
		x, work := append([]float64(nil), in[0]...), make([]float64, 5*min(m, n)+34*max(m, n))
		if !solver.Dgesvd(job, job, m, n, x, n, out[1], out[0], ku, out[2], kv, work, len(work)) {
			return fmt.Errorf("the algorithm failed to converge because the input is ill-conditioned or has too many repeated singular values")
		}
		return nil
	}
}

// identity makes a matrix of m rows one of ones on the diagonal, if it has elements.
func identity(x []float64, m, n int) {
	for i := range min(m, n) {
		if i*n+i < len(x) {
			x[i*n+i] = 1
		}
	}
}

func exponential(a ir.Args) kernel {
	n := a.In[0].Dim(-1)
	return func(in, out [][]float64) error {
		if n > 0 {
			dense.Exp(dense.From(in[0], n, n)).To(out[0])
		}
		return nil
	}
}

// transform is a Fourier transform of one line without a factor.
func transform(a ir.Args) kernel {
	n, forward := a.In[0].Dim(-1), a.Bool("forward")
	plans := sync.Pool{New: func() any { return fourier.NewCmplxFFT(n) }}
	return func(in, out [][]float64) error {
		p := plans.Get().(*fourier.CmplxFFT)
		defer plans.Put(p)
		if forward {
			p.Coefficients(pairs(out[0]), pairs(in[0]))
		} else {
			p.Sequence(pairs(out[0]), pairs(in[0]))
		}
		return nil
	}
}

func pairs(x []float64) []complex128 {
	return unsafe.Slice((*complex128)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}
