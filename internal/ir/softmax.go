package ir

func init() {
	register("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		Doc:      "exp(x)/Σ exp(x) along dim, of a floating dtype (self is converted to dtype first if given). f16 and bf16 compute in f32. As torch.softmax.",
		Category: Neural, Decompose: softmax, VJP: vjpSoftmax,
	})
	register("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		Doc:      "x - log Σ exp(x) along dim, of a floating dtype (self is converted to dtype first if given). f16 and bf16 compute in f32. As torch.log_softmax.",
		Category: Neural, Decompose: logSoftmax, VJP: vjpLogSoftmax,
	})
}

// accDType is the dtype in which composites compute on d: f32 for f16 and bf16,
// as ATen's opmath type.
func accDType(d DType) DType {
	if d == F16 || d == BF16 {
		return F32
	}
	return d
}

// widen converts a value to the dtype in which composites compute on it.
func (b *Builder) widen(x Value) Value { return b.Cast(x, accDType(x.DType())) }

// callNamed makes one use of an op with one output, found by name.
func (b *Builder) callNamed(name string, pos []any, named ...Named) Value {
	op, ok := byName[name]
	if !ok {
		panic("ir: no op is named " + name)
	}
	return b.Call1(op, pos, named...)
}

// softmaxInput returns the operand in the compute dtype, the normalised dim and
// the dtype of the result.
func softmaxInput(b *Builder, a Args) (x Value, dim int, d DType) {
	x = a.In[0]
	if d = a.DType("dtype"); d == Invalid {
		d = x.DType()
	}
	if !d.IsFloat() {
		a.Fail(ErrDType, "not defined for %v; convert to a floating dtype", d)
	}
	return b.widen(b.Cast(x, d)), a.Dim("dim", x.Rank()), d
}

// shifted returns x minus its maximum along dim, so that exp cannot overflow. A
// maximum needs at least one element; where there is none x is empty itself.
func (b *Builder) shifted(x Value, dim int) Value {
	if x.Shape().Numel() == 0 {
		return x
	}
	return b.Sub(x, b.Amax(x, reduceDims(x, dim), true))
}

// reduceDims returns the dim list of a reduction along dim, which for a scalar
// is empty.
func reduceDims(x Value, dim int) []int {
	if x.Rank() == 0 {
		return nil
	}
	return []int{dim}
}

func softmax(b *Builder, a Args) []Value {
	x, dim, d := softmaxInput(b, a)
	e := b.Exp(b.shifted(x, dim))
	// The sum is between 1 and the number of elements, so multiplying by its reciprocal costs half a
	// unit in the last place at most, and each row takes one division only.
	inverse := b.reciprocal(b.Sum(e, reduceDims(e, dim), true))
	return []Value{b.Cast(b.Mul(e, inverse), d)}
}

func logSoftmax(b *Builder, a Args) []Value {
	x, dim, d := softmaxInput(b, a)
	z := b.shifted(x, dim)
	return []Value{b.Cast(b.Sub(z, b.log(b.Sum(b.Exp(z), reduceDims(z, dim), true))), d)}
}

// vjpSoftmax is y·(g - Σ g·y), which needs the result only.
func vjpSoftmax(b *Builder, a Args, out, grad []Value) []Value {
	y, g := b.widen(out[0]), b.widen(grad[0])
	dims := reduceDims(y, a.Dim("dim", y.Rank()))
	gx := b.Mul(y, b.Sub(g, b.Sum(b.Mul(g, y), dims, true)))
	return []Value{b.Cast(gx, a.In[0].DType())}
}

// vjpLogSoftmax is g - exp(y)·Σ g, which needs the result only.
func vjpLogSoftmax(b *Builder, a Args, out, grad []Value) []Value {
	y, g := b.widen(out[0]), b.widen(grad[0])
	dims := reduceDims(y, a.Dim("dim", y.Rank()))
	gx := b.Sub(g, b.Mul(b.Exp(y), b.Sum(g, dims, true)))
	return []Value{b.Cast(gx, a.In[0].DType())}
}
