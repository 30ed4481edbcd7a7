package linalg

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
)

// large is as kernel, of operands that become package dense's matrices when they are read, and of results that are
// written from them, without a copy between.
type large func(room *dense.Room, in []source, out []sink) error

// source is an element of the batch of an operand, and sink one of a result.
type (
	source struct {
		*operand
		data []byte
	}
	sink struct {
		*operand
		data []byte
	}
)

func (s source) matrix(room *dense.Room, rows, cols int) *dense.Matrix {
	switch s.dtype {
	case ir.F64:
		return room.From(numbers[float64](s.data), rows, cols)
	case ir.F32:
		return room.FromSingles(numbers[float32](s.data), rows, cols)
	}
	return room.From(s.read(make([]float64, s.n), s.data), rows, cols)
}

func (s sink) put(m *dense.Matrix) {
	switch {
	case s.none:
	case s.dtype == ir.F64:
		m.To(numbers[float64](s.data))
	case s.dtype == ir.F32:
		m.ToSingles(numbers[float32](s.data))
	default:
		x := make([]float64, s.n)
		m.To(x)
		s.write(s.data, x)
	}
}

// set writes numbers.
func (s sink) set(x ...float64) {
	switch {
	case s.none:
	case s.dtype == ir.F64:
		copy(numbers[float64](s.data), x)
	default:
		s.write(s.data, x)
	}
}

func choleskyLarge(a ir.Args) large {
	n, upper, check := a.In[0].Dim(-1), a.Bool("upper"), a.Bool("check_errors")
	if n <= dense.Small {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		f := in[0].matrix(room, n, n)
		if upper {
			f = f.Transposed()
		}
		order := dense.Cholesky(f)
		if upper {
			f = f.Transposed()
		}
		out[0].put(f)
		out[1].set(float64(order))
		return notDefinite(order, check)
	}
}

func factorLarge(a ir.Args) large {
	m, n := sizes(a.In[0])
	check := a.Bool("check_errors")
	if m <= dense.Small && n <= dense.Small {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		lu, pivots := in[0].matrix(room, m, n), make([]int, min(m, n))
		dense.LU(lu, pivots)
		out[0].put(lu)
		zero := 0
		for i := range pivots {
			if lu.Row(i)[i] == 0 {
				zero = i + 1
				break
			}
		}
		out[1].set(counted(pivots)...)
		out[2].set(float64(zero))
		return singularError(zero, check)
	}
}

// counted returns pivots counted from 1.
func counted(pivots []int) []float64 {
	list := make([]float64, len(pivots))
	for i, p := range pivots {
		list[i] = float64(p + 1)
	}
	return list
}

func determinantLarge(a ir.Args) large {
	n := a.In[0].Dim(-1)
	if n <= dense.Small {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		lu, pivots := in[0].matrix(room, n, n).Transposed(), make([]int, n)
		dense.LU(lu, pivots)
		det := 1.0
		for i, p := range pivots {
			if det *= lu.Row(i)[i]; p != i {
				det = -det
			}
		}
		out[0].set(det)
		out[1].put(lu)
		if !out[2].none {
			out[2].set(counted(pivots)...)
		}
		return nil
	}
}

// solveFactoredLarge solves by blocks for right sides that are more than a column.
func solveFactoredLarge(a ir.Args) large {
	rows, cols := sizes(a.In[2])
	left, adjoint, n := a.Bool("left"), a.Bool("adjoint"), a.In[0].Dim(-1)
	sides := cols
	if !left { // x·a = b is aᵀ·xᵀ = bᵀ
		sides, adjoint = rows, !adjoint
	}
	if n <= dense.Small && sides <= 2*dense.Small || sides == 1 {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		t, x := in[0].matrix(room, n, n), in[2].matrix(room, rows, cols)
		if !left {
			x = x.Transposed()
		}
		if adjoint {
			t = t.Transposed()
		}
		pivots := numbers[int32](in[1].data)
		for _, p := range pivots {
			if err := checkPivot(float64(p), n); err != nil {
				return err
			}
		}
		if !adjoint {
			for i, p := range pivots {
				x.SwapRows(i, int(p)-1)
			}
		}
		dense.Solve(t, x, false, !adjoint)
		dense.Solve(t, x, true, adjoint)
		if adjoint {
			for i := n - 1; i >= 0; i-- {
				x.SwapRows(i, int(pivots[i])-1)
			}
		}
		if !left {
			x = x.Transposed()
		}
		out[0].put(x)
		return nil
	}
}

// checkPivot returns an error for what is no row of n, counted from 1.
func checkPivot(pivot float64, n int) error {
	if !(pivot >= 1 && pivot <= float64(n)) {
		return fmt.Errorf("pivot %v of %d rows", pivot, n)
	}
	return nil
}

func solveTriangularLarge(a ir.Args) large {
	m, n := sizes(a.In[1])
	upper, left, unit, rank := a.Bool("upper"), a.Bool("left"), a.Bool("unitriangular"), a.In[0].Dim(-1)
	if smallTriangle(a) || vectorSides(a) {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		t, x := in[0].matrix(room, rank, rank), in[1].matrix(room, m, n)
		if left {
			dense.Solve(t, x, upper, unit)
		} else { // x·t = b is tᵀ·xᵀ = bᵀ
			x = x.Transposed()
			dense.Solve(t.Transposed(), x, !upper, unit)
			x = x.Transposed()
		}
		out[0].put(x)
		return nil
	}
}

func symmetricLarge(a ir.Args) large {
	n, upper, wanted := a.In[0].Dim(-1), a.Str("UPLO") == "U", a.Bool("compute_v")
	if n <= dense.Small {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		x, vectors := in[0].matrix(room, n, n), wanted && !out[1].none
		x.Mirror(upper)
		values, v, ok := dense.Symmetric(x, vectors)
		if !ok {
			return errNotConverged
		}
		out[0].set(values...)
		if vectors {
			out[1].put(v)
		}
		return nil
	}
}

func exponentialLarge(a ir.Args) large {
	n, singles := a.In[0].Dim(-1), a.In[0].DType() != ir.F64
	if n <= dense.SmallExponent {
		return nil
	}
	return func(room *dense.Room, in []source, out []sink) error {
		out[0].put(dense.Exp(in[0].matrix(room, n, n), singles))
		return nil
	}
}
