package ir

// randomNoGrad is why the sources of random numbers stop gradients.
const randomNoGrad = "the result does not depend on a differentiable operand"

func init() {
	OpUniform = register("uniform(Tensor seed, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		Doc:      "Uniform numbers in [0, 1) of a floating dtype. The seed is an i64 scalar; element i depends on (seed, offset, i) alone, by Philox4x32-10, so it is equal on every backend.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandomFloat,
	})
	OpNormal = register("normal(Tensor seed, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		Doc:      "Standard normal numbers of a floating dtype, by Box–Muller from the same source as uniform.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandomFloat,
	})
	OpRandint = register("randint(Tensor seed, number low, number high, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		Doc:      "Integers in [low, high), of any dtype but bool, from the same source as uniform.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandint,
	})
}

// inferRandom checks the seed and the size, which all sources share.
func inferRandom(a Args) []Shape {
	if s := a.Tensor("seed").Shape(); s != MakeShape(I64) {
		a.Fail(ErrDType, "the seed must be an i64 scalar, got %v", s)
	}
	s, err := NewShape(a.DType("dtype"), a.Ints("size"))
	if err != nil {
		a.Fail(ErrShape, "size: %v", err)
	}
	return []Shape{s}
}

func inferRandomFloat(a Args) []Shape {
	if d := a.DType("dtype"); !d.IsFloat() {
		a.Fail(ErrDType, "dtype must be floating, got %v", d)
	}
	return inferRandom(a)
}

func inferRandint(a Args) []Shape {
	d := a.DType("dtype")
	if d == Bool || d.IsStorage() {
		a.Fail(ErrDType, "not defined for dtype %v", d)
	}
	lo, okLo := a.Get("low").(int64)
	hi, okHi := a.Get("high").(int64)
	if !okLo || !okHi {
		a.Fail(ErrArg, "low and high must be integers, got %v and %v", a.Get("low"), a.Get("high"))
	}
	if lo >= hi {
		a.Fail(ErrArg, "low %d must be less than high %d", lo, hi)
	}
	return inferRandom(a)
}
