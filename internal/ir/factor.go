package ir

// Factorisations of matrices: the primitives, which backends compute by LAPACK's algorithms, and
// what is written with their factors. Matrices are the last two dimensions, of f32 or f64.

// requireMatrices fails unless an operand is a batch of matrices of f32 or f64.
func requireMatrices(a Args, name string) Value {
	v := a.Tensor(name)
	switch d := v.DType(); {
	case v.Rank() < 2:
		a.Fail(ErrShape, "the input tensor %s must have at least 2 dimensions, got %d", name, v.Rank())
	case d.IsComplex():
		a.Fail(ErrDType, "not defined for matrices of %v: only for f32 and f64", d)
	case d == F16 || d == BF16:
		a.Fail(ErrDType, "low precision dtypes are not supported, got %v: cast to f32", d)
	case d != F32 && d != F64:
		a.Fail(ErrDType, "expected a floating point tensor as input, got %v", d)
	}
	return v
}

// requireSquare is requireMatrices for square ones.
func requireSquare(a Args, name string) Value {
	v := requireMatrices(a, name)
	if v.Dim(-1) != v.Dim(-2) {
		a.Fail(ErrShape, "%s must be batches of square matrices, but they are %d by %d matrices", name, v.Dim(-2), v.Dim(-1))
	}
	return v
}

// requireAlike fails unless an operand has the dtype of another.
func requireAlike(a Args, v Value, name string) {
	if d := a.Tensor(name).DType(); d != v.DType() {
		a.Fail(ErrDType, "expected %s to have the dtype of the other operand, %v, got %v", name, v.DType(), d)
	}
}

// likeBatch returns a shape with the batch of v's matrices and other dimensions behind it.
func likeBatch(v Value, d DType, dims ...int) Shape {
	s := v.Shape()
	return MakeShape(d, append(s.Dims()[:s.Rank()-2], dims...)...)
}

func init() {
	register("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "The Cholesky factor L of symmetric positive-definite matrices L·Lᵀ, of which one triangle counts, or Lᵀ if upper, and as i32 " +
			"the order of the first leading minor that is not positive, 0 if there is none; with check_errors that is an error at run time (ErrLinAlg). " +
			"ATen's linalg_cholesky_ex.",
		Infer: func(a Args) []Shape {
			v := requireSquare(a, "self")
			return []Shape{v.Shape(), likeBatch(v, I32)}
		},
		VJP: vjpCholesky,
	})
	register("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "Both triangles of P·L·U = A in one matrix, the rows that were exchanged (i32, from 1), and as i32 the first diagonal element of U " +
			"that is 0, from 1; with check_errors that is an error at run time (ErrLinAlg). ATen's linalg_lu_factor_ex.",
		Infer: inferLUFactor,
		VJP:   vjpLUFactor,
	})
	register("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)", Spec{
		Category: Linalg, HostOnly: true,
		Doc:   "The permutation and both triangles of what lu_factor gives; what is not asked for is empty. ATen's lu_unpack.",
		Infer: inferLUUnpack,
		VJP:   vjpLUUnpack,
	})
	register("geqrf(Tensor self) -> (Tensor a, Tensor tau)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "R of a QR factorisation and below it the reflections whose product is Q, with their factors. ATen's geqrf.",
		Infer: func(a Args) []Shape {
			v := requireMatrices(a, "self")
			return []Shape{v.Shape(), likeBatch(v, v.DType(), min(v.Dim(-2), v.Dim(-1)))}
		},
		NoGrad: "take linalg_qr", GradFails: true,
	})
	register("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", Spec{
		Category: Linalg, HostOnly: true,
		Doc:    "The first columns of the product of the reflections that geqrf gives. ATen's linalg_householder_product.",
		Infer:  inferHouseholder,
		NoGrad: "take linalg_qr", GradFails: true,
	})
	register("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", Spec{
		Category: Linalg, HostOnly: true,
		Doc:    "input3 times Q, or its transpose, from the left or the right, where Q is given as geqrf does by self and input2. ATen's ormqr.",
		Infer:  inferOrmqr,
		NoGrad: "take linalg_qr", GradFails: true,
	})
	initQR()
}

func initQR() {
	register("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", Spec{
		Category: Linalg,
		Doc:      "The Cholesky factor of linalg_cholesky_ex; matrices that are not positive-definite are an error at run time (ErrLinAlg). ATen's linalg_cholesky.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(opLinalgCholeskyEx, []any{a.In[0]}, A("upper", a.Bool("upper")), A("check_errors", true))[:1]
		},
	})
	register("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", Spec{
		Category: Linalg, Doc: "Both triangles of P·L·U = A in one matrix, and the pivots. ATen's linalg_lu_factor.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(opLinalgLUFactorEx, []any{a.In[0]}, A("pivot", a.Bool("pivot")))[:2]
		},
	})
	register("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", Spec{
		Category: Linalg, Doc: "The factors of P·L·U = A: a permutation, a lower and an upper triangle. ATen's linalg_lu.",
		Decompose: func(b *Builder, a Args) []Value {
			f := b.Call(opLinalgLUFactorEx, []any{a.In[0]}, A("pivot", a.Bool("pivot")))
			return b.Call(opLUUnpack, []any{f[0], f[1]})
		},
	})
	register("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "The factors of Q·R = A, Q with orthonormal columns and R an upper triangle: min(m, n) columns of Q, all for mode 'complete', " +
			"none for 'r'. ATen's linalg_qr.",
		Decompose: decomposeQR,
		VJP:       vjpQR,
	})
}

func inferLUFactor(a Args) []Shape {
	v := requireMatrices(a, "A")
	if !a.Bool("pivot") {
		a.Fail(ErrArg, "LU without pivoting is not implemented: leave pivot true")
	}
	return []Shape{v.Shape(), likeBatch(v, I32, min(v.Dim(-2), v.Dim(-1))), likeBatch(v, I32)}
}

func inferLUUnpack(a Args) []Shape {
	v, p := requireMatrices(a, "LU_data"), a.Tensor("LU_pivots").Shape()
	m, n, d := v.Dim(-2), v.Dim(-1), v.DType()
	k := min(m, n)
	if p != likeBatch(v, I32, k) {
		a.Fail(ErrShape, "LU_pivots must be %v, as linalg_lu_factor gives them, got %v", likeBatch(v, I32, k), p)
	}
	out := []Shape{MakeShape(d, 0), MakeShape(d, 0), MakeShape(d, 0)}
	if a.Bool("unpack_pivots") {
		out[0] = likeBatch(v, d, m, m)
	}
	if a.Bool("unpack_data") {
		out[1], out[2] = likeBatch(v, d, m, k), likeBatch(v, d, k, n)
	}
	return out
}

func inferHouseholder(a Args) []Shape {
	v, tau := requireMatrices(a, "input"), a.Tensor("tau")
	requireAlike(a, v, "tau")
	if v.Dim(-2) < v.Dim(-1) {
		a.Fail(ErrShape, "the matrices of input must have no more columns than rows, but they are %d by %d", v.Dim(-2), v.Dim(-1))
	}
	if tau.Rank() != v.Rank()-1 || tau.Dim(-1) > v.Dim(-1) || tau.Shape() != likeBatch(v, v.DType(), tau.Dim(-1)) {
		a.Fail(ErrShape, "tau must have the batch of input and at most %d factors, got %v", v.Dim(-1), tau.Shape())
	}
	return []Shape{v.Shape()}
}

func inferOrmqr(a Args) []Shape {
	v, tau, c := requireMatrices(a, "self"), a.Tensor("input2"), requireMatrices(a, "input3")
	requireAlike(a, v, "input2")
	requireAlike(a, v, "input3")
	side := -2
	if !a.Bool("left") {
		side = -1
	}
	if tau.Rank() == 0 {
		a.Fail(ErrShape, "input2 has no dimensions")
	}
	k := tau.Shape().Dim(-1)
	if !batchDims(v.Shape()).SameDims(batchDims(c.Shape())) || tau.Shape() != likeBatch(v, v.DType(), k) || k > v.Dim(-1) || v.Dim(-2) != c.Dim(side) || k > v.Dim(-2) {
		a.Fail(ErrShape, "%d reflections of %d by %d matrices do not fit %d by %d matrices", k, v.Dim(-2), v.Dim(-1), c.Dim(-2), c.Dim(-1))
	}
	return []Shape{c.Shape()}
}

func decomposeQR(b *Builder, a Args) []Value {
	v := requireMatrices(a, "A")
	m, n, mode := v.Dim(-2), v.Dim(-1), a.Str("mode")
	if mode != "reduced" && mode != "complete" && mode != "r" {
		a.Fail(ErrArg, "mode must be one of 'reduced', 'complete' and 'r', got %q", mode)
	}
	f := b.Call(opGeqrf, []any{v})
	k := min(m, n)
	if mode == "complete" {
		k = m
	}
	r := b.triu(b.Slice(f[0], v.Rank()-2, 0, min(k, m), 1))
	if mode == "r" {
		return []Value{b.Full([]int{0}, 0, v.DType()), r}
	}
	below := f[0]
	if k < n {
		below = b.Slice(below, v.Rank()-1, 0, k, 1)
	} else if k > n {
		below = b.padDim(below, v.Rank()-1, 0, k-n, 0)
	}
	return []Value{b.Call1(opLinalgHouseholderProduct, []any{below, f[1]}), r}
}

func (b *Builder) mT(x Value) Value { return b.Transpose(x, -2, -1) }

func (b *Builder) tril(x Value, diagonal int) Value {
	return b.callNamed("tril", []any{x, diagonal})
}

func (b *Builder) triu(x Value) Value { return b.callNamed("triu", []any{x, 0}) }

// identity returns the identity matrix of a dtype.
func (b *Builder) identity(n int, d DType) Value {
	return b.callNamed("eye", []any{n}, A("dtype", d))
}

// onDiagonal returns matrices whose diagonal is x, and 0 elsewhere.
func (b *Builder) onDiagonal(x Value) Value {
	return b.Mul(b.Unsqueeze(x, x.Rank()), b.identity(x.Dim(-1), x.DType()))
}

func (b *Builder) diagonal(x Value) Value { return b.callNamed("diagonal", []any{x, 0, -2, -1}) }

// orZero is a cotangent, or zeros where none flows.
func (b *Builder) orZero(g, x Value) Value {
	if g.IsNil() {
		return b.fullLike(x, 0)
	}
	return g
}

// solveTri solves t·X = y, or X·t = y if left is false, for triangles t.
func (b *Builder) solveTri(t, y Value, upper, left bool) Value {
	return b.Call1(opLinalgSolveTriangular, []any{t, y}, A("upper", upper), A("left", left))
}

// halved is the lower triangle of x with half its diagonal.
func (b *Builder) halved(x Value) Value {
	return b.Sub(b.tril(x, 0), b.scale(b.onDiagonal(b.diagonal(x)), 0.5))
}

// vjpCholesky is symmetric, as ATen's.
func vjpCholesky(b *Builder, a Args, out, grad []Value) []Value {
	if grad[0].IsNil() {
		return []Value{{}}
	}
	l, g := out[0], grad[0]
	if a.Bool("upper") {
		l, g = b.mT(l), b.mT(g)
	}
	phi := b.halved(b.MatMul(b.mT(l), g))
	s := b.solveTri(b.mT(l), phi, true, true)
	s = b.solveTri(l, s, false, false)
	return []Value{b.scale(b.Add(s, b.mT(s)), 0.5)}
}

func vjpLUFactor(b *Builder, a Args, out, grad []Value) []Value {
	lu, g := out[0], grad[0]
	if g.IsNil() {
		return []Value{{}}
	}
	if lu.Dim(-1) != lu.Dim(-2) {
		a.Fail(ErrShape, "the gradient is known for square matrices only, not for %d by %d", lu.Dim(-2), lu.Dim(-1))
	}
	f := b.Call(opLUUnpack, []any{lu, out[1]})
	p, l, u := f[0], f[1], f[2]
	phi := b.Add(b.tril(b.MatMul(b.mT(l), b.tril(g, -1)), -1), b.triu(b.MatMul(b.triu(g), b.mT(u))))
	s := b.solveTri(b.mT(l), phi, true, true)
	s = b.solveTri(b.mT(u), s, false, false)
	return []Value{b.MatMul(p, s)}
}

func vjpLUUnpack(b *Builder, a Args, out, grad []Value) []Value {
	lu := a.In[0]
	if !a.Bool("unpack_data") {
		return []Value{{}, {}}
	}
	m, n, rank := lu.Dim(-2), lu.Dim(-1), lu.Rank()
	k := min(m, n)
	gl := b.padDim(b.tril(b.orZero(grad[1], out[1]), -1), rank-1, 0, n-k, 0)
	gu := b.padDim(b.triu(b.orZero(grad[2], out[2])), rank-2, 0, m-k, 0)
	return []Value{b.Add(gl, gu), {}}
}

func vjpQR(b *Builder, a Args, out, grad []Value) []Value {
	m, n, mode := a.In[0].Dim(-2), a.In[0].Dim(-1), a.Str("mode")
	if mode == "r" || mode == "complete" && m > n {
		a.Fail(ErrArg, "no gradient flows through mode %q of %d by %d matrices: take 'reduced'", mode, m, n)
	}
	q, r := out[0], out[1]
	gq, gr := b.orZero(grad[0], q), b.orZero(grad[1], r)
	if m >= n {
		return []Value{b.vjpTallQR(q, r, gq, gr)}
	}
	last := a.In[0].Rank() - 1
	left := func(x Value) Value { return b.Slice(x, last, 0, m, 1) }
	right := func(x Value) Value { return b.Slice(x, last, m, n, 1) }
	gq = b.Add(gq, b.MatMul(right(a.In[0]), b.mT(right(gr))))
	return []Value{b.Cat([]Value{b.vjpTallQR(q, left(r), gq, left(gr)), b.MatMul(q, right(gr))}, last)}
}

func (b *Builder) vjpTallQR(q, r, gq, gr Value) Value {
	x := b.Sub(b.MatMul(r, b.mT(gr)), b.MatMul(b.mT(gq), q))
	x = b.Add(b.tril(x, 0), b.mT(b.tril(x, -1)))
	return b.solveTri(b.mT(r), b.Add(gq, b.MatMul(q, x)), false, false)
}
