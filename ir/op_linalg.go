package ir

func init() {
	OpMatMul = register("matmul(Tensor self, Tensor other) -> Tensor", Spec{
		Doc:      "Matrix product with ATen's rules: two vectors give their dot product, a vector is a row on the left and a column on the right, and the dimensions before the last two broadcast. Both operands have one dtype, any but bool; f16 and bf16 accumulate in f32.",
		Category: Linalg, Infer: inferMatMul, VJP: vjpMatMul,
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
// operand, and sums over the batches that an operand was broadcast along.
func vjpMatMul(b *Builder, a Args, out, grad []Value) []Value {
	x, y, g := a.In[0], a.In[1], grad[0]
	xs, ys := x.Shape(), y.Shape()
	if xs.Rank() == 1 && ys.Rank() == 1 {
		return []Value{b.Mul(g, y), b.Mul(g, x)}
	}
	switch {
	case xs.Rank() == 1:
		x, g = b.Unsqueeze(x, 0), b.Unsqueeze(g, -2)
	case ys.Rank() == 1:
		y, g = b.Unsqueeze(y, 1), b.Unsqueeze(g, -1)
	}
	gx := b.matMulTo(g, b.Transpose(y, -2, -1), x.Shape())
	gy := b.matMulTo(b.Transpose(x, -2, -1), g, y.Shape())
	return []Value{b.Reshape(gx, xs.Dims()...), b.Reshape(gy, ys.Dims()...)}
}

// matMulTo returns x @ y summed over the batch dimensions that the shape to
// lacks. When it has none, the sum over the batch is part of one large product
// instead of a reduction after many small ones.
func (b *Builder) matMulTo(x, y Value, to Shape) Value {
	n := x.Rank()
	if n != y.Rank() || n <= 2 || to.Rank() != 2 || !batchDims(x.Shape()).SameDims(batchDims(y.Shape())) {
		return b.SumTo(b.MatMul(x, y), to)
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
