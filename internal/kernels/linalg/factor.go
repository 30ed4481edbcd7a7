package linalg

import (
	"errors"
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
)

var errNotConverged = errors.New("the algorithm failed to converge because the input has numbers that are not finite, is ill-conditioned or has " +
	"too many repeated values")

var families = map[ir.Op]family{
	aten.LinalgCholeskyEx:         {core: []int{2}, make: cholesky, large: choleskyLarge, group: choleskyGroup},
	aten.LinalgLUFactorEx:         {core: []int{2}, make: factor, large: factorLarge, group: factorGroup},
	aten.LUUnpack:                 {core: []int{2, 1}, move: unpack, cost: unpackCost},
	aten.LinalgLUSolve:            {core: []int{2, 1, 2}, make: solveFactored, large: solveFactoredLarge, group: solveFactoredGroup, cost: solveCost},
	aten.LinalgDet:                {core: []int{2}, make: determinant, large: determinantLarge, group: determinantGroup, room: determinantRoom, vectors: true},
	aten.LinalgSolveTriangular:    {core: []int{2, 2}, make: solveTriangular, large: solveTriangularLarge, group: solveTriangularGroup, room: solveTriangularRoom},
	aten.Geqrf:                    {core: []int{2}, make: reflect},
	aten.LinalgHouseholderProduct: {core: []int{2, 1}, make: product},
	aten.Ormqr:                    {core: []int{2, 1, 2}, make: applyProduct},
	aten.LinalgEigh:               {core: []int{2}, make: symmetric, large: symmetricLarge, room: symmetricRoom, vectors: true},
	aten.LinalgEig:                {core: []int{2}, make: general, vectors: true},
	aten.LinalgSVD:                {core: []int{2}, make: singular, room: singularRoom, vectors: true},
	aten.LinalgMatrixExp:          {core: []int{2}, make: exponential, large: exponentialLarge},
	aten.FftLine: {core: []int{1}, make: transform, cost: func(a ir.Args) float64 {
		return 40 * float64(a.In[0].Dim(-1))
	}},
}

// sizes returns the rows and columns of an operand's matrices.
func sizes(v ir.Value) (m, n int) { return v.Dim(-2), v.Dim(-1) }

func cholesky(a ir.Args) kernel {
	n, upper, check := a.In[0].Dim(-1), a.Bool("upper"), a.Bool("check_errors")
	return func(_ *dense.Room, in, out [][]float64) error {
		order := choleskyInto(out[0], in[0], n, upper)
		out[1][0] = float64(order)
		return notDefinite(order, check)
	}
}

// notDefinite returns the error of a leading minor that has no factor, if errors are checked.
func notDefinite(order int, check bool) error {
	if order == 0 || !check {
		return nil
	}
	return fmt.Errorf("the factorization could not be completed because the input is not positive-definite "+
		"(the leading minor of order %d is not positive-definite)", order)
}

// choleskyInto makes l the factor of n×n elements, of which one triangle counts.
func choleskyInto(l, x []float64, n int, upper bool) (order int) {
	var few [dense.Small * dense.Small]float64
	lower := few[:n*n]
	for i := range n {
		for j := range i + 1 {
			if upper {
				lower[i*n+j] = x[j*n+i]
			} else {
				lower[i*n+j] = x[i*n+j]
			}
		}
	}
	order = dense.SmallCholesky(lower, n)
	if upper {
		transpose(l, lower, n, n)
	} else {
		copy(l, lower)
	}
	return order
}

func factor(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	check := a.Bool("check_errors")
	return func(_ *dense.Room, in, out [][]float64) error {
		lu := out[0]
		var few [dense.Small]int
		zero := 0
		for i, p := range factorInto(lu, in[0], m, n, few[:]) {
			out[1][i] = float64(p + 1)
			if lu[i*n+i] == 0 && zero == 0 {
				zero = i + 1
			}
		}
		out[2][0] = float64(zero)
		return singularError(zero, check)
	}
}

// singularError returns the error of a pivot that is zero, if there is one, counted from 1, and errors are checked.
func singularError(zero int, check bool) error {
	if zero == 0 || !check {
		return nil
	}
	return fmt.Errorf("the diagonal element %v of U is zero: the matrix is singular", zero)
}

// smallTriangle says whether a triangle and its right sides are small.
func smallTriangle(a ir.Args) bool {
	m, n := sizes(a.In[1])
	sides := n
	if !a.Bool("left") {
		sides = m
	}
	return a.In[0].Dim(-1) <= dense.Small && sides <= dense.Small
}

// solveTriangularRoom is for rows as columns.
func solveTriangularRoom(a ir.Args) int {
	if a.Bool("left") || !smallTriangle(a) {
		return 0
	}
	m, n := sizes(a.In[1])
	return m * n
}

// vectorSides says whether the right sides of a triangle are one column, or one row.
func vectorSides(a ir.Args) bool {
	m, n := sizes(a.In[1])
	if a.Bool("left") {
		return n == 1
	}
	return m == 1
}

func solveTriangular(a ir.Args) kernel {
	m, n := sizes(a.In[1])
	upper, left, unit := a.Bool("upper"), a.Bool("left"), a.Bool("unitriangular")
	rank, small := a.In[0].Dim(-1), smallTriangle(a)
	return func(_ *dense.Room, in, out [][]float64) error {
		switch {
		case !small: // then a row is a column
			copy(out[0], in[1])
			dense.SolveVector(in[0], rank, out[0], upper, unit, !left)
		case left:
			copy(out[0], in[1])
			dense.SmallSolve(in[0], rank, rank, 1, out[0], n, upper, unit)
		default: // x·t = b is tᵀ·xᵀ = bᵀ
			transpose(in[2], in[1], m, n)
			dense.SmallSolve(in[0], rank, 1, rank, in[2], m, !upper, unit)
			transpose(out[0], in[2], n, m)
		}
		return nil
	}
}

func reflect(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	return func(room *dense.Room, in, out [][]float64) error {
		if m <= dense.Small && n <= dense.Small {
			copy(out[0], in[0])
			dense.SmallQR(out[0], m, n, out[1])
			return nil
		}
		f := room.From(in[0], m, n)
		dense.QR(f, out[1])
		f.To(out[0])
		return nil
	}
}

func product(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	return func(room *dense.Room, in, out [][]float64) error {
		if m <= dense.Small {
			identity(out[0], m, n)
			dense.SmallMultiplyQ(in[0], n, in[1], out[0], m, n, false, true)
			return nil
		}
		f := room.From(in[0], m, n)
		dense.Q(f, in[1], n).To(out[0])
		return nil
	}
}

func applyProduct(a ir.Args) kernel {
	m, n := sizes(a.In[2])
	rows, cols := sizes(a.In[0])
	left, transpose := a.Bool("left"), a.Bool("transpose")
	return func(room *dense.Room, in, out [][]float64) error {
		if left && m <= dense.Small && n <= 2*dense.Small {
			copy(out[0], in[2])
			dense.SmallMultiplyQ(in[0], cols, in[1], out[0], m, n, transpose, false)
			return nil
		}
		f, x := room.From(in[0], rows, cols), room.From(in[2], m, n)
		if left {
			dense.MultiplyQ(f, in[1], x, transpose)
		} else { // x·q is the transposed of qᵀ·xᵀ
			x = x.Transposed()
			dense.MultiplyQ(f, in[1], x, !transpose)
			x = x.Transposed()
		}
		x.To(out[0])
		return nil
	}
}

// symmetricRoom is for the matrix and its eigenvalues, too.
func symmetricRoom(a ir.Args) int {
	n := a.In[0].Dim(-1)
	if n > dense.Small {
		return 0
	}
	return n*n + n + dense.RoomOfSymmetric(n)
}

func symmetric(a ir.Args) kernel {
	n, upper, vectors := a.In[0].Dim(-1), a.Str("UPLO") == "U", a.Bool("compute_v")
	return func(room *dense.Room, in, out [][]float64) error {
		x, values, v := in[1][:n*n], in[1][n*n:][:n], out[1]
		for i := range n {
			for j, f := range in[0][i*n:][:i+1] {
				if upper {
					f = in[0][j*n+i]
				}
				x[i*n+j], x[j*n+i] = f, f
			}
		}
		if !vectors {
			v = nil
		}
		if !dense.SmallSymmetric(x, n, values, v, in[1][n*n+n:]) {
			return errNotConverged
		}
		copy(out[0], values)
		return nil
	}
}

func general(a ir.Args) kernel {
	n := a.In[0].Dim(-1)
	return func(room *dense.Room, in, out [][]float64) error {
		if n == 2 {
			if r, ok := dense.GeneralOfTwo(in[0]); ok {
				putGeneral(out, r.Re[:], r.Im[:], r.Vectors[:], n)
				return nil
			}
		}
		m := room.From(in[0], n, n)
		re, im, v, ok := dense.General(m, out[1] != nil, exact(a.In[0].DType()))
		if !ok {
			return errNotConverged
		}
		if v == nil {
			v = new(dense.Matrix)
		}
		putGeneral(out, re, im, v.Data, v.Stride)
		return nil
	}
}

// putGeneral writes eigenvalues, and vectors that lie stride apart where they are wanted.
func putGeneral(out [][]float64, re, im, v []float64, stride int) {
	n := len(re)
	for j := range re {
		if out[0] != nil {
			out[0][2*j], out[0][2*j+1] = re[j], im[j]
		}
		if out[1] == nil {
			continue
		}
		// A pair of conjugates has its real and its imaginary part in two rows.
		row, sign := j, 0.0
		if im[j] > 0 {
			sign = 1
		} else if im[j] < 0 {
			row, sign = j-1, -1
		}
		for i, f := range v[row*stride:][:n] {
			out[1][2*(i*n+j)] = f
		}
		if sign != 0 {
			for i, f := range v[(row+1)*stride:][:n] {
				out[1][2*(i*n+j)+1] = sign * f
			}
		}
	}
}

// exact is what is added to a number of 1 without effect, for eigenvalues in a dtype. Those of f32 are of
// some bits more than its own, so that they are as exact as if they were rounded once.
func exact(d ir.DType) float64 {
	if d == ir.F32 {
		return 0x1p-32
	}
	return 0x1p-53
}

// singularRoom is for the matrix and its singular values, too.
func singularRoom(a ir.Args) int {
	m, n := sizes(a.In[0])
	if max(m, n) > dense.Small {
		return 0
	}
	return m*n + min(m, n) + dense.RoomOfSingular(max(m, n), min(m, n))
}

// smallSingular is singular of matrices that have elements and at most Small rows and columns.
func smallSingular(m, n int, vectors bool) kernel {
	rows, cols := max(m, n), min(m, n)
	return func(room *dense.Room, in, out [][]float64) error {
		x, values := in[1][:m*n], in[1][m*n:][:cols]
		if m < n {
			transpose(x, in[0], m, n)
		} else {
			copy(x, in[0])
		}
		u, v, ok := room.SmallSingular(x, rows, cols, values, in[1][m*n+cols:], vectors && (out[0] != nil || out[2] != nil))
		if !ok {
			return errNotConverged
		}
		copy(out[1], values)
		if u == nil {
			return nil
		}
		if m < n {
			u, v = v, u
		}
		for i, k := 0, len(out[0])/m; i < k; i++ { // columns
			for j, f := range u.Row(i) {
				out[0][j*k+i] = f
			}
		}
		for i := range len(out[2]) / n {
			copy(out[2][i*n:][:n], v.Row(i))
		}
		return nil
	}
}

func singular(a ir.Args) kernel {
	m, n := sizes(a.In[0])
	vectors, full := a.Bool("compute_uv"), a.Bool("full_matrices")
	if m > 0 && n > 0 && max(m, n) <= dense.Small {
		return smallSingular(m, n, vectors)
	}
	decompose := dense.Singular
	if a.In[0].DType() == ir.F32 {
		decompose = dense.SingularOfSingles
	}
	return func(room *dense.Room, in, out [][]float64) error {
		if m == 0 || n == 0 {
			identity(out[0], m, m)
			identity(out[2], n, n)
			return nil
		}
		values, u, v, ok := decompose(room.From(in[0], m, n), vectors && (out[0] != nil || out[2] != nil), full)
		if !ok {
			return errNotConverged
		}
		copy(out[1], values)
		if u != nil && out[0] != nil {
			u.Transposed().To(out[0])
		}
		if v != nil && out[2] != nil {
			v.To(out[2])
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
	n, singles := a.In[0].Dim(-1), a.In[0].DType() != ir.F64
	return func(room *dense.Room, in, out [][]float64) error {
		room.SmallExp(out[0], in[0], n, singles)
		return nil
	}
}
