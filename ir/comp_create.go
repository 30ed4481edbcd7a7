package ir

func init() {
	register("eye(int n, int? m=None, ScalarType dtype=f32) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "The matrix [n, m] (m is n if absent) with ones on the main diagonal and zeros elsewhere. ATen's eye.m.",
		Decompose: decomposeEye,
		NoGrad:    constantGrad,
	})
	register("zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "Zeros of self's shape and dtype, or the given dtype. ATen's zeros_like.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{fullLike(b, a, 0)} },
		NoGrad:    constantGrad,
	})
	register("ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "Ones of self's shape and dtype, or the given dtype. ATen's ones_like.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{fullLike(b, a, 1)} },
		NoGrad:    constantGrad,
	})
	register("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Creation,
		Doc: "A tensor of self's shape and dtype, or the given dtype, with every element fill_value, which is an operand: " +
			"another value makes no new graph. ATen's full_like.",
		Decompose: func(b *Builder, a Args) []Value {
			v := a.Tensor("fill_value")
			if v.Rank() != 0 {
				a.Fail(ErrShape, "fill_value has rank %d, want 0", v.Rank())
			}
			return []Value{b.ExpandAs(b.promoteTo(v, likeDType(a)), a.In[0])}
		},
	})
}

// likeDType is the dtype argument or else self's dtype.
func likeDType(a Args) DType {
	d := a.DType("dtype")
	if d == Invalid {
		d = a.In[0].DType()
	}
	requireArithmetic(a, d)
	return d
}

func fullLike(b *Builder, a Args, v int) Value {
	return b.Full(a.In[0].Shape().Dims(), v, likeDType(a))
}

func decomposeEye(b *Builder, a Args) []Value {
	n := a.Int("n")
	m, ok := a.OptInt("m")
	if !ok {
		m = n
	}
	if n < 0 || m < 0 {
		a.Fail(ErrArg, "a matrix of %d rows and %d columns", n, m)
	}
	requireArithmetic(a, a.DType("dtype"))
	rows, cols := b.rowsAndColumns(n, m)
	return []Value{b.Cast(b.Eq(rows, cols), a.DType("dtype"))}
}
