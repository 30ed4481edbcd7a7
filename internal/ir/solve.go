package ir

// Systems of linear equations, inverses and determinants.

func init() {
	register("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "X of self·X = B, or of X·self = B if left is false, for triangles self, whose other elements do not count; batches broadcast. " +
			"A zero on the diagonal gives infinities. ATen's linalg_solve_triangular.",
		Infer: inferSolveTriangular,
		VJP:   vjpSolveTriangular,
	})
	register("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "X of A·X = B, or of X·A = B if left is false, with A, or its transpose if adjoint, given as linalg_lu_factor does; batches broadcast. " +
			"ATen's linalg_lu_solve.",
		Decompose: func(b *Builder, a Args) []Value {
			requireSquare(a, "LU")
			requireMatrices(a, "B")
			requireAlike(a, a.In[0], "B")
			return []Value{b.solveTriangles(a.In[0], a.In[1], a.In[2], a.Bool("left"), a.Bool("adjoint"))}
		},
	})
	solved := "X of A·X = B, or of X·A = B if left is false; B may be vectors, and batches broadcast."
	register("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)", Spec{
		Category: Linalg, HostOnly: true, Doc: solved + " It also gives the factors of A. ATen's _linalg_solve_ex.",
		Decompose: decomposeSolve, VJP: vjpSolve,
	})
	register("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)", Spec{
		Category: Linalg, Doc: solved + " info is as of linalg_lu_factor_ex. ATen's linalg_solve_ex.",
		Decompose: func(b *Builder, a Args) []Value {
			o := b.solveEx(a.In[0], a.In[1], a.Bool("left"), a.Bool("check_errors"))
			return []Value{o[0], o[3]}
		},
	})
	register("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", Spec{
		Category: Linalg, Doc: solved + " A singular matrix is an error at run time (ErrLinAlg). ATen's linalg_solve.",
		Decompose: func(b *Builder, a Args) []Value { return b.solveEx(a.In[0], a.In[1], a.Bool("left"), true)[:1] },
	})
	initSolversWithFactors()
	initInverseMatrices()
	initDeterminants()
}

// initSolversWithFactors has the solvers to which factors are given.
func initSolversWithFactors() {
	register("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)", Spec{
		Category: Linalg, HostOnly: true, Doc: "X of A·X = self, or of Aᵀ·X = self if transpose, for triangles A, and A; batches broadcast. ATen's triangular_solve.",
		Decompose: func(b *Builder, a Args) []Value {
			t, upper := requireSquare(a, "A"), a.Bool("upper")
			requireMatrices(a, "self")
			if a.Bool("transpose") {
				t, upper = b.mT(t), !upper
			}
			x := b.Call1(opLinalgSolveTriangular, []any{t, a.In[0]}, A("upper", upper), A("unitriangular", a.Bool("unitriangular")))
			dims := append(batchDims(x.Shape()).Dims(), a.In[1].Dim(-2), a.In[1].Dim(-1))
			return []Value{x, b.Expand(a.In[1], dims...)}
		},
	})
	register("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", Spec{
		Category: Linalg, HostOnly: true, Doc: "X of A·X = self, where input2 is the Cholesky factor of A; batches broadcast. ATen's cholesky_solve.",
		Decompose: func(b *Builder, a Args) []Value {
			requireSquare(a, "input2")
			requireMatrices(a, "self")
			return []Value{b.solveCholesky(a.In[1], a.In[0], a.Bool("upper"))}
		},
	})
	register("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", Spec{
		Category: Linalg, HostOnly: true, Doc: "The inverse of A, where self is the Cholesky factor of A. ATen's cholesky_inverse.",
		Decompose: func(b *Builder, a Args) []Value {
			v := requireSquare(a, "self")
			if a.Bool("upper") {
				v = b.mT(v)
			}
			inverse := b.inverseOfLower(v)
			return []Value{b.MatMul(b.mT(inverse), inverse)}
		},
	})
}

func initInverseMatrices() {
	register("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", Spec{
		Category: Linalg, HostOnly: true, Doc: "Inverses of square matrices, and info as of linalg_lu_factor_ex. ATen's linalg_inv_ex.",
		Decompose: func(b *Builder, a Args) []Value {
			v := requireSquare(a, "A")
			f := b.Call(opLinalgLUFactorEx, []any{v}, A("check_errors", a.Bool("check_errors")))
			return []Value{b.solveLU(f[0], f[1], b.identity(v.Dim(-1), v.DType()), true, false), f[2]}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			if grad[0].IsNil() {
				return []Value{{}}
			}
			t := b.mT(out[0])
			return []Value{b.Neg(b.MatMul(t, b.MatMul(grad[0], t)))}
		},
	})
	for _, name := range []string{"linalg_inv", "inverse"} {
		param := map[string]string{"linalg_inv": "A", "inverse": "self"}[name]
		register(name+"(Tensor "+param+") -> Tensor", Spec{
			Category: Linalg, Doc: "Inverses of square matrices; a singular one is an error at run time (ErrLinAlg). ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				return []Value{b.callFirst("linalg_inv_ex", a.In[0], A("check_errors", true))}
			},
		})
	}
}

func initDeterminants() {
	register("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", Spec{
		Category: Linalg, HostOnly: true, Doc: "Determinants of square matrices, and the factors of their transposes. ATen's _linalg_det.",
		Decompose: func(b *Builder, a Args) []Value {
			f := b.Call(opLinalgLUFactorEx, []any{b.mT(requireSquare(a, "A"))})
			return []Value{b.Mul(b.parity(f[1], f[0].DType()), b.prod(b.diagonal(f[0]), []int{-1}, false)), f[0], f[1]}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			if grad[0].IsNil() {
				return []Value{{}}
			}
			return []Value{b.timesInverse(b.Mul(grad[0], out[0]), out[1], out[2])}
		},
	})
	register("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", Spec{
		Category: Linalg, HostOnly: true, Doc: "Signs of determinants and the logarithms of their magnitudes, and the factors of the transposes. ATen's _linalg_slogdet.",
		Decompose: func(b *Builder, a Args) []Value {
			f := b.Call(opLinalgLUFactorEx, []any{b.mT(requireSquare(a, "A"))})
			d := b.diagonal(f[0])
			sign := b.Mul(b.parity(f[1], d.DType()), b.prod(b.sign(d), []int{-1}, false))
			return []Value{sign, b.Sum(b.log(b.abs(d)), []int{-1}, false), f[0], f[1]}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			if grad[1].IsNil() {
				return []Value{{}}
			}
			return []Value{b.timesInverse(grad[1], out[2], out[3])}
		},
	})
	for _, name := range []string{"linalg_det", "det"} {
		param := map[string]string{"linalg_det": "A", "det": "self"}[name]
		register(name+"(Tensor "+param+") -> Tensor", Spec{
			Category: Linalg, Doc: "Determinants of square matrices. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value { return []Value{b.callFirst("_linalg_det", a.In[0])} },
		})
	}
	for _, name := range []string{"linalg_slogdet", "slogdet"} {
		param := map[string]string{"linalg_slogdet": "A", "slogdet": "self"}[name]
		register(name+"(Tensor "+param+") -> (Tensor sign, Tensor logabsdet)", Spec{
			Category: Linalg, Doc: "Signs of determinants and the logarithms of their magnitudes. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value {
				return b.Call(byName["_linalg_slogdet"], []any{a.In[0]})[:2]
			},
		})
	}
}

// callFirst makes one use of an op of one operand, found by name, and returns its first output.
func (b *Builder) callFirst(name string, x Value, named ...Named) Value {
	return b.Call(byName[name], []any{x}, named...)[0]
}

// parity is -1 for an odd number of exchanges of rows, else 1.
func (b *Builder) parity(pivots Value, d DType) Value {
	moved := b.ne(pivots, b.Add(b.Iota(pivots.Dim(-1), I32), b.Const(1, I32)))
	odd := b.remainder(b.Sum(b.Cast(moved, I64), []int{-1}, false), b.Const(2, I64))
	return b.oneMinus(b.scale(b.Cast(odd, d), 2))
}

// timesInverse is g·A⁻ᵀ, given the factors of Aᵀ.
func (b *Builder) timesInverse(g, lu, pivots Value) Value {
	n := lu.Dim(-1)
	diagonal := b.Mul(b.Reshape(g, append(g.Shape().Dims(), 1, 1)...), b.identity(n, g.DType()))
	return b.solveLU(lu, pivots, diagonal, true, false)
}

// solveLU makes one use of linalg_lu_solve.
func (b *Builder) solveLU(lu, pivots, y Value, left, adjoint bool) Value {
	return b.Call(byName["linalg_lu_solve"], []any{lu, pivots, y}, A("left", left), A("adjoint", adjoint))[0]
}

// solveTriangles solves with both triangles and the permutation of a factored matrix.
func (b *Builder) solveTriangles(lu, pivots, y Value, left, adjoint bool) Value {
	if !left { // X·A = B is Aᵀ·Xᵀ = Bᵀ
		return b.mT(b.solveTriangles(lu, pivots, b.mT(y), true, !adjoint))
	}
	p := b.Call(opLUUnpack, []any{lu, pivots}, A("unpack_data", false))[0]
	unit := func(t, y Value, upper bool) Value {
		return b.Call1(opLinalgSolveTriangular, []any{t, y}, A("upper", upper), A("unitriangular", true))
	}
	if adjoint {
		y = b.solveTri(b.mT(lu), y, false, true)
		return b.MatMul(p, unit(b.mT(lu), y, true))
	}
	return b.solveTri(lu, unit(lu, b.MatMul(b.mT(p), y), false), true, true)
}

func (b *Builder) solveCholesky(factor, y Value, upper bool) Value {
	if upper {
		factor = b.mT(factor)
	}
	return b.solveTri(b.mT(factor), b.solveTri(factor, y, false, true), true, true)
}

// inverseOfLower returns the inverses of lower triangles. A large one is cut into four: what is below the
// diagonal are two products, and solving for both halves is a fourth of the work.
func (b *Builder) inverseOfLower(t Value) Value {
	n := t.Dim(-1)
	solve := func(t Value) Value { return b.solveTri(t, b.identity(t.Dim(-1), t.DType()), false, true) }
	if n < 32 {
		return solve(t)
	}
	part := func(row0, row1, col0, col1 int) Value {
		return b.Slice(b.Slice(t, -2, row0, row1, 1), -1, col0, col1, 1)
	}
	half := n / 2
	first, last := part(0, half, 0, half), part(half, n, half, n)
	first, last = solve(first), solve(last)
	below := b.Neg(b.MatMul(last, b.MatMul(part(half, n, 0, half), first)))
	dims := first.Shape().Dims()
	dims[len(dims)-1] = n - half
	above := b.Full(dims, 0, t.DType())
	return b.Cat([]Value{b.Cat([]Value{first, above}, -1), b.Cat([]Value{below, last}, -1)}, -2)
}

// solveEx makes one use of _linalg_solve_ex.
func (b *Builder) solveEx(x, y Value, left, check bool) []Value {
	return b.Call(byName["_linalg_solve_ex"], []any{x, y}, A("left", left), A("check_errors", check))
}

// vectorsFor reports whether the right sides of a system are vectors, by ATen's rule.
func vectorsFor(x, y Value) bool {
	s := x.Shape().Dims()
	return y.Rank() == 1 || y.Shape().SameDims(MakeShape(F32, s[:len(s)-1]...))
}

func decomposeSolve(b *Builder, a Args) []Value {
	x, y := requireSquare(a, "A"), a.In[1]
	requireAlike(a, x, "B")
	vectors := vectorsFor(x, y)
	if vectors {
		if !a.Bool("left") {
			a.Fail(ErrArg, "vectors B need left to be true")
		}
		y = b.Unsqueeze(y, y.Rank())
	}
	side := -2
	if !a.Bool("left") {
		side = -1
	}
	if y.Rank() < 2 || y.Dim(side) != x.Dim(-1) {
		a.Fail(ErrShape, "incompatible shapes of A and B for the equation: %v and %v", x.Shape(), a.In[1].Shape())
	}
	f := b.Call(opLinalgLUFactorEx, []any{x}, A("check_errors", a.Bool("check_errors")))
	r := b.solveLU(f[0], f[1], y, a.Bool("left"), false)
	if vectors {
		r = b.Reshape(r, r.Shape().Dims()[:r.Rank()-1]...)
	}
	return []Value{r, f[0], f[1], f[2]}
}

func vjpSolve(b *Builder, a Args, out, grad []Value) []Value {
	x, y, r, g := a.In[0], a.In[1], out[0], grad[0]
	if g.IsNil() {
		return []Value{{}, {}}
	}
	vectors, left := vectorsFor(x, y), a.Bool("left")
	if vectors {
		r, g = b.Unsqueeze(r, r.Rank()), b.Unsqueeze(g, g.Rank())
	}
	gy := b.solveLU(out[1], out[2], g, left, true)
	gx := b.MatMul(gy, b.mT(r))
	if !left {
		gx = b.MatMul(b.mT(r), gy)
	}
	if vectors {
		gy = b.Reshape(gy, gy.Shape().Dims()[:gy.Rank()-1]...)
	}
	return []Value{b.Neg(b.sumTo(gx, x.Shape())), b.sumTo(gy, y.Shape())}
}

func inferSolveTriangular(a Args) []Shape {
	t, y := requireSquare(a, "self"), requireMatrices(a, "B")
	requireAlike(a, t, "B")
	side := -2
	if !a.Bool("left") {
		side = -1
	}
	if y.Dim(side) != t.Dim(-1) {
		a.Fail(ErrShape, "incompatible shapes of self and B for the equation: %v and %v", t.Shape(), y.Shape())
	}
	batch, ok := BroadcastDims(batchDims(t.Shape()), batchDims(y.Shape()))
	if !ok {
		a.Fail(ErrShape, "the batch dimensions do not broadcast together")
	}
	return inferDims(a, t.DType(), append(batch.Dims(), y.Dim(-2), y.Dim(-1)))
}

func vjpSolveTriangular(b *Builder, a Args, out, grad []Value) []Value {
	t, x, upper, left := a.In[0], out[0], a.Bool("upper"), a.Bool("left")
	unit := a.Bool("unitriangular")
	gy := b.Call1(opLinalgSolveTriangular, []any{b.mT(t), grad[0]}, A("upper", !upper), A("left", left), A("unitriangular", unit))
	gt := b.MatMul(gy, b.mT(x))
	if !left {
		gt = b.MatMul(b.mT(x), gy)
	}
	gt = b.Neg(b.sumTo(gt, t.Shape()))
	skip := 0
	if unit {
		skip = 1
	}
	if upper {
		gt = b.callNamed("triu", []any{gt, skip})
	} else {
		gt = b.tril(gt, -skip)
	}
	return []Value{gt, b.sumTo(gy, a.In[1].Shape())}
}
