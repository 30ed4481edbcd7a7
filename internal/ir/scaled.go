package ir

func init() {
	const operands = "(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False)"
	register("_scaled_mm_amax"+operands+" -> (Tensor out, Tensor amax)", Spec{
		Doc:      "_scaled_mm, and the largest magnitude of the product before it is rounded, as PyTorch returned them until version 2.5.",
		Category: Linalg, Unlisted: true, GradFails: true, NoGrad: "as of _scaled_mm", Decompose: scaledMMAmax,
	})
	register("_scaled_mm"+operands+" -> Tensor", Spec{
		GoName: "ScaledMM",
		Doc: "(self·scale_a) @ (mat2·scale_b) + bias for matrices [m, k] and [k, n] of 8-bit floats, summed in f32 and rounded once to out_dtype: " +
			"f32, f16, bf16 or an 8-bit float, by default self's. The f32 scales are single numbers, or scale_a is [m, 1] and scale_b [1, n]; bias [n] is f32, f16 or bf16. " +
			"An 8-bit result is divided by scale_result, an f32 number, before it is rounded, as on PyTorch's CPU; others take no notice of it. " +
			"use_fast_accum lets a GPU sum with fewer bits. As torch._scaled_mm.",
		Category: Linalg, Decompose: scaledMM, GradFails: true,
		NoGrad: "ATen defines none either; differentiate a product of casts",
	})
	register("_int_mm(Tensor self, Tensor mat2) -> Tensor", Spec{
		GoName:   "IntMM",
		Doc:      "Product of matrices [m, k] of i8 or u8 and [k, n] of i8, summed in i32, which is the result's dtype. As torch._int_mm.",
		Category: Linalg, Decompose: intMM,
		NoGrad: "integers have none",
	})
}

// ScaledMM is one use of _scaled_mm whose operands go together.
type ScaledMM struct {
	self, mat2, scaleA, scaleB Value
	Bias, ScaleResult          Value // or absent; ScaleResult unless Out is an 8-bit float
	Out                        DType
	M, N, K                    int
	// Rows says that the scales are those of rows and columns.
	Rows bool
}

// ScaledMMOf reads and checks the operands and attributes of a use of
// _scaled_mm; a mistake panics with an *OpError.
func ScaledMMOf(a Args) *ScaledMM {
	p := &ScaledMM{
		self: a.Tensor("self"), mat2: a.Tensor("mat2"), scaleA: a.Tensor("scale_a"), scaleB: a.Tensor("scale_b"),
		Bias: a.Tensor("bias"), ScaleResult: a.Tensor("scale_result"), Out: a.DType("out_dtype"),
	}
	p.M, p.K, p.N = matrices(a, p.self, p.mat2)
	if !p.self.DType().IsF8() || !p.mat2.DType().IsF8() {
		a.Fail(ErrDType, "self and mat2 must be 8-bit floats, got %v and %v", p.self.DType(), p.mat2.DType())
	}
	if p.Out == Invalid {
		p.Out = p.self.DType()
	}
	if p.Out == F64 || !p.Out.IsFloat() && !p.Out.IsF8() {
		a.Fail(ErrDType, "out_dtype must be f32, f16, bf16 or an 8-bit float, got %v", p.Out)
	}
	p.checkScales(a)
	if b := p.Bias; !b.IsNil() && (!b.DType().IsFloat() || b.DType() == F64) {
		a.Fail(ErrDType, "bias must be f32, f16 or bf16, got %v", b.DType())
	}
	if b := p.Bias; !b.IsNil() && (b.Rank() != 1 || b.Shape().Dim(0) != p.N) {
		a.Fail(ErrShape, "bias must be a vector of %d, got %v", p.N, b.Shape())
	}
	if r := p.ScaleResult; !r.IsNil() && (r.DType() != F32 || r.Shape().Numel() != 1) {
		a.Fail(ErrShape, "scale_result must be one f32 number, got %v", r.Shape())
	}
	if !p.Out.IsF8() {
		p.ScaleResult = Value{}
	}
	return p
}

func (p *ScaledMM) checkScales(a Args) {
	x, y := p.scaleA.Shape(), p.scaleB.Shape()
	if x.DType() != F32 || y.DType() != F32 {
		a.Fail(ErrDType, "scale_a and scale_b must be f32, got %v and %v", x.DType(), y.DType())
	}
	switch {
	case x.Numel() == 1 && y.Numel() == 1:
	case x.SameDims(MakeShape(F32, p.M, 1)) && y.SameDims(MakeShape(F32, 1, p.N)):
		p.Rows = true
	default:
		a.Fail(ErrShape, "the scales must be single numbers, or [%d,1] and [1,%d], got %v and %v", p.M, p.N, x, y)
	}
}

// matrices returns the sizes of the product of two matrices.
func matrices(a Args, x, y Value) (m, k, n int) {
	if x.Rank() != 2 || y.Rank() != 2 {
		a.Fail(ErrShape, "the factors must have 2 dimensions, got %d and %d", x.Rank(), y.Rank())
	}
	if x.Dim(1) != y.Dim(0) {
		a.Fail(ErrShape, "the inner dimensions %d and %d differ", x.Dim(1), y.Dim(0))
	}
	return x.Dim(0), x.Dim(1), y.Dim(1)
}

func scaledMM(b *Builder, a Args) []Value {
	p := ScaledMMOf(a)
	return []Value{b.Cast(p.scaled(b), p.Out)}
}

// scaled returns the result in f32. It scales after multiplying, because products of unscaled 8-bit
// floats are exact in f32.
func (p *ScaledMM) scaled(b *Builder) Value {
	factor := func(x Value) Value {
		if p.Rows {
			return x
		}
		return b.Reshape(x)
	}
	r := b.MatMul(b.Cast(p.self, F32), b.Cast(p.mat2, F32))
	r = b.Mul(b.Mul(r, factor(p.scaleA)), factor(p.scaleB))
	if !p.Bias.IsNil() {
		r = b.Add(r, b.Cast(p.Bias, F32))
	}
	if !p.ScaleResult.IsNil() {
		r = b.Mul(r, b.reciprocal(b.Reshape(p.ScaleResult)))
	}
	return r
}

func intMM(b *Builder, a Args) []Value {
	x, y := a.In[0], a.In[1]
	if d := x.DType(); d != I8 && d != U8 || y.DType() != I8 {
		a.Fail(ErrDType, "self must be i8 or u8 and mat2 i8, got %v and %v", x.DType(), y.DType())
	}
	matrices(a, x, y)
	return []Value{b.MatMul(b.Cast(x, I32), b.Cast(y, I32))}
}

func scaledMMAmax(b *Builder, a Args) []Value {
	plain := b.Call(byName["_scaled_mm"], []any{a.Tensor("self"), a.Tensor("mat2"), a.Tensor("scale_a"), a.Tensor("scale_b"), a.Tensor("bias")}, A("out_dtype", F32))[0]
	return []Value{b.Emit(byName["_scaled_mm"], a.Attr, a.In...)[0], b.Amax(b.abs(plain), nil, false)}
}
