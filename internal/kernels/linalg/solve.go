package linalg

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
)

// factorInto makes lu the factors of m×n elements, and returns the pivots, in few.
func factorInto(lu, x []float64, m, n int, few []int) (pivots []int) {
	copy(lu, x)
	pivots = few[:min(m, n)]
	dense.SmallLU(lu, m, n, pivots)
	return pivots
}

// solveCost is that of a right side with each element of a matrix.
func solveCost(a ir.Args) float64 {
	m, n := sizes(a.In[2])
	return float64(a.In[0].Dim(-1) * m * n)
}

// solveFactored solves with the two triangles of a factored matrix and its exchanges of rows.
func solveFactored(a ir.Args) kernel {
	rows, cols := sizes(a.In[2])
	left, adjoint, n := a.Bool("left"), a.Bool("adjoint"), a.In[0].Dim(-1)
	if !left { // x·a = b is aᵀ·xᵀ = bᵀ
		rows, cols, adjoint = cols, rows, !adjoint
	}
	solve := solveSmall
	if n > dense.Small {
		solve = solveVector
	}
	return func(_ *dense.Room, in, out [][]float64) error {
		x := out[0]
		if left {
			copy(x, in[2])
		} else {
			transpose(x, in[2], cols, rows)
		}
		if !adjoint {
			for i := range n {
				if err := exchange(x, cols, i, in[1][i], n); err != nil {
					return err
				}
			}
			solve(in[0], n, x, cols, false)
		} else {
			solve(in[0], n, x, cols, true)
			for i := n - 1; i >= 0; i-- {
				if err := exchange(x, cols, i, in[1][i], n); err != nil {
					return err
				}
			}
		}
		if !left {
			back := make([]float64, len(x))
			transpose(back, x, rows, cols)
			copy(x, back)
		}
		return nil
	}
}

// exchange exchanges row i of x with the one that a pivot names.
func exchange(x []float64, cols, i int, pivot float64, n int) error {
	if err := checkPivot(pivot, n); err != nil {
		return err
	}
	if p := int(pivot) - 1; p != i {
		dense.SwapRows(x, cols, i, p)
	}
	return nil
}

// transpose makes dst the columns of src, which has so many rows and columns.
func transpose(dst, src []float64, rows, cols int) {
	for i := range rows {
		for j, v := range src[i*cols:][:cols] {
			dst[j*rows+i] = v
		}
	}
}

// solveSmall makes x the solution for the product of two triangles, or for its transposed.
func solveSmall(lu []float64, n int, x []float64, cols int, transposed bool) {
	if transposed {
		dense.SmallSolve(lu, n, 1, n, x, cols, false, false)
		dense.SmallSolve(lu, n, 1, n, x, cols, true, true)
		return
	}
	dense.SmallSolve(lu, n, n, 1, x, cols, false, true)
	dense.SmallSolve(lu, n, n, 1, x, cols, true, false)
}

// solveVector is solveSmall of a column.
func solveVector(lu []float64, n int, x []float64, _ int, transposed bool) {
	dense.SolveVector(lu, n, x, transposed, !transposed, transposed)
	dense.SolveVector(lu, n, x, !transposed, transposed, transposed)
}

// determinantRoom is for the transposed matrix, whose factors perhaps nobody wants.
func determinantRoom(a ir.Args) int { return a.In[0].Dim(-1) * a.In[0].Dim(-1) }

// determinant is the product of the pivots of the transposed matrix, whose factors are results, too.
func determinant(a ir.Args) kernel {
	n := a.In[0].Dim(-1)
	return func(_ *dense.Room, in, out [][]float64) error {
		if n == 3 && out[0] != nil && out[1] == nil && out[2] == nil {
			out[0][0] = dense.Determinant3(in[0])
			return nil
		}
		x, lu := in[1][:n*n], out[1]
		transpose(x, in[0], n, n)
		if lu == nil {
			lu = x
		}
		var few [dense.Small]int
		det := 1.0
		for i, p := range factorInto(lu, x, n, n, few[:]) {
			if det *= lu[i*n+i]; p != i {
				det = -det
			}
			if out[2] != nil {
				out[2][i] = float64(p + 1)
			}
		}
		if out[0] != nil {
			out[0][0] = det
		}
		return nil
	}
}
