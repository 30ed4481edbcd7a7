package ir

// Running sums, products and maxima.

func init() {
	register("cumsum(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Scan,
		Doc: "Running sum along dim, of self's shape. Elements are converted to the result dtype first: dtype, else i64 for " +
			"integers and bool, else self's. ATen's cumsum.",
		Infer:   inferScan,
		VJP:     vjpCumsum,
		Complex: complexCumsum,
	})
	register("cumprod(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", Spec{
		ULPs: 2, Accumulates: true,
		Category: Scan,
		Doc:      "Running product along dim, of self's shape, with the dtypes of cumsum. ATen's cumprod.",
		Infer:    inferScan,
		VJP:      vjpCumprod,
	})
	register("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", Spec{
		Category: Scan, Unlisted: true, Accumulates: true,
		Doc:       "The gradient of cumprod by its operand input, of the dtype of its result output. ATen's cumprod_backward.",
		Decompose: cumprodBackward,
	})
	register("_products_of_others(Tensor self) -> Tensor", Spec{
		Category: Scan, Unlisted: true, Accumulates: true,
		Doc:       "For each element of a floating matrix the product of all others of its row.",
		Decompose: productsOfOthers,
	})
	register("_linear_scan(Tensor factors, Tensor terms, int dim, bool reverse) -> Tensor", Spec{
		Category: Scan, Unlisted: true, Accumulates: true,
		Doc: "Along dim the terms with the factors times the results before them, or with reverse times those behind them, of " +
			"floating tensors of one shape. The factors of the first results have nothing to multiply.",
		Decompose: decomposeLinearScan,
		VJP:       vjpLinearScan,
	})
	register("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", Spec{
		Category: Scan,
		Doc: "Running maximum along dim and the i64 index where it stands, the later of equal ones; a NaN stays the maximum " +
			"once met. Both have self's shape. ATen's cummax.",
		Infer: inferWithIndices,
		VJP:   vjpCummax,
	})
	register("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", Spec{
		Category: Scan,
		Doc: "Running minimum along dim and the i64 index where it stands, the later of equal ones; a NaN stays the minimum " +
			"once met. Both have self's shape. ATen's cummin.",
		Decompose: decomposeCummin,
		VJP:       vjpCummax, // without turning elements and cotangents around
	})
	register("logcumsumexp(Tensor self, int dim) -> Tensor", Spec{
		Category:  Scan,
		Doc:       "log(cumsum(exp(self))) along dim of a floating tensor, without overflow. ATen's logcumsumexp.",
		Decompose: decomposeLogCumsumExp,
		VJP:       vjpLogCumsumExp,
	})
}

// decomposeCummin is the largest of the order turned around.
func decomposeCummin(b *Builder, a Args) []Value {
	x := a.In[0]
	requireArithmetic(a, x.DType())
	turn := b.Neg
	if !x.DType().IsFloat() {
		turn = b.bitwiseNot
	}
	outs := b.Call(opCummax, []any{turn(x), a.Dim("dim", x.Rank())})
	return []Value{turn(outs[0]), outs[1]}
}

func inferScan(a Args) []Shape {
	d := accumulateDType(a)
	if d == Bool {
		a.Fail(ErrDType, "not defined for dtype bool")
	}
	s := a.In[0].Shape()
	a.Dim("dim", s.Rank())
	return []Shape{s.WithDType(d)}
}

// exclusiveCumprod records the products of all elements before each one.
func (b *Builder) exclusiveCumprod(x Value, dim int) Value {
	return b.Call1(opCumprod, []any{b.padDim(x, dim, 1, -1, 1), dim})
}

// productsOfOthers multiplies the products of the elements before and after each one.
func productsOfOthers(b *Builder, a Args) []Value {
	x := a.In[0]
	requireFloatMatrix(a, x)
	before := b.exclusiveCumprod(x, 1)
	after := b.Flip(b.exclusiveCumprod(b.Flip(x, 1), 1), 1)
	return []Value{b.Mul(before, after)}
}

func vjpCumsum(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	g := grad[0]
	if self.Rank() > 0 {
		dim := a.Dim("dim", self.Rank())
		g = b.Flip(b.Cumsum(b.Flip(g, dim), dim), dim)
	}
	return []Value{b.Cast(g, self.DType())}
}

func vjpCumprod(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if !self.DType().IsFloat() {
		return []Value{{}}
	}
	dim := a.Dim("dim", self.Rank())
	if self.Rank() == 0 || self.Dim(dim) <= 1 {
		return []Value{b.Cast(grad[0], self.DType())}
	}
	g := b.callNamed("cumprod_backward", []any{grad[0], b.Cast(self, out[0].DType()), dim, out[0]})
	return []Value{b.Cast(g, self.DType())}
}

// cumprodBackward computes, for elements x, their running products y and cotangents g along dim,
//
//	dx[k] = y[k-1] · s[k],  s[k] = g[k] + x[k+1] · s[k+1].
//
// It divides by nothing, so zeros are like any number, in higher derivatives, too.
func cumprodBackward(b *Builder, a Args) []Value {
	g, x, y := a.Tensor("grad"), a.Tensor("input"), a.Tensor("output")
	if g.Shape() != x.Shape() || y.Shape() != x.Shape() || !x.DType().IsFloat() || x.Rank() == 0 {
		a.Fail(ErrShape, "grad, input and output must be floating, of one shape with dimensions, got %v, %v and %v", g.Shape(), x.Shape(), y.Shape())
	}
	dim := a.Dim("dim", x.Rank())
	if x.Dim(dim) <= 1 {
		return []Value{g}
	}
	s := b.linearScan(b.padDim(x, dim, -1, 1, 0), g, dim, true)
	return []Value{b.Mul(b.padDim(y, dim, 1, -1, 1), s)}
}

func vjpCummax(b *Builder, a Args, out, grad []Value) []Value {
	self := a.In[0]
	if grad[0].IsNil() || self.Rank() == 0 {
		return []Value{grad[0]}
	}
	return []Value{b.ScatterReduce(b.fullLike(self, 0), a.Int("dim"), out[1], grad[0], "sum")}
}
