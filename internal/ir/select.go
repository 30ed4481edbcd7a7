package ir

import "math"

// Conversions, and ops that choose between elements or blend them, elementwise.

func init() {
	initWhere()
	initBlends()
}

func initWhere() {
	register("where(Tensor condition, Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteTail,
		Doc: "self where the bool condition holds, other elsewhere, with broadcasting; self and other meet in one dtype. " +
			"Its F3 and I3 get the condition as 0 or 1. ATen's where.",
		Scalar: Scalar{
			F3: func(c, x, y float64) float64 {
				if c != 0 {
					return x
				}
				return y
			},
			I3: func(c, x, y int64) int64 {
				if c != 0 {
					return x
				}
				return y
			},
		},
		Infer: inferWhere, Cost: CostArithmetic, Exact: true, VJP: vjpWhere,
		Numbers: map[string]NumberUse{"self": NumberFits, "other": NumberFits},
		Complex: complexWhere,
	})
	register("cast(Tensor self, ScalarType dtype) -> Tensor", Spec{
		Category: Pointwise,
		Doc: "self converted to dtype: floats to the nearest value (RoundFloat), floats to integers towards zero (FloatToInt tells " +
			"what NaN and values out of range give), integers to narrower ones by their low bits (WrapInt), all to bool by != 0. " +
			"The 8-bit floats convert too. Complex numbers lose their imaginary part, but for bool, where it counts. The meaning depends on both dtypes, so the row has no Scalar. ATen's Tensor.to.",
		Infer: inferCast, Cost: CostArithmetic, VJP: vjpCast,
		Complex: complexCast,
	})
	register("masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteScalars,
		Doc: "value, converted to self's dtype, where the bool mask holds, self elsewhere; self and mask broadcast together, value has rank 0. ATen's masked_fill.",
		Decompose: func(b *Builder, a Args) []Value {
			x, mask, v := a.In[0], a.In[1], a.In[2]
			if mask.DType() != Bool {
				a.Fail(ErrDType, "the mask must be bool, got %v", mask.DType())
			}
			if v.Rank() != 0 {
				a.Fail(ErrShape, "value must have no dimensions, got %v", v.Shape())
			}
			return []Value{b.Where(mask, b.Cast(v, x.DType()), x)}
		},
	})
	register("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", Spec{
		Category: Pointwise,
		Doc: "x with NaN replaced by nan (0 if absent) and the infinities by posinf and neginf (the dtype's largest and least finite value), " +
			"elementwise; integers and bool stay as they are. ATen's nan_to_num.",
		Decompose: nanToNum,
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.Cast(b.isFinite(in[0]), g.DType()))}
		}),
	})
}

func initBlends() {
	register("lerp(Tensor self, Tensor end, Scalar weight) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteTensors,
		Doc:       "self + weight·(end - self) of floats, exact at weights 0 and 1, elementwise with broadcasting; weight may be a tensor. ATen's lerp.",
		Decompose: floatComposite(lerp),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x, y, w := in[0], in[1], in[2]
			return []Value{b.Mul(g, b.oneMinus(w)), b.Mul(g, w), b.Mul(g, b.Sub(y, x))}
		}),
		Domain: [][2]float64{{-1, 1}, {-1, 1}, {0.1, 0.4}},
	})
	register("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteTensors,
		Doc: "self + value·tensor1·tensor2, elementwise with broadcasting; the tensors promote together, bool is not defined. ATen's addcmul.",
		Decompose: func(b *Builder, a Args) []Value {
			refuseBool(a)
			in := b.widenAll(a.In)
			return []Value{b.Cast(b.Add(in[0], b.Mul(b.Mul(in[3], in[1]), in[2])), a.In[0].DType())}
		},
	})
	register("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", Spec{
		Numbers:  map[string]NumberUse{"value": NumberWraps}, // there are no integers
		Category: Pointwise, Promote: PromoteTensors,
		Doc: "self + value·tensor1/tensor2 of floats, elementwise with broadcasting; the tensors promote together. ATen's addcdiv.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			return b.Add(in[0], b.Div(b.Mul(in[3], in[1]), in[2]))
		}),
		Domain: [][2]float64{{-1, 1}, {-1, 1}, {0.5, 2}},
	})
}

func inferWhere(a Args) []Shape {
	if d := a.In[0].DType(); d != Bool {
		a.Fail(ErrDType, "the condition must be bool, got %v", d)
	}
	return inferPointwise(a)
}

func vjpWhere(b *Builder, a Args, out, grad []Value) []Value {
	c, g := a.In[0], grad[0]
	zero := b.zeroOf(g)
	gx, gy := b.Where(c, g, zero), b.Where(c, zero, g)
	return []Value{{}, b.sumTo(gx, a.In[1].Shape()), b.sumTo(gy, a.In[2].Shape())}
}

func inferCast(a Args) []Shape {
	from, to := a.In[0].Shape(), a.DType("dtype")
	if !to.Valid() || dtypes[from.dtype].kind == kindComplex || dtypes[to].kind == kindComplex {
		a.Fail(ErrDType, "there is no conversion from %v to %v", from.dtype, to)
	}
	return []Shape{from.WithDType(to)}
}

// vjpCast converts the cotangent back; integers have none.
func vjpCast(b *Builder, a Args, out, grad []Value) []Value {
	d := a.In[0].DType()
	if !d.IsFloatOrF8() || !out[0].DType().IsFloatOrF8() {
		return []Value{{}}
	}
	return []Value{b.Cast(grad[0], d)}
}

func nanToNum(b *Builder, a Args) []Value {
	x := a.In[0]
	d := x.DType()
	if !d.IsFloat() {
		return []Value{x}
	}
	given := func(name string, otherwise float64) Value {
		if v, ok := a.OptFloat(name); ok {
			otherwise = v
		}
		return b.Const(otherwise, d)
	}
	top := maxFinite(d)
	inf := b.Where(b.gt(x, b.zeroOf(x)), given("posinf", top), given("neginf", -top))
	return []Value{b.Where(b.isNaN(x), given("nan", 0), b.Where(b.isInf(x), inf, x))}
}

// maxFinite returns the largest finite value of f16, bf16, f32 or f64.
func maxFinite(d DType) float64 {
	switch d {
	case F16:
		return 65504
	case BF16:
		return 0x1.fep127
	case F32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// lerp starts from the nearer end, so that both ends are exact.
func lerp(b *Builder, a Args, in []Value) Value {
	x, y, w := in[0], in[1], in[2]
	d := b.Sub(y, x)
	near := b.lt(b.abs(w), b.Const(0.5, w.DType()))
	return b.Where(near, b.Add(x, b.Mul(w, d)), b.Sub(y, b.Mul(d, b.oneMinus(w))))
}
