package torchexport

import (
	"strconv"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// linalgOps are functions of torch.linalg whose arguments the row of the name has not, or that ATen
// makes of others.
var linalgOps = map[string]func(c *call) []any{
	"aten.linalg_eigvals": func(c *call) []any { return many(c.all("linalg_eig", []any{c.value("self")})[:1]...) },
	"aten.linalg_vecdot": func(c *call) []any {
		return one(c.do("sum", c.do("conj", c.value("x")).Mul(c.value("y")), []int{c.intOr("dim", -1)}))
	},
	"aten.linalg_vander": func(c *call) []any {
		x := c.value("x")
		return one(c.do("pow", x.Unsqueeze(-1), c.do("arange", 0, c.intOr("N", x.Dim(-1)), 1, ir.I64)))
	},
	"aten.linalg_tensorinv": func(c *call) []any {
		x, n := c.value("self"), c.intOr("ind", 2)
		dims := x.Dims()
		if n <= 0 || n > len(dims) {
			panic(misuse(c.n.target, "ind %d of %v", n, x.Shape()))
		}
		inverse := c.do("linalg_inv", x.Reshape(product(dims[:n]), -1))
		return one(inverse.Reshape(append(dims[n:], dims[:n]...)...))
	},
	"aten.linalg_tensorsolve":  func(c *call) []any { return one(tensorSolve(c)) },
	"aten.linalg_matrix_norm":  normByName("linalg_matrix_norm"),
	"aten.linalg_norm.ord_str": normByName("linalg_norm"),
	"aten.linalg_matrix_rank":  func(c *call) []any { return one(matrixRank(c)) },
	"aten.linalg_pinv":         func(c *call) []any { return one(pseudoInverse(c)) },
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func tensorSolve(c *call) *loris.Tensor {
	a, b := c.value("self"), c.value("other")
	if _, ok := c.arg("dims"); ok {
		to := make([]int, 0, a.Rank())
		for i := range c.ints("dims") {
			to = append(to, a.Rank()-len(c.ints("dims"))+i)
		}
		a = c.do("movedim", a, c.ints("dims"), to)
	}
	if b.Rank() > a.Rank() {
		panic(misuse(c.n.target, "%v and %v", a.Shape(), b.Shape()))
	}
	n := b.Numel()
	return c.do("linalg_solve", a.Reshape(n, n), b.Reshape(n)).Reshape(a.Dims()[b.Rank():]...)
}

// normByName calls a row whose order is a word, which a number is written as.
func normByName(row string) func(c *call) []any {
	op, _ := ir.Lookup(row)
	record := generic(op)
	return func(c *call) []any {
		with := *c
		with.args = nil
		for _, a := range c.args {
			if f, ok := toFloat(a.value); ok && a.name == "ord" {
				a.value = strconv.FormatFloat(f, 'g', -1, 64)
			}
			with.args = append(with.args, a)
		}
		return record(&with)
	}
}

// tolerance is what singular values of matrices must be above not to count as zero: atol, or the share
// of the largest that the argument relative says. Without either the share is the rounding of a sum.
func (c *call) tolerance(x, values *loris.Tensor, relative string) *loris.Tensor {
	most := c.do("amax", values, []int{-1}, true)
	_, given := c.arg(relative)
	_, absolute := c.arg("atol")
	var share any = epsilon[values.DType()] * float64(max(x.Dim(-2), x.Dim(-1)))
	switch {
	case given:
		share = c.perMatrix(relative)
	case absolute:
		share = 0.0
	}
	out := c.do("mul", most, share)
	if absolute {
		return c.do("maximum", out, c.do("mul", most.OnesLike(), c.perMatrix("atol")))
	}
	return out
}

// perMatrix returns a tolerance that broadcasts to one for each matrix.
func (c *call) perMatrix(name string) any {
	v := c.operand(name)
	if t, ok := v.(*loris.Tensor); ok {
		return t.Unsqueeze(-1)
	}
	return v
}

// epsilon is the distance from 1 to the next number.
var epsilon = map[ir.DType]float64{ir.F32: 0x1p-23, ir.F64: 0x1p-52}

func matrixRank(c *call) *loris.Tensor {
	x, ok := c.first()
	if !ok {
		panic(misuse(c.n.target, "it has no tensor"))
	}
	a := x.value()
	if a.Rank() < 2 {
		return a.Ne(0).Any().Cast(ir.I64)
	}
	var values *loris.Tensor
	if c.boolOr("hermitian", false) {
		values = c.do("linalg_eigvalsh", a).Abs()
	} else {
		values = c.do("linalg_svdvals", a)
	}
	if values.Dim(-1) == 0 {
		return c.do("full", values.Dims()[:values.Rank()-1], 0, ir.I64)
	}
	if _, old := c.arg("tol"); old {
		return c.do("sum", c.do("gt", values, c.perMatrix("tol")), []int{-1})
	}
	return c.do("sum", values.Gt(c.tolerance(a, values, "rtol")), []int{-1})
}

func pseudoInverse(c *call) *loris.Tensor {
	a := c.value("self")
	m, n := a.Dim(-2), a.Dim(-1)
	if a.Numel() == 0 {
		dims := a.Dims()
		dims[len(dims)-2], dims[len(dims)-1] = n, m
		return c.do("full", dims, 0, a.DType())
	}
	named := "rtol"
	if _, old := c.arg("rcond"); old {
		named = "rcond"
	}
	var values, left, right *loris.Tensor // a = left · values · right
	if c.boolOr("hermitian", false) {
		outs := c.all("linalg_eigh", []any{a})
		values, left = outs[0], outs[1]
		right = c.do("conj", left).Transpose(-2, -1)
	} else {
		outs := c.all("linalg_svd", []any{a, false})
		left, values, right = outs[0], outs[1], outs[2]
	}
	sizes := values.Abs()
	kept := sizes.Gt(c.tolerance(a, sizes, named))
	inverted := loris.Where(kept, values.Reciprocal(), values.ZerosLike()).Unsqueeze(-2)
	return c.do("conj", right).Transpose(-2, -1).Mul(inverted).MatMul(c.do("conj", left).Transpose(-2, -1))
}
