package ir

// randomNoGrad is why the sources of random numbers stop gradients.
const randomNoGrad = "the result does not depend on a differentiable operand"

func init() {
	register("uniform(Tensor seed, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		Doc:      "Uniform numbers in [0, 1) of a floating dtype. The seed is an i64 scalar; element i depends on (seed, offset, i) alone, by Philox4x32-10, so it is equal on every backend.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandomFloat,
	})
	register("normal(Tensor seed, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		ULPs:     16,
		Doc:      "Standard normal numbers of a floating dtype, by Box–Muller from the same source as uniform.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandomFloat,
	})
	register("randint(Tensor seed, number low, number high, int[] size, int offset, ScalarType dtype) -> Tensor", Spec{
		Doc:      "Integers in [low, high), of any dtype but bool, from the same source as uniform.",
		Category: Random, NoGrad: randomNoGrad, Infer: inferRandint,
	})
	register("bernoulli(Tensor self, Tensor seed, int offset) -> Tensor", Spec{
		Doc:      "1 with the probability that self, of a floating dtype, gives for each element and 0 otherwise, from the same source as uniform. As torch.bernoulli.",
		Category: Random, NoGrad: "the gradient is zero everywhere", Decompose: bernoulli,
	})
	register("randperm(Tensor seed, int n, int offset, ScalarType dtype=i64) -> Tensor", Spec{
		Doc:      "A random permutation of 0, 1, … n-1 of an integer or floating dtype: the order of n uniform f64 numbers. As torch.randperm.",
		Category: Random, NoGrad: randomNoGrad, Decompose: randperm,
	})
	register("dropout(Tensor self, Tensor seed, Scalar p, bool train, int offset) -> Tensor", Spec{
		Doc:      "When training, 0 with probability p for each element of self, of a floating dtype, and self/(1-p) otherwise, from the same source as uniform; self when not. As torch.nn.functional.dropout.",
		Category: Random, Promote: PromoteScalars, Decompose: func(b *Builder, a Args) []Value { return dropout(b, a)[:1] },
	})
	register("native_dropout(Tensor self, Tensor seed, Scalar p, bool train, int offset) -> (Tensor output, Tensor mask)", Spec{
		Doc:      "dropout and, as bool, which elements it kept. As at::native_dropout.",
		Category: Random, Promote: PromoteScalars, Unlisted: true, Decompose: dropout,
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
	if d.IsInt() {
		least, most := intRange(d)
		if lo < least || hi-1 > most {
			a.Fail(ErrArg, "%v holds %d to %d, not all of [%d, %d)", d, least, most, lo, hi)
		}
	}
	return inferRandom(a)
}

func bernoulli(b *Builder, a Args) []Value {
	p := a.In[0]
	if !p.DType().IsFloat() {
		a.Fail(ErrDType, "probabilities must be floating, got %v", p.DType())
	}
	p = b.widen(p)
	return []Value{b.Cast(b.lt(randomLike(b, a, p), p), a.In[0].DType())}
}

// randomLike is uniform with the dimensions and dtype of x.
func randomLike(b *Builder, a Args, x Value) Value {
	return b.Call1(opUniform, []any{a.Tensor("seed"), x.Shape().Dims(), a.Int("offset"), x.DType()})
}

func randperm(b *Builder, a Args) []Value {
	n, d := a.Int("n"), a.DType("dtype")
	if n < 0 {
		a.Fail(ErrArg, "n must not be negative, got %d", n)
	}
	if d == Bool || d.IsStorage() {
		a.Fail(ErrDType, "not defined for dtype %v", d)
	}
	u := b.Call1(opUniform, []any{a.Tensor("seed"), []int{n}, a.Int("offset"), F64})
	_, order := b.Sort(u, 0, false)
	return []Value{b.Cast(order, d)}
}

// dropout keeps an element where its uniform number is at least p, so that p = 1
// keeps none. It returns the result and which were kept.
func dropout(b *Builder, a Args) []Value {
	x := a.In[0]
	if !x.DType().IsFloat() {
		a.Fail(ErrDType, "self must be floating, got %v", x.DType())
	}
	if !a.Bool("train") {
		return []Value{x, b.Full(x.Shape().Dims(), true, Bool)}
	}
	y := b.widen(x)
	p := b.Cast(a.Tensor("p"), y.DType())
	zero, one := b.Const(0.0, y.DType()), b.Const(1.0, y.DType())
	// With p = 1 the factor would be infinite, and the gradient NaN.
	factor := b.Where(b.lt(p, one), b.reciprocal(b.Sub(one, p)), zero)
	kept := b.ge(randomLike(b, a, y), p)
	return []Value{b.Cast(b.Where(kept, b.Mul(y, factor), zero), x.DType()), kept}
}
