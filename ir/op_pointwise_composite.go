package ir

import "math"

// Composite pointwise ops of arithmetic. Those of neural networks are in
// activation.go. Floating ones compute in f32 on f16 and bf16 and round once,
// as ATen's kernels do.

// floatComposite is the decomposition of an op on floats, written for operands
// that are widened already; another dtype of self fails with ErrDType.
func floatComposite(f func(b *Builder, a Args, in []Value) Value) func(b *Builder, a Args) []Value {
	return func(b *Builder, a Args) []Value {
		d := a.In[0].DType()
		if !d.IsFloat() {
			a.Fail(ErrDType, "not defined for %v operands", d)
		}
		return []Value{b.Cast(f(b, a, b.widenAll(a.In)), d)}
	}
}

// compositeVJP is the gradient of such an op: f gets the operands, the result
// and its cotangent, all widened, and returns the cotangents of the first
// operands with the result's dimensions; absent ones stay so.
func compositeVJP(f func(b *Builder, a Args, in []Value, out, g Value) []Value) func(b *Builder, a Args, out, grad []Value) []Value {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		gs := make([]Value, len(a.In))
		for i, g := range f(b, a, b.widenAll(a.In), b.widen(out[0]), b.widen(grad[0])) {
			if !g.IsNil() {
				gs[i] = b.Cast(b.SumTo(g, a.In[i].Shape()), a.In[i].DType())
			}
		}
		return gs
	}
}

func (b *Builder) widenAll(in []Value) []Value {
	out := make([]Value, len(in))
	for i, v := range in {
		out[i] = b.widen(v)
	}
	return out
}

func init() {
	registerPowers()
	registerBounds()
	registerBlends()
	registerParts()
	registerLogs()
}

func registerPowers() {
	register("square(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Doc: "x², elementwise; integers wrap, bool gives i64. ATen's square.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			if x.DType() == Bool {
				x = b.Cast(x, I64)
			}
			return []Value{b.Mul(x, x)}
		},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.scale(in[0], 2))}
		}),
	})
	register("hypot(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "√(x² + y²) of floats without overflow, elementwise with broadcasting; an infinity wins over NaN. ATen's hypot.",
		Decompose: floatComposite(hypot),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			s := b.Div(g, out)
			return []Value{b.Mul(s, in[0]), b.Mul(s, in[1])}
		}),
	})
}

func hypot(b *Builder, a Args, in []Value) Value {
	x, y := b.Abs(in[0]), b.Abs(in[1])
	m := b.Maximum(x, y)
	r := b.Div(b.Minimum(x, y), m)
	h := b.Mul(m, b.Sqrt(b.shift(b.Mul(r, r), 1)))
	h = b.Where(b.Eq(m, b.zeroOf(m)), m, h)
	return b.Where(b.IsInf(x), x, b.Where(b.IsInf(y), y, h))
}

func registerBounds() {
	const doc = " self and the bounds promote together and broadcast; NaN stays. The gradient at a scalar bound is 0; a tensor bound " +
		"shares it with self where they are equal."
	register("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc: "min(max(x, min), max), elementwise; max wins where it is below min. At least one bound must be given." + doc + " ATen's clamp.",
		Decompose: func(b *Builder, a Args) []Value {
			lo, hi := a.Tensor("min"), a.Tensor("max")
			if lo.IsNil() && hi.IsNil() {
				a.Fail(ErrArg, "at least one of min and max must be given")
			}
			return []Value{b.clamped(a.In[0], lo, hi)}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, a.Tensor("min"), a.Tensor("max"), grad[0])
		},
	})
	register("clamp_min(Tensor self, Scalar min) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault, Doc: "max(x, min), elementwise." + doc + " ATen's clamp_min.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.Maximum(a.In[0], a.In[1])} },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, a.In[1], Value{}, grad[0])
		},
	})
	register("clamp_max(Tensor self, Scalar max) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault, Doc: "min(x, max), elementwise." + doc + " ATen's clamp_max.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.Minimum(a.In[0], a.In[1])} },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return vjpClamp(b, a, Value{}, a.In[1], grad[0])
		},
	})
	registerFloatExtremum("fmax", "larger", (*Builder).Maximum, (*Builder).Gt)
	registerFloatExtremum("fmin", "smaller", (*Builder).Minimum, (*Builder).Lt)
}

// clamped limits x from below and above, where the bounds are given.
func (b *Builder) clamped(x, lo, hi Value) Value {
	if !lo.IsNil() {
		x = b.Maximum(x, lo)
	}
	if !hi.IsNil() {
		x = b.Minimum(x, hi)
	}
	return x
}

// vjpClamp treats rank-0 bounds as ATen's scalar overload does: at a bound self
// has no gradient. Bounds with dimensions share it on ties.
func vjpClamp(b *Builder, a Args, lo, hi, g Value) []Value {
	x := a.In[0]
	var gx, glo, ghi Value
	if (lo.IsNil() || lo.Rank() == 0) && (hi.IsNil() || hi.Rank() == 0) {
		inside, below, above := b.clampParts(x, lo, hi)
		zero := b.zeroOf(g)
		gx = b.Where(inside, g, zero)
		if !lo.IsNil() {
			glo = b.Where(below, g, zero)
		}
		if !hi.IsNil() {
			ghi = b.Where(above, g, zero)
		}
	} else {
		gx, glo, ghi = b.clampTensorParts(x, lo, hi, g)
	}
	gs := []Value{b.SumTo(gx, x.Shape())}
	if !lo.IsNil() {
		gs = append(gs, b.SumTo(glo, lo.Shape()))
	}
	if !hi.IsNil() {
		gs = append(gs, b.SumTo(ghi, hi.Shape()))
	}
	return gs
}

// clampParts tells where x is strictly inside its bounds, and where each bound
// is the result instead. NaN is in no part. The part of an absent bound is
// absent, and one bound at least is given.
func (b *Builder) clampParts(x, lo, hi Value) (inside, below, above Value) {
	switch {
	case hi.IsNil():
		return b.Gt(x, lo), b.Le(x, lo), Value{}
	case lo.IsNil():
		return b.Lt(x, hi), Value{}, b.Ge(x, hi)
	}
	above = b.Ge(b.Maximum(x, lo), hi)
	inside = b.LogicalAnd(b.Gt(x, lo), b.Lt(x, hi))
	return inside, b.LogicalAnd(b.Le(x, lo), b.LogicalNot(above)), above
}

// clampTensorParts shares the cotangent on ties: between self and the bound, or
// all to self where both bounds are equal to it.
func (b *Builder) clampTensorParts(x, lo, hi, g Value) (gx, glo, ghi Value) {
	switch {
	case hi.IsNil():
		gx, glo = vjpMaximum(b, x, lo, Value{}, g)
		return gx, glo, Value{}
	case lo.IsNil():
		gx, ghi = vjpMinimum(b, x, hi, Value{}, g)
		return gx, Value{}, ghi
	}
	zero, half := b.zeroOf(g), b.scale(g, 0.5)
	apart := b.Lt(lo, hi)
	tieLo, tieHi := b.LogicalAnd(apart, b.Eq(x, lo)), b.LogicalAnd(apart, b.Eq(x, hi))
	below, above := b.Lt(x, lo), b.Gt(x, hi)
	ordered := b.Le(lo, hi)
	gx = b.Where(b.LogicalOr(below, above), zero, b.Where(b.LogicalOr(tieLo, tieHi), half, g))
	glo = b.Where(tieLo, half, b.Where(b.LogicalAnd(below, ordered), g, zero))
	hiWins := b.LogicalOr(b.Gt(lo, hi), b.LogicalAnd(above, ordered))
	ghi = b.Where(tieHi, half, b.Where(hiWins, g, zero))
	return gx, glo, ghi
}

// registerFloatExtremum makes the row of an extremum that NaN loses.
func registerFloatExtremum(name, which string, extremum, wins func(b *Builder, x, y Value) Value) {
	register(name+"(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc: "The " + which + " of x and y, elementwise with broadcasting; a number wins over NaN. Equal operands share the gradient. ATen's " + name + ".",
		Decompose: func(b *Builder, a Args) []Value {
			x, y := a.In[0], a.In[1]
			m := extremum(b, x, y)
			if x.DType().IsFloat() {
				m = b.Where(b.IsNaN(y), x, b.Where(b.IsNaN(x), y, m))
			}
			return []Value{m}
		},
		VJP: binaryVJP(func(b *Builder, x, y, z, g Value) (gx, gy Value) {
			zero := b.zeroOf(g)
			half := b.scale(g, 0.5)
			tie := b.Eq(x, y)
			won := b.LogicalOr(wins(b, x, y), b.IsNaN(y))
			return b.Where(tie, half, b.Where(won, g, zero)), b.Where(tie, half, b.Where(won, zero, g))
		}).rule(),
	})
}

func registerBlends() {
	register("lerp(Tensor self, Tensor end, Scalar weight) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteTensors,
		Doc:       "self + weight·(end - self) of floats, exact at weights 0 and 1, elementwise with broadcasting; weight may be a tensor. ATen's lerp.",
		Decompose: floatComposite(lerp),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x, y, w := in[0], in[1], in[2]
			return []Value{b.Mul(g, b.oneMinus(w)), b.Mul(g, w), b.Mul(g, b.Sub(y, x))}
		}),
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
		Category: Pointwise, Promote: PromoteTensors,
		Doc: "self + value·tensor1/tensor2 of floats, elementwise with broadcasting; the tensors promote together. ATen's addcdiv.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			return b.Add(in[0], b.Div(b.Mul(in[3], in[1]), in[2]))
		}),
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
}

// lerp starts from the nearer end, so that both ends are exact.
func lerp(b *Builder, a Args, in []Value) Value {
	x, y, w := in[0], in[1], in[2]
	d := b.Sub(y, x)
	near := b.Lt(b.Abs(w), b.Const(0.5, w.DType()))
	return b.Where(near, b.Add(x, b.Mul(w, d)), b.Sub(y, b.Mul(d, b.oneMinus(w))))
}

func registerParts() {
	register("frac(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Doc: "x - trunc(x) of floats, elementwise. ATen's frac.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.Sub(in[0], b.Trunc(in[0])) }),
		VJP:       func(b *Builder, a Args, out, grad []Value) []Value { return []Value{grad[0]} },
	})
	register("copysign(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "|x| with the sign of y, elementwise with broadcasting; -0 is negative and NaN positive. Integers and bool give f32. ATen's copysign.",
		Decompose: func(b *Builder, a Args) []Value {
			x, y := b.Abs(a.In[0]), a.In[1]
			zero := b.zeroOf(y)
			negative := b.LogicalOr(b.Lt(y, zero), b.Lt(b.Reciprocal(y), zero))
			return []Value{b.Where(negative, b.Neg(x), x)}
		},
		VJP: binaryVJP(func(b *Builder, x, y, z, g Value) (gx, gy Value) {
			ratio := b.Where(b.Eq(x, b.zeroOf(x)), b.zeroOf(x), b.Div(z, x))
			return b.Mul(g, ratio), b.FullLike(y, 0)
		}).rule(),
	})
	register("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", Spec{
		Category: Pointwise,
		Doc: "x with NaN replaced by nan (0 if absent) and the infinities by posinf and neginf (the dtype's largest and least finite value), " +
			"elementwise; integers and bool stay as they are. ATen's nan_to_num.",
		Decompose: nanToNum,
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.Cast(b.IsFinite(in[0]), g.DType()))}
		}),
	})
	infTest := func(name, which string, side func(b *Builder, x, y Value) Value) {
		register(name+"(Tensor self) -> Tensor", Spec{
			Category: Pointwise, Doc: "Whether x is " + which + " infinity, elementwise, as bool. ATen's " + name + ".", NoGrad: noGradBool,
			Decompose: func(b *Builder, a Args) []Value {
				x := a.In[0]
				return []Value{b.LogicalAnd(b.IsInf(x), side(b, x, b.zeroOf(x)))}
			},
		})
	}
	infTest("isposinf", "positive", (*Builder).Gt)
	infTest("isneginf", "negative", (*Builder).Lt)
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
	inf := b.Where(b.Gt(x, b.zeroOf(x)), given("posinf", top), given("neginf", -top))
	return []Value{b.Where(b.IsNaN(x), given("nan", 0), b.Where(b.IsInf(x), inf, x))}
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

func registerLogs() {
	register("xlogy(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc:       "x·log(y), 0 where x is 0 unless y is NaN, elementwise with broadcasting; integers and bool give f32. ATen's xlogy.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.xlogy(in[0], in[1]) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x, y := in[0], in[1]
			zero := b.zeroOf(g)
			flat := b.LogicalAnd(b.Eq(x, zero), b.Le(y, zero))
			return []Value{b.Where(flat, zero, b.xlogy(g, y)), b.Div(b.Mul(g, x), y)}
		}),
	})
	register("logaddexp(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "log(eˣ + eʸ) of floats without overflow, elementwise with broadcasting. ATen's logaddexp.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.logAddExp(in[0], in[1], OpExp, 1) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return b.vjpLogAddExp(in[0], in[1], g, 1)
		}),
	})
	register("logaddexp2(Tensor self, Tensor other) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteDefault,
		Doc:       "log2(2ˣ + 2ʸ) of floats without overflow, elementwise with broadcasting. ATen's logaddexp2.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.logAddExp(in[0], in[1], OpExp2, 1/math.Ln2) }),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return b.vjpLogAddExp(in[0], in[1], g, math.Ln2)
		}),
	})
	register("logit(Tensor self, float? eps=None) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "log(x/(1-x)), elementwise, of x limited to [eps, 1-eps] if eps is given; integers and bool give f32. ATen's logit.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			x := in[0]
			if eps, ok := a.OptFloat("eps"); ok {
				x = b.clamped(x, b.Const(eps, x.DType()), b.Const(1-eps, x.DType()))
			}
			return b.Log(b.Div(x, b.oneMinus(x)))
		}),
		VJP: compositeVJP(vjpLogit),
	})
	register("sinc(Tensor self) -> Tensor", Spec{
		Category: Pointwise, Promote: PromoteIntToFloat,
		Doc: "sin(πx)/(πx), 1 at 0, elementwise; integers and bool give f32. ATen's sinc.",
		Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value {
			x := in[0]
			px := b.scale(x, math.Pi)
			return b.Where(b.Eq(x, b.zeroOf(x)), b.Const(1, x.DType()), b.Div(b.Sin(px), px))
		}),
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			px := b.scale(x, math.Pi)
			square := b.Mul(px, x)
			slope := b.Div(b.Sub(b.Mul(px, b.Cos(px)), b.Sin(px)), square)
			return []Value{b.Where(b.Eq(square, b.zeroOf(x)), b.zeroOf(x), b.Mul(g, slope))}
		}),
	})
	angle := func(name, doc string, factor float64) {
		register(name+"(Tensor self) -> Tensor", Spec{
			Category: Pointwise, Promote: PromoteIntToFloat,
			Doc:       doc + ", elementwise; integers and bool give f32. ATen's " + name + ".",
			Decompose: floatComposite(func(b *Builder, a Args, in []Value) Value { return b.scale(in[0], factor) }),
		})
	}
	angle("deg2rad", "x·π/180", math.Pi/180)
	angle("rad2deg", "x·180/π", 180/math.Pi)
}

func (b *Builder) xlogy(x, y Value) Value {
	zero := b.zeroOf(x)
	z := b.Where(b.Eq(x, zero), zero, b.Mul(x, b.Log(y)))
	return b.Where(b.IsNaN(y), y, z)
}

// logAddExp is max(x, y) + log1p(exp(-|x-y|))·unit; equal infinities are their
// own sum, which the difference cannot tell.
func (b *Builder) logAddExp(x, y Value, exp Op, unit float64) Value {
	tail := b.Log1p(b.Unary(exp, b.Neg(b.Abs(b.Sub(x, y)))))
	if unit != 1 {
		tail = b.scale(tail, unit)
	}
	same := b.LogicalAnd(b.Eq(x, y), b.IsInf(x))
	return b.Where(same, x, b.Add(b.Maximum(x, y), tail))
}

// vjpLogAddExp shares the cotangent by the sigmoid of the difference.
func (b *Builder) vjpLogAddExp(x, y, g Value, ln float64) []Value {
	d := b.Sub(x, y)
	if ln != 1 {
		d = b.scale(d, ln)
	}
	return []Value{b.Mul(g, b.Sigmoid(d)), b.Mul(g, b.Sigmoid(b.Neg(d)))}
}

// vjpLogit is g/(x(1-x)) in the domain; beyond it NaN, or 0 where eps limits x.
func vjpLogit(b *Builder, a Args, in []Value, out, g Value) []Value {
	x := in[0]
	gx := b.Div(g, b.Mul(x, b.oneMinus(x)))
	lo, outside := 0.0, math.NaN()
	if eps, ok := a.OptFloat("eps"); ok {
		lo, outside = eps, 0
	}
	limit := func(v float64) Value { return b.Const(v, x.DType()) }
	beyond := b.LogicalOr(b.Lt(x, limit(lo)), b.Gt(x, limit(1-lo)))
	return []Value{b.Where(beyond, limit(outside), gx)}
}
