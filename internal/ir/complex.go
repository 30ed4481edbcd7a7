package ir

// Complex numbers are computed with as pairs of reals: a row says in its field
// Complex what a use with complex operands is in terms of ops on real ones, so that
// backends need kernels for view_as_real and view_as_complex only. Gradients flow
// through these, which gives PyTorch's convention: the gradient of a real L with
// respect to z is ∂L/∂Re(z) + i·∂L/∂Im(z).

// Decomposition returns how this use of an op is written in terms of others: what the
// row says of complex operands if there are some, else Decompose. It returns nil for
// a use of a primitive.
func (a Args) Decomposition() func(b *Builder, a Args) []Value {
	if a.Spec.Complex != nil && a.HasComplex() {
		return a.Spec.Complex
	}
	return a.Spec.Decompose
}

// HasComplex reports whether an operand or the attribute dtype is complex.
func (a Args) HasComplex() bool {
	for _, v := range a.In {
		if v.DType().IsComplex() {
			return true
		}
	}
	return a.Spec.Schema.Param("dtype") >= 0 && a.DType("dtype").IsComplex()
}

// parts returns the real and the imaginary part of a complex x.
func (b *Builder) parts(x Value) (re, im Value) {
	pairs := b.viewAsReal(x)
	dims := x.Shape().Dims()
	part := func(i int) Value { return b.Reshape(b.Slice(pairs, x.Rank(), i, i+1, 1), dims...) }
	return part(0), part(1)
}

// fromParts records the complex numbers of two parts, which are broadcast together.
func (b *Builder) fromParts(re, im Value) Value {
	if s, ok := BroadcastDims(re.Shape(), im.Shape()); ok {
		re, im = b.Expand(re, s.Dims()...), b.Expand(im, s.Dims()...)
	}
	n := re.Rank()
	return b.viewAsComplex(b.Cat([]Value{b.Unsqueeze(re, n), b.Unsqueeze(im, n)}, n))
}

// asComplex casts a value to a complex dtype.
func (b *Builder) asComplex(x Value, d DType) Value {
	switch {
	case x.DType() == d:
		return x
	case x.DType().IsComplex():
		return b.viewAsComplex(b.Cast(b.viewAsReal(x), d.Part()))
	}
	return b.fromParts(b.Cast(x, d.Part()), b.Const(0, d.Part()))
}

// reduceOuter gives a reduction the pairs of its complex operand: dim, all dimensions
// if absent or empty, does not count that of the pairs.
func reduceOuter(a Args) (dims []int) { return maskDims(a.dims("dim", a.In[0].Rank()), a.In[0].Rank()) }

// pairwise is the meaning on complex operands of an op that treats both parts alike.
// Pairs broadcast as their numbers do.
func pairwise(name string) func(*Builder, Args) []Value {
	return func(b *Builder, a Args) []Value {
		in := make([]any, len(a.In))
		for i, v := range a.In {
			in[i] = b.viewAsReal(v)
		}
		return []Value{b.viewAsComplex(b.callNamed(name, in))}
	}
}

// ofParts is a function of the parts of one complex operand.
func ofParts(f func(b *Builder, re, im Value) (x, y Value)) func(*Builder, Args) []Value {
	return func(b *Builder, a Args) []Value {
		re, im := b.parts(a.In[0])
		return []Value{b.fromParts(f(b, re, im))}
	}
}

// anyPart and allParts are predicates of numbers that hold where they hold for any or
// all of the parts.
func anyPart(name string) func(*Builder, Args) []Value {
	return partsTest(name, func(b *Builder, x Value) Value { return b.Call1(opAny, []any{x, []int{-1}}) })
}

func allParts(name string) func(*Builder, Args) []Value {
	return partsTest(name, func(b *Builder, x Value) Value { return b.Call1(opAll, []any{x, []int{-1}}) })
}

func partsTest(name string, reduce func(b *Builder, x Value) Value) func(*Builder, Args) []Value {
	return func(b *Builder, a Args) []Value {
		in := make([]any, len(a.In))
		for i, v := range a.In {
			in[i] = b.viewAsReal(v)
		}
		return []Value{reduce(b, b.callNamed(name, in))}
	}
}

func complexMul(b *Builder, a Args) []Value {
	p, q := b.parts(a.In[0])
	r, s := b.parts(a.In[1])
	return []Value{b.fromParts(b.Sub(b.Mul(p, r), b.Mul(q, s)), b.Add(b.Mul(p, s), b.Mul(q, r)))}
}

// complexDiv scales the divisor by its larger part, so that its square does not
// overflow.
func complexDiv(b *Builder, a Args) []Value {
	p, q := b.parts(a.In[0])
	r, s := b.parts(a.In[1])
	by := b.maximum(b.abs(r), b.abs(s))
	r1, s1 := b.Div(r, by), b.Div(s, by)
	d := b.Add(b.Mul(r, r1), b.Mul(s, s1))
	return []Value{b.fromParts(b.Div(b.Add(b.Mul(p, r1), b.Mul(q, s1)), d), b.Div(b.Sub(b.Mul(q, r1), b.Mul(p, s1)), d))}
}

func complexReciprocal(b *Builder, a Args) []Value {
	return []Value{b.Div(b.fullLike(a.In[0], 1), a.In[0])}
}

// complexAbs keeps 0 from hypot, whose gradient there is NaN; that of abs is 0.
func complexAbs(b *Builder, a Args) []Value {
	re, im := b.parts(a.In[0])
	zero := b.zeroOf(re)
	none := b.Call1(opLogicalAnd, []any{b.eq(re, zero), b.eq(im, zero)})
	return []Value{b.Where(none, zero, b.callNamed("hypot", []any{b.Where(none, b.fullLike(zero, 1), re), im}))}
}

func complexExp(b *Builder, re, im Value) (x, y Value) {
	r := b.Exp(re)
	return b.Mul(r, b.cos(im)), b.Mul(r, b.sin(im))
}

func complexLog(b *Builder, re, im Value) (x, y Value) {
	return b.log(b.callNamed("hypot", []any{re, im})), b.atan2(im, re)
}

func complexSin(b *Builder, re, im Value) (x, y Value) {
	return b.Mul(b.sin(re), b.cosh(im)), b.Mul(b.cos(re), b.sinh(im))
}

func complexCos(b *Builder, re, im Value) (x, y Value) {
	return b.Mul(b.cos(re), b.cosh(im)), b.Neg(b.Mul(b.sin(re), b.sinh(im)))
}

// complexSqrt computes the larger part of the root and divides to get the other, so
// that nothing cancels.
func complexSqrt(b *Builder, re, im Value) (x, y Value) {
	half := b.fullLike(re, 0.5)
	t := b.sqrt(b.Mul(half, b.Add(b.abs(re), b.callNamed("hypot", []any{re, im}))))
	zero := b.fullLike(re, 0)
	u := b.Where(b.eq(t, zero), zero, b.Div(b.Mul(half, im), t))
	right := b.ge(re, zero)
	return b.Where(right, t, b.abs(u)), b.Where(right, u, b.Where(b.lt(im, zero), b.Neg(t), t))
}

// complexWhere broadcasts the condition over the pairs.
func complexWhere(b *Builder, a Args) []Value {
	c := a.In[0]
	if c.DType() != Bool {
		a.Fail(ErrDType, "the condition must be bool, got %v", c.DType())
	}
	return []Value{b.viewAsComplex(b.Where(b.Unsqueeze(c, c.Rank()), b.viewAsReal(a.In[1]), b.viewAsReal(a.In[2])))}
}

// complexCast is ATen's: a complex number that becomes a real one loses its imaginary
// part, one that becomes a bool is true unless both parts are 0.
func complexCast(b *Builder, a Args) []Value {
	x, d := a.In[0], a.DType("dtype")
	switch {
	case d.IsComplex():
		return []Value{b.asComplex(x, d)}
	case d == Bool:
		return []Value{b.Call1(opAny, []any{b.viewAsReal(x), []int{-1}})}
	}
	re, _ := b.parts(x)
	return []Value{b.Cast(re, d)}
}

// complexSum sums over the dimensions but that of the pairs.
func complexSum(b *Builder, a Args) []Value {
	x := a.In[0]
	if d := a.DType("dtype"); d != Invalid && d != x.DType() {
		return []Value{b.Call1(opSum, []any{b.Cast(x, d), dimsArg(a.Ints("dim")), a.Bool("keepdim")})}
	}
	dims := reduceOuter(a)
	if len(dims) == 0 {
		return []Value{x}
	}
	return []Value{b.viewAsComplex(b.Sum(b.viewAsReal(x), dims, a.Bool("keepdim")))}
}

func complexCumsum(b *Builder, a Args) []Value {
	x := a.In[0]
	if d := a.DType("dtype"); d != Invalid && d != x.DType() {
		return []Value{b.Call1(opCumsum, []any{b.Cast(x, d), a.Int("dim")})}
	}
	dim := a.Dim("dim", x.Rank())
	if x.Rank() == 0 {
		return []Value{x}
	}
	return []Value{b.viewAsComplex(b.Cumsum(b.viewAsReal(x), dim))}
}

func complexFull(b *Builder, a Args) []Value {
	d := a.DType("dtype")
	return []Value{b.asComplex(b.Full(a.Ints("size"), a.Get("fill_value"), d.Part()), d)}
}

// complexPad pads both parts, each with its part of the value.
func complexPad(b *Builder, a Args) []Value {
	re, im := b.parts(a.In[0])
	x, y := b.parts(a.Tensor("value"))
	pad := a.Ints("pad")
	return []Value{b.fromParts(b.PadConst(re, pad, x), b.PadConst(im, pad, y))}
}

func complexIndexAdd(b *Builder, a Args) []Value {
	x, index, source := a.In[0], a.In[1], a.In[2]
	requireSameDType(a, "source")
	if x.Rank() == 0 {
		x, source = b.Reshape(x, 1), b.Reshape(source, AtLeast1D(source.Shape()).Dims()...)
	}
	sum := b.IndexAdd(b.viewAsReal(x), a.Dim("dim", x.Rank()), index, b.viewAsReal(source))
	return []Value{b.Reshape(b.viewAsComplex(sum), a.In[0].Shape().Dims()...)}
}

// complexScatterReduce is defined for sums and means: an index counts for both parts.
func complexScatterReduce(b *Builder, a Args) []Value {
	reduce := a.Str("reduce")
	if reduce != "sum" && reduce != "mean" {
		a.Fail(ErrDType, "%q is not defined for %v operands", reduce, a.In[0].DType())
	}
	requireSameDType(a, "src")
	re, im := b.parts(a.In[0])
	x, y := b.parts(a.In[2])
	part := func(self, src Value) Value {
		return b.Call1(opScatterReduce, []any{self, a.Int("dim"), a.In[1], src, reduce}, A("include_self", a.Bool("include_self")))
	}
	return []Value{b.fromParts(part(re, x), part(im, y))}
}

func complexMatMul(b *Builder, a Args) []Value {
	if x, y := a.In[0].DType(), a.In[1].DType(); x != y {
		a.Fail(ErrDType, "both operands must have one dtype, got %v and %v", x, y)
	}
	p, q := b.parts(a.In[0])
	r, s := b.parts(a.In[1])
	return []Value{b.fromParts(b.Sub(b.MatMul(p, r), b.MatMul(q, s)), b.Add(b.MatMul(p, s), b.MatMul(q, r)))}
}
