package ir

import "strconv"

// Eigenvalues, singular values, and what follows from them.

func init() {
	register("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "Ascending eigenvalues and, if compute_v, orthonormal eigenvectors of symmetric matrices, of which one triangle counts. " +
			"The sign of each vector is arbitrary. ATen's _linalg_eigh.",
		Infer: inferEigh, VJP: vjpEigh,
	})
	register("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", Spec{
		Category: Linalg,
		Doc:      "Ascending eigenvalues and orthonormal eigenvectors of symmetric matrices, of which the triangle UPLO ('L' or 'U') counts. ATen's linalg_eigh.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(opLinalgEigh, []any{a.In[0], a.Str("UPLO")})
		},
	})
	register("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", Spec{
		Category: Linalg, Doc: "Ascending eigenvalues of symmetric matrices, of which the triangle UPLO ('L' or 'U') counts. ATen's linalg_eigvalsh.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(opLinalgEigh, []any{a.In[0], a.Str("UPLO")})[:1]
		},
	})
	register("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", Spec{
		Category: Linalg, HostOnly: true, Doc: "Complex eigenvalues, in no order, and eigenvectors of length 1 of square matrices. ATen's linalg_eig.",
		Infer: func(a Args) []Shape {
			v := requireSquare(a, "self")
			d := v.DType().complexOf()
			return []Shape{likeBatch(v, d, v.Dim(-1)), v.Shape().WithDType(d)}
		},
		NoGrad: "it needs solutions of complex systems", GradFails: true,
	})
	register("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor Vh)", Spec{
		Category: Linalg, HostOnly: true,
		Doc: "The factors of U·diag(S)·Vh = A: descending singular values, and if compute_uv orthonormal vectors, all of them with full_matrices. " +
			"The sign of each pair of vectors is arbitrary. ATen's _linalg_svd.",
		Infer: inferSVD, VJP: vjpSVD,
	})
	register("linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)", Spec{
		Category: Linalg,
		Doc:      "The factors of U·diag(S)·Vh = A: descending singular values and orthonormal vectors, all of them with full_matrices. ATen's linalg_svd.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(opLinalgSVD, []any{a.In[0], a.Bool("full_matrices")})
		},
	})
	register("linalg_svdvals(Tensor A) -> Tensor", Spec{
		Category: Linalg, Doc: "Descending singular values of matrices. ATen's linalg_svdvals.",
		Decompose: func(b *Builder, a Args) []Value { return b.Call(opLinalgSVD, []any{a.In[0]})[1:2] },
	})
	initFunctionsOfMatrices()
}

func initFunctionsOfMatrices() {
	for _, name := range []string{"linalg_matrix_exp", "matrix_exp"} {
		s := Spec{
			Category: Linalg, HostOnly: true, Doc: "The exponential of square matrices: 1 + A + A²/2 + A³/6 + …. ATen's " + name + ".",
			Infer: func(a Args) []Shape { return []Shape{requireSquare(a, "self").Shape()} },
			VJP:   vjpMatrixExp,
		}
		if name == "matrix_exp" {
			s.Infer, s.VJP, s.HostOnly = nil, nil, false
			s.Decompose = func(b *Builder, a Args) []Value { return []Value{b.linalgMatrixExp(a.In[0])} }
		}
		register(name+"(Tensor self) -> Tensor", s)
	}
	register("linalg_matrix_power(Tensor self, int n) -> Tensor", Spec{
		Category: Linalg, Doc: "Square matrices to the power n, which may be negative. ATen's linalg_matrix_power.",
		Decompose: decomposeMatrixPower,
	})
	register("linalg_pinv(Tensor self, *, float? atol=None, float? rtol=None) -> Tensor", Spec{
		Category: Linalg,
		Doc: "Pseudoinverses: singular values that are not above the larger of atol and rtol times the largest count as 0. " +
			"rtol is max(m, n) times the dtype's epsilon if neither is given, else 0. ATen's linalg_pinv.atol_rtol_float.",
		Decompose: decomposePinv, VJP: vjpPinv,
	})
	register("linalg_matrix_rank(Tensor input, *, float? atol=None, float? rtol=None) -> Tensor", Spec{
		Category: Linalg, Doc: "The number (i64) of singular values that count, by the rule of linalg_pinv. ATen's linalg_matrix_rank.atol_rtol_float.",
		Decompose: func(b *Builder, a Args) []Value {
			s := b.Call(opLinalgSVD, []any{requireMatrices(a, "input"), false, false})[1]
			return []Value{b.Sum(b.Cast(b.gt(s, b.tolerance(a, s)), I64), []int{-1}, false)}
		},
		NoGrad: "the result is a number of singular values",
	})
	register("linalg_matrix_norm(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False) -> Tensor", Spec{
		Category: Linalg,
		Doc: "Norms of the matrices of two dimensions: 'fro', 'nuc', or a number as text: '1', '-1', 'inf', '-inf' are the largest and smallest sums of " +
			"magnitudes of columns and rows, '2' and '-2' singular values. ATen's linalg_matrix_norm.",
		Decompose: decomposeMatrixNorm,
	})
	register("linalg_multi_dot(Tensor[] tensors) -> Tensor", Spec{
		Category: Linalg, Doc: "The product of two or more matrices; the first and the last may be vectors. ATen's linalg_multi_dot.",
		Decompose: func(b *Builder, a Args) []Value {
			if len(a.In) < 2 {
				a.Fail(ErrArg, "expected at least 2 tensors, got %d", len(a.In))
			}
			p := a.In[0]
			for i, x := range a.In[1:] {
				if r := x.Rank(); r != 2 && (r != 1 || i+2 != len(a.In)) {
					a.Fail(ErrShape, "tensor %d must be a matrix, got %v", i+1, x.Shape())
				}
				p = b.MatMul(p, x)
			}
			return []Value{p}
		},
	})
}

func inferEigh(a Args) []Shape {
	v := requireSquare(a, "A")
	if u := a.Str("UPLO"); u != "L" && u != "U" {
		a.Fail(ErrArg, "UPLO must be 'L' or 'U', got %q", u)
	}
	vectors := MakeShape(v.DType(), 0)
	if a.Bool("compute_v") {
		vectors = v.Shape()
	}
	return []Shape{likeBatch(v, v.DType(), v.Dim(-1)), vectors}
}

func inferSVD(a Args) []Shape {
	v := requireMatrices(a, "A")
	m, n, d := v.Dim(-2), v.Dim(-1), v.DType()
	k, ku, kv := min(m, n), min(m, n), min(m, n)
	if a.Bool("full_matrices") {
		ku, kv = m, n
	}
	u, vh := MakeShape(d, 0), MakeShape(d, 0)
	if a.Bool("compute_uv") {
		u, vh = likeBatch(v, d, m, ku), likeBatch(v, d, kv, n)
	}
	return []Shape{u, likeBatch(v, d, k), vh}
}

// differences returns x_j - x_i in row i and column j, with 1 on the diagonal.
func (b *Builder) differences(x Value) Value {
	return b.Add(b.Sub(b.Unsqueeze(x, -2), b.Unsqueeze(x, -1)), b.identity(x.Dim(-1), x.DType()))
}

func vjpEigh(b *Builder, a Args, out, grad []Value) []Value {
	if !a.Bool("compute_v") {
		a.Fail(ErrArg, "a gradient needs the eigenvectors: leave compute_v true")
	}
	l, v := out[0], out[1]
	inner := b.onDiagonal(b.orZero(grad[0], l))
	if !grad[1].IsNil() {
		p := b.MatMul(b.mT(v), grad[1])
		inner = b.Add(inner, b.Div(b.Sub(p, b.onDiagonal(b.diagonal(p))), b.differences(l)))
	}
	return []Value{b.MatMul(b.MatMul(v, inner), b.mT(v))}
}

func vjpSVD(b *Builder, a Args, out, grad []Value) []Value {
	m, n := a.In[0].Dim(-2), a.In[0].Dim(-1)
	switch {
	case !a.Bool("compute_uv"):
		a.Fail(ErrArg, "a gradient needs the singular vectors: leave compute_uv true")
	case a.Bool("full_matrices") && m != n:
		a.Fail(ErrArg, "the gradient of the vectors of %d by %d matrices is known without full_matrices only", m, n)
	}
	u, s, v := out[0], out[1], b.mT(out[2])
	inner := b.onDiagonal(b.orZero(grad[1], s))
	if grad[0].IsNil() && grad[2].IsNil() {
		return []Value{b.MatMul(b.MatMul(u, inner), out[2])}
	}
	gu, gv := b.orZero(grad[0], u), b.mT(b.orZero(grad[2], out[2]))
	e := b.differences(b.Mul(s, s))
	turned := func(x, g Value) Value {
		p := b.MatMul(b.mT(x), g)
		return b.Div(b.Sub(p, b.mT(p)), e)
	}
	row, column := b.Unsqueeze(s, -2), b.Unsqueeze(s, -1)
	inner = b.Add(inner, b.Add(b.Mul(turned(u, gu), row), b.Mul(column, turned(v, gv))))
	g := b.MatMul(b.MatMul(u, inner), out[2])
	rest := func(x, g Value) Value { return b.Div(b.Sub(g, b.MatMul(x, b.MatMul(b.mT(x), g))), row) }
	if m > n {
		g = b.Add(g, b.MatMul(rest(u, gu), out[2]))
	}
	if m < n {
		g = b.Add(g, b.MatMul(u, b.mT(rest(v, gv))))
	}
	return []Value{g}
}

// vjpMatrixExp takes the derivative of the exponential at Aᵀ in the direction of g from the
// exponential of a matrix of blocks.
func vjpMatrixExp(b *Builder, a Args, out, grad []Value) []Value {
	t := b.mT(a.In[0])
	r, n := t.Rank(), t.Dim(-1)
	top, bottom := b.Cat([]Value{t, grad[0]}, r-1), b.Cat([]Value{b.fullLike(t, 0), t}, r-1)
	e := b.linalgMatrixExp(b.Cat([]Value{top, bottom}, r-2))
	return []Value{b.Slice(b.Slice(e, r-2, 0, n, 1), r-1, n, 2*n, 1)}
}

func decomposeMatrixPower(b *Builder, a Args) []Value {
	x, n := a.In[0], a.Int("n")
	if x.Rank() < 2 || x.Dim(-1) != x.Dim(-2) {
		a.Fail(ErrShape, "self must be batches of square matrices, got %v", x.Shape())
	}
	if n < 0 {
		x, n = b.callFirst("linalg_inv", x), -n
	}
	p := b.Expand(b.identity(x.Dim(-1), x.DType()), x.Shape().Dims()...)
	for first := true; n > 0; n >>= 1 {
		if n&1 != 0 && first {
			p, first = x, false
		} else if n&1 != 0 {
			p = b.MatMul(p, x)
		}
		if n > 1 {
			x = b.MatMul(x, x)
		}
	}
	return []Value{p}
}

// tolerance is what singular values, in descending order, must be above to count.
func (b *Builder) tolerance(a Args, s Value) Value {
	atol, hasA := a.OptFloat("atol")
	rtol, hasR := a.OptFloat("rtol")
	if !hasA && !hasR {
		eps := 0x1p-23
		if s.DType() == F64 {
			eps = 0x1p-52
		}
		rtol = eps * float64(max(a.In[0].Dim(-1), a.In[0].Dim(-2)))
	}
	if s.Dim(-1) == 0 {
		return s
	}
	largest := b.Slice(s, s.Rank()-1, 0, 1, 1)
	return b.maximum(b.scale(largest, rtol), b.fullLike(largest, atol))
}

func decomposePinv(b *Builder, a Args) []Value {
	f := b.Call(opLinalgSVD, []any{requireMatrices(a, "self")})
	s, zero := f[1], b.zeroOf(f[1])
	inverse := b.Where(b.gt(s, b.tolerance(a, s)), b.reciprocal(s), zero)
	return []Value{b.MatMul(b.Mul(b.mT(f[2]), b.Unsqueeze(inverse, -2)), b.mT(f[0]))}
}

func vjpPinv(b *Builder, a Args, out, grad []Value) []Value {
	x, p := a.In[0], out[0]
	pt, g := b.mT(p), b.mT(grad[0])
	if x.Dim(-2) <= x.Dim(-1) {
		k := b.MatMul(g, p)
		kp := b.MatMul(k, pt)
		r := b.Sub(b.Sub(kp, b.mT(b.MatMul(p, k))), b.MatMul(b.MatMul(x, p), kp))
		return []Value{b.Add(r, b.MatMul(b.MatMul(pt, p), b.Sub(g, b.MatMul(k, x))))}
	}
	k := b.MatMul(p, g)
	pk := b.MatMul(pt, k)
	r := b.Sub(b.Sub(pk, b.mT(b.MatMul(k, p))), b.MatMul(b.MatMul(pk, p), x))
	return []Value{b.Add(r, b.MatMul(b.MatMul(b.Sub(g, b.MatMul(x, k)), p), pt))}
}

func decomposeMatrixNorm(b *Builder, a Args) []Value {
	x, dims, keep, ord := a.In[0], a.Ints("dim"), a.Bool("keepdim"), a.Str("ord")
	if len(dims) != 2 || x.Rank() < 2 {
		a.Fail(ErrShape, "dim must be two dimensions of a tensor with at least 2, got %v and %v", dims, x.Shape())
	}
	rows, cols := a.NormDim(dims[0], x.Rank()), a.NormDim(dims[1], x.Rank())
	if rows == cols {
		a.Fail(ErrIndex, "dimension %d appears twice in dim", rows)
	}
	if ord == "fro" {
		return []Value{b.callNamed("norm", []any{x, 2.0, []int{rows, cols}, keep})}
	}
	p, err := strconv.ParseFloat(ord, 64)
	if size := max(p, -p); ord != "nuc" && (err != nil || size != 1 && size != 2 && size <= 1e308) {
		a.Fail(ErrArg, "order %q is not supported: take 'fro', 'nuc', '1', '-1', '2', '-2', 'inf' or '-inf'", ord)
	}
	var r Value
	switch {
	case ord == "nuc" || p == 2 || p == -2:
		s := b.callFirst("linalg_svdvals", b.Permute(x, moveDims(a, []int{rows, cols}, []int{-2, -1})...))
		switch {
		case ord == "nuc":
			r = b.Sum(s, []int{-1}, false)
		case p > 0:
			r = b.Amax(s, []int{-1}, false)
		default:
			r = b.amin(s, []int{-1}, false)
		}
	default:
		along, over := rows, cols
		if p != 1 && p != -1 {
			along, over = cols, rows
		}
		sums := b.Sum(b.abs(x), []int{along}, true)
		if r = b.Amax(sums, []int{along, over}, false); p < 0 {
			r = b.amin(sums, []int{along, over}, false)
		}
	}
	if keep {
		kept := x.Shape().Dims()
		kept[rows], kept[cols] = 1, 1
		r = b.Reshape(r, kept...)
	}
	return []Value{r}
}
