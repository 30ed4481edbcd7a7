package ir

func init() {
	register("matmul(Tensor self, Tensor other) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		GoName:   "MatMul",
		Doc:      "Matrix product with ATen's rules: two vectors give their dot product, a vector is a row on the left and a column on the right, and the dimensions before the last two broadcast. Both operands have one dtype, any but bool; f16 and bf16 accumulate in f32.",
		Category: Linalg, Infer: inferMatMul, VJP: vjpMatMul, Complex: complexMatMul,
	})
	product("mm(Tensor self, Tensor mat2) -> Tensor", 2, 2,
		"Matrix product of [n, k] and [k, m]. As torch.mm.")
	product("bmm(Tensor self, Tensor mat2) -> Tensor", 3, 3,
		"Matrix product of each pair of [b, n, k] and [b, k, m]; the batch does not broadcast. As torch.bmm.")
	product("mv(Tensor self, Tensor vec) -> Tensor", 2, 1,
		"Product of a matrix [n, k] and a vector [k]. As torch.mv.")
	product("dot(Tensor self, Tensor tensor) -> Tensor", 1, 1,
		"Dot product of two vectors of one length, a scalar. As torch.dot.")
	register("outer(Tensor self, Tensor vec2) -> Tensor", Spec{
		Doc:      "Outer product [n, m] of vectors [n] and [m], promoted to their common dtype. As torch.outer.",
		Category: Linalg, Promote: PromoteDefault, Decompose: outer,
	})
	register("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Spec{
		Doc:      "beta·self + alpha·(mat1 @ mat2) for matrices, self broadcasting to the product; where beta is 0 self counts nothing, even NaN. As torch.addmm.",
		Category: Linalg, Promote: PromoteScalars, Decompose: addProduct,
	})
	register("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Spec{
		Doc:      "As addmm for batches [b, n, k] and [b, k, m]. As torch.baddbmm.",
		Category: Linalg, Promote: PromoteScalars, Decompose: addProduct,
	})
	register("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Spec{
		Doc:      "As addmm for a matrix [n, k] and a vector [k]. As torch.addmv.",
		Category: Linalg, Promote: PromoteScalars, Decompose: addProduct,
	})
	register("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", Spec{
		Doc:      "input @ weightᵀ + bias for input [*, in], weight [out, in] and bias [out]; a weight [in] gives a result without the last dimension. As torch.nn.functional.linear.",
		Category: Linalg, Decompose: linear,
	})
}

// inferMatMul checks the inner dimensions and broadcasts the batches.
func inferMatMul(a Args) []Shape {
	x, y := a.In[0].Shape(), a.In[1].Shape()
	if x.DType() != y.DType() {
		a.Fail(ErrDType, "both operands must have one dtype, got %v and %v", x.DType(), y.DType())
	}
	if d := x.DType(); d == Bool || d.IsStorage() {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	if x.Rank() == 0 || y.Rank() == 0 {
		a.Fail(ErrShape, "both operands need at least one dimension, got ranks %d and %d", x.Rank(), y.Rank())
	}
	inner := y.Dim(max(y.Rank()-2, 0))
	if x.Dim(-1) != inner {
		a.Fail(ErrShape, "the inner dimensions %d and %d differ", x.Dim(-1), inner)
	}
	batch, ok := BroadcastDims(batchDims(x), batchDims(y))
	if !ok {
		a.Fail(ErrShape, "the batch dimensions do not broadcast together")
	}
	dims := batch.Dims()
	if x.Rank() > 1 {
		dims = append(dims, x.Dim(-2))
	}
	if y.Rank() > 1 {
		dims = append(dims, y.Dim(-1))
	}
	return []Shape{MakeShape(x.DType(), dims...)}
}

// batchDims returns the dimensions in front of the matrix of a matmul operand.
func batchDims(s Shape) Shape { return s.WithDims(s.Dims()[:max(s.Rank()-2, 0)]...) }

// vjpMatMul treats vectors as matrices, multiplies with the transposed other
// operand, and sums over the batches that an operand was broadcast along. A number
// that the gradient of bfloat16 was multiplied with, as that of addmm is with alpha,
// multiplies the products instead: their factors are then what they were widened from.
func vjpMatMul(b *Builder, a Args, out, grad []Value) []Value {
	x, y := a.In[0], a.In[1]
	xs, ys := x.Shape(), y.Shape()
	g, factor := grad[0], Value{}
	transpose := func(v Value) Value { return b.Transpose(v, -2, -1) }
	switch {
	case xs.Rank() == 1 && ys.Rank() == 1:
		return []Value{b.Mul(g, y), b.Mul(g, x)}
	case xs.Rank() > 1 && ys.Rank() > 1: // with a vector, f32 takes less time, and another pass over a matrix more
		g, factor = b.unscaled(g)
		transpose = b.transposeNarrow
	}
	switch {
	case xs.Rank() == 1:
		x, g = b.Unsqueeze(x, 0), b.Unsqueeze(g, -2)
	case ys.Rank() == 1:
		y, g = b.Unsqueeze(y, 1), b.Unsqueeze(g, -1)
	}
	var gx Value
	if d := x.DType(); ys.Rank() == 1 && (d == F16 || d == BF16) {
		gx = b.Mul(g, transpose(y)) // a product of one column and one row sums up nothing
	} else {
		gx = b.matMulTo(g, transpose(y), x.Shape())
	}
	gy := b.matMulTo(transpose(x), g, y.Shape())
	if !factor.IsNil() {
		gx, gy = b.Mul(gx, factor), b.Mul(gy, factor)
	}
	return []Value{b.Reshape(gx, xs.Dims()...), b.Reshape(gy, ys.Dims()...)}
}

// widenedFrom returns the bfloat16 that f32s were cast from. Other 16-bit floats are widened for
// products, so that nothing is gained by factors of them.
func widenedFrom(x Value) (narrow Value, ok bool) {
	if x.Node.Op() != opCast || x.DType() != F32 {
		return x, false
	}
	narrow = x.Node.Inputs()[0]
	return narrow, narrow.DType() == BF16
}

// transposeNarrow is the transposed matrix, widened where x is: the cast stays next to a product.
func (b *Builder) transposeNarrow(x Value) Value {
	if narrow, ok := widenedFrom(x); ok {
		return b.Cast(b.Transpose(narrow, -2, -1), F32)
	}
	return b.Transpose(x, -2, -1)
}

// matMulTo returns x @ y summed over the batch dimensions that the shape to
// lacks. When it has none, the sum over the batch is part of one large product
// instead of a reduction after many small ones.
func (b *Builder) matMulTo(x, y Value, to Shape) Value {
	n := x.Rank()
	if n != y.Rank() || n <= 2 || to.Rank() != 2 || !batchDims(x.Shape()).SameDims(batchDims(y.Shape())) {
		return b.sumTo(b.MatMul(x, y), to)
	}
	m, k := x.Dim(-2), batchDims(x.Shape()).Numel()*x.Dim(-1)
	p := make([]int, 0, n)
	p = append(p, n-2)
	for i := range n - 2 {
		p = append(p, i)
	}
	p = append(p, n-1)
	return b.MatMul(b.Reshape(b.Permute(x, p...), m, k), b.Reshape(y, k, y.Dim(-1)))
}

func linear(b *Builder, a Args) []Value {
	x, w, bias := a.Tensor("input"), a.Tensor("weight"), a.Tensor("bias")
	if w.Rank() != 1 && w.Rank() != 2 {
		a.Fail(ErrShape, "weight must have 1 or 2 dimensions, got %d", w.Rank())
	}
	if w.Rank() == 2 {
		w = b.Transpose(w, 0, 1)
	}
	y := b.MatMul(x, w)
	if bias.IsNil() {
		return []Value{y}
	}
	if bias.DType() != y.DType() {
		a.Fail(ErrDType, "bias has dtype %v, want %v", bias.DType(), y.DType())
	}
	r := b.Add(y, bias)
	if !r.Shape().SameDims(y.Shape()) {
		a.Fail(ErrShape, "bias %v does not fit the result %v", bias.Shape(), y.Shape())
	}
	return []Value{r}
}

// product registers a matmul restricted to operands of the given ranks.
func product(schema string, rank0, rank1 int, doc string) {
	register(schema, Spec{Doc: doc, Category: Linalg, Decompose: func(b *Builder, a Args) []Value {
		return []Value{strictProduct(b, a, a.In[0], a.In[1], rank0, rank1)}
	}})
}

// strictProduct is matmul for operands of exact ranks whose batches are equal. The product of integers
// with a vector is written as sums of products: backends compute those as they compute other sums, while
// their products of integers are made for matrices. Sums of narrow integers are kept in 32 bits, whose last
// bits are those of sums of any width. So is that of two vectors of f16, which a product would widen to memory.
func strictProduct(b *Builder, a Args, x, y Value, rank0, rank1 int) Value {
	if x.Rank() != rank0 || y.Rank() != rank1 {
		a.Fail(ErrShape, "the factors must have %d and %d dimensions, got %d and %d", rank0, rank1, x.Rank(), y.Rank())
	}
	if rank0 == 3 && x.Dim(0) != y.Dim(0) {
		a.Fail(ErrShape, "the batches %d and %d differ", x.Dim(0), y.Dim(0))
	}
	if rank1 == 1 && x.DType().IsInt() && x.DType() == y.DType() && x.Dim(-1) == y.Dim(0) {
		acc := I32
		if x.DType() == I64 {
			acc = I64
		}
		products := b.Mul(b.Cast(x, acc), b.Cast(y, acc))
		return b.Cast(b.Call1(opSum, []any{products, []int{-1}, false, acc}), x.DType())
	}
	if rank0 == 1 && rank1 == 1 && x.DType() == F16 && y.DType() == F16 && x.Dim(0) == y.Dim(0) {
		products := b.Mul(b.Cast(x, F32), b.Cast(y, F32))
		return b.Cast(b.Sum(products, []int{-1}, false), F16)
	}
	return b.MatMul(x, y)
}

func outer(b *Builder, a Args) []Value {
	x, y := a.In[0], a.In[1]
	if x.Rank() != 1 || y.Rank() != 1 {
		a.Fail(ErrShape, "both operands must be vectors, got ranks %d and %d", x.Rank(), y.Rank())
	}
	return []Value{b.Mul(b.Unsqueeze(x, 1), y)}
}

// addProduct decomposes addmm, baddbmm and addmv. self is dropped by a where if beta is 0, since it
// may be infinite or NaN; the value of beta is known only when the computation runs.
func addProduct(b *Builder, a Args) []Value {
	ranks := map[string][2]int{"addmm": {2, 2}, "baddbmm": {3, 3}, "addmv": {2, 1}}[a.Spec.Name]
	self, d := a.In[0], a.In[1].DType()
	if self.DType() != d {
		a.Fail(ErrDType, "self must have the dtype of the factors, %v, got %v", d, self.DType())
	}
	// The product is not rounded to a narrow dtype before the sum. beta and alpha of integers are
	// truncated, as in ATen.
	acc := accDType(d)
	p := strictProduct(b, a, b.widen(a.In[1]), b.widen(a.In[2]), ranks[0], ranks[1])
	beta, alpha := b.Cast(a.Tensor("beta"), acc), b.Cast(a.Tensor("alpha"), acc)
	zero := b.Const(0, acc)
	kept := b.Where(b.eq(beta, zero), zero, b.Mul(b.widen(self), beta))
	r := b.Add(kept, b.Mul(p, alpha))
	if !r.Shape().SameDims(p.Shape()) {
		a.Fail(ErrShape, "self %v does not broadcast to the product %v", self.Shape(), p.Shape())
	}
	return []Value{b.Cast(r, d)}
}
