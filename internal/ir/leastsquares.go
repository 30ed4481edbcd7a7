package ir

import (
	"slices"
	"strconv"
)

// Norms, condition numbers and least squares.

func init() {
	register("linalg_norm(Tensor self, str ord='', int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Linalg,
		Doc: "linalg_vector_norm over one of dim, linalg_matrix_norm over two; without dim of a vector or a matrix. Without ord it is the root of the sum of squares over all of dim, " +
			"or of all elements. ord is a number as text, 'fro' or 'nuc'. ATen's linalg_norm.",
		Decompose: decomposeLinalgNorm,
	})
	register("linalg_cond(Tensor self, str p='') -> Tensor", Spec{
		Category: Linalg,
		Doc: "The condition numbers of matrices: the norm p, as linalg_matrix_norm takes it, of each times that of its inverse; for '2', which is what is taken without p, and '-2' the " +
			"ratio of its largest and least singular values or the inverse of that. ATen's linalg_cond, which gives ∞ for matrices without an inverse; here that is an error for other norms.",
		Decompose: decomposeCond,
	})
	register("linalg_lstsq(Tensor self, Tensor b, float? rcond=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", Spec{
		Category: Linalg,
		Doc: "The x [*, n, k] of least norm that minimise ‖self·x - b‖ for self [*, m, n] and b [*, m, k] or [*, m]; the sums of squares of what is left, if m is more than n; how many " +
			"singular values are above rcond, the epsilon of the dtype times the larger of m and n unless given, times the largest; and those. By singular values, so also for matrices " +
			"without full rank, of which ATen leaves the residuals out. ATen's linalg_lstsq.",
		Decompose: decomposeLstsq,
	})
}

func decomposeLinalgNorm(b *Builder, a Args) []Value {
	x, ord, dims, keep := a.In[0], a.Str("ord"), a.Ints("dim"), a.Bool("keepdim")
	if d := a.DType("dtype"); d != Invalid {
		x = b.Cast(x, d)
	}
	requireFloat(a, x)
	all := dims == nil
	switch {
	case all && ord == "":
		if dims = countTo(x.Rank()); x.Rank() == 0 {
			return []Value{b.abs(x)}
		}
	case all && x.Rank() != 1 && x.Rank() != 2:
		a.Fail(ErrShape, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD", x.Rank())
	case all:
		dims = countTo(x.Rank())
	}
	if ord == "" || len(dims) == 1 {
		p := 2.0
		if ord != "" {
			var err error
			if p, err = strconv.ParseFloat(ord, 64); err != nil {
				a.Fail(ErrArg, "order %q is not a number, which the norm of vectors takes", ord)
			}
		}
		return []Value{b.callNamed("norm", []any{x, p, dims, keep})}
	}
	if len(dims) != 2 {
		a.Fail(ErrShape, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %v", dims)
	}
	return []Value{b.callNamed("linalg_matrix_norm", []any{x, ord, dims, keep})}
}

func decomposeCond(b *Builder, a Args) []Value {
	x, p := requireMatrices(a, "self"), a.Str("p")
	if p == "" || p == "2" || p == "-2" {
		s := b.callFirst("linalg_svdvals", x)
		largest, least := b.Amax(s, []int{-1}, false), b.amin(s, []int{-1}, false)
		if p == "-2" {
			return []Value{b.Div(least, largest)}
		}
		return []Value{b.Div(largest, least)}
	}
	norm := func(x Value) Value { return b.callNamed("linalg_matrix_norm", []any{x, p}) }
	return []Value{b.Mul(norm(x), norm(b.callNamed("linalg_inv", []any{requireSquare(a, "self")})))}
}

func decomposeLstsq(b *Builder, a Args) []Value {
	x, y := requireMatrices(a, "self"), a.Tensor("b")
	requireAlike(a, x, "b")
	m, n := x.Dim(-2), x.Dim(-1)
	vectors := y.Rank() == x.Rank()-1 && slices.Equal(y.Shape().Dims(), x.Shape().Dims()[:x.Rank()-1])
	if vectors {
		y = b.Unsqueeze(y, -1)
	}
	if y.Rank() < 2 || y.Dim(-2) != m {
		a.Fail(ErrShape, "the rows of self %v and b %v differ", x.Shape(), a.Tensor("b").Shape())
	}
	rcond, ok := a.OptFloat("rcond")
	if !ok {
		if rcond = float32Eps; x.DType() == F64 {
			rcond = float64Eps
		}
		rcond *= float64(max(m, n))
	}
	solution := b.MatMul(b.callNamed("linalg_pinv", []any{x}, A("rtol", rcond)), y)
	residuals := b.Full([]int{0}, 0, x.DType())
	if m > n {
		off := b.Sub(b.MatMul(x, solution), y)
		residuals = b.Sum(b.Mul(off, off), []int{off.Rank() - 2}, false)
	}
	if vectors {
		dims := solution.Shape().Dims()
		solution = b.Reshape(solution, dims[:len(dims)-1]...)
		if m > n {
			dims = residuals.Shape().Dims()
			residuals = b.Reshape(residuals, dims[:len(dims)-1]...)
		}
	}
	rank := b.callNamed("linalg_matrix_rank", []any{x}, A("rtol", rcond))
	return []Value{solution, residuals, rank, b.callFirst("linalg_svdvals", x)}
}
