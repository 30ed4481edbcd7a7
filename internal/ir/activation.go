package ir

import "math"

// The pointwise composites of neural networks. f16 and bf16 compute in f32 and
// round once; Scalar operands take self's dtype, so that changing one never
// compiles anew.

// activation adds the row of an op on floats.
func activation(schema, doc string, s Spec, f func(b *Builder, a Args, in []Value) Value) {
	s.Category, s.Doc, s.Decompose = Pointwise, doc, floatComposite(f)
	if s.Promote == PromoteNone {
		s.Promote = PromoteTensors
	}
	register(schema, s)
}

func init() {
	registerSmooth()
	registerGelu()
	registerRectifiers()
	registerHard()
	registerShrink()
}

func registerSmooth() {
	activation("silu(Tensor self) -> Tensor", "x·sigmoid(x) of floats, elementwise. ATen's silu.", Spec{
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			s := b.sigmoid(x)
			return []Value{b.Mul(g, b.Mul(s, b.shift(b.Mul(x, b.oneMinus(s)), 1)))}
		}),
	}, func(b *Builder, a Args, in []Value) Value { return b.Mul(in[0], b.sigmoid(in[0])) })

	activation("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
		"log(1 + e^(βx))/β of floats, elementwise; x itself where βx is above threshold. ATen's softplus.", Spec{Domain: [][2]float64{{-2, 2}, {0.5, 1.5}, {18, 22}}, VJP: compositeVJP(vjpSoftplus)},
		func(b *Builder, a Args, in []Value) Value {
			x, beta, threshold := in[0], in[1], in[2]
			z := b.Mul(x, beta)
			return b.Where(b.gt(z, threshold), x, b.Div(b.log1p(b.Exp(z)), beta))
		})

	activation("mish(Tensor self) -> Tensor", "x·tanh(log(1 + eˣ)) of floats, elementwise. ATen's mish.", Spec{
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			t := b.tanh(b.log1p(b.Exp(x)))
			return []Value{b.Mul(g, b.Add(t, b.Mul(b.Mul(x, b.sigmoid(x)), b.oneMinus(b.Mul(t, t)))))}
		}),
	}, func(b *Builder, a Args, in []Value) Value { return b.Mul(in[0], b.tanh(b.log1p(b.Exp(in[0])))) })

	activation("log_sigmoid(Tensor self) -> Tensor", "log(sigmoid(x)) of floats without overflow, elementwise. ATen's log_sigmoid.", Spec{
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			return []Value{b.Mul(g, b.sigmoid(b.Neg(in[0])))}
		}),
	}, func(b *Builder, a Args, in []Value) Value {
		x := in[0]
		return b.Sub(b.minimum(x, b.zeroOf(x)), b.log1p(b.Exp(b.Neg(b.abs(x)))))
	})

	activation("softsign(Tensor self) -> Tensor", "x/(1 + |x|), elementwise; integers and bool give f32. As torch.nn.functional.softsign.", Spec{Domain: [][2]float64{{0.1, 2}}, Promote: PromoteIntToFloat},
		func(b *Builder, a Args, in []Value) Value { return b.Div(in[0], b.shift(b.abs(in[0]), 1)) })

	activation("tanhshrink(Tensor self) -> Tensor", "x - tanh(x), elementwise; integers and bool give f32. As torch.nn.functional.tanhshrink.", Spec{Promote: PromoteIntToFloat},
		func(b *Builder, a Args, in []Value) Value { return b.Sub(in[0], b.tanh(in[0])) })
}

// vjpSoftplus never divides infinities: sigmoid(βx) is the slope.
func vjpSoftplus(b *Builder, a Args, in []Value, out, g Value) []Value {
	x, beta, threshold := in[0], in[1], in[2]
	z := b.Mul(x, beta)
	linear := b.gt(z, threshold)
	s := b.sigmoid(z)
	slope := b.Div(b.Sub(b.Mul(x, s), out), beta)
	return []Value{b.Where(linear, g, b.Mul(g, s)), b.Where(linear, b.zeroOf(g), b.Mul(g, slope))}
}

// The constants of gelu.
const (
	geluCube  = 0.044715
	invSqrt2  = 1 / math.Sqrt2
	sqrt2ByPi = math.Sqrt2 / math.SqrtPi
)

func registerGelu() {
	activation("gelu(Tensor self, *, str approximate='none') -> Tensor",
		"x·Φ(x) of floats, elementwise, with Φ the normal distribution by erf ('none') or by tanh ('tanh'). ATen's gelu.",
		Spec{VJP: compositeVJP(vjpGelu)},
		func(b *Builder, a Args, in []Value) Value {
			x := in[0]
			if geluByTanh(a) {
				return b.Mul(b.scale(x, 0.5), b.shift(b.geluTanh(x), 1))
			}
			return b.Mul(b.scale(x, 0.5), b.shift(b.erf(b.scale(x, invSqrt2)), 1))
		})
}

func geluByTanh(a Args) bool {
	switch s := a.Str("approximate"); s {
	case "none":
		return false
	case "tanh":
		return true
	default:
		a.Fail(ErrArg, "approximate must be 'none' or 'tanh', got %q", s)
		return false
	}
}

func (b *Builder) geluTanh(x Value) Value {
	return b.tanh(b.scale(b.Add(x, b.scale(b.Mul(b.Mul(x, x), x), geluCube)), sqrt2ByPi))
}

// vjpGelu is g·(Φ(x) + x·Φ'(x)).
func vjpGelu(b *Builder, a Args, in []Value, out, g Value) []Value {
	x := in[0]
	x2 := b.Mul(x, x)
	if geluByTanh(a) {
		t := b.geluTanh(x)
		inner := b.scale(b.shift(b.scale(x2, 3*geluCube), 1), sqrt2ByPi)
		density := b.Mul(b.scale(b.oneMinus(b.Mul(t, t)), 0.5), inner)
		return []Value{b.Mul(g, b.Add(b.scale(b.shift(t, 1), 0.5), b.Mul(x, density)))}
	}
	cdf := b.scale(b.shift(b.erf(b.scale(x, invSqrt2)), 1), 0.5)
	density := b.scale(b.Exp(b.scale(x2, -0.5)), sqrt2ByPi/2)
	return []Value{b.Mul(g, b.Add(cdf, b.Mul(x, density)))}
}

func registerRectifiers() {
	activation("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
		"x where it is positive, x·negative_slope elsewhere, of floats, elementwise. ATen's leaky_relu.", Spec{Domain: [][2]float64{{-2, -0.1}}},
		func(b *Builder, a Args, in []Value) Value {
			return b.Where(b.gt(in[0], b.zeroOf(in[0])), in[0], b.Mul(in[0], in[1]))
		})
	activation("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
		"scale·x where x is positive, scale·alpha·(e^(input_scale·x) - 1) elsewhere, of floats, elementwise. ATen's elu.", Spec{Domain: [][2]float64{{-2, -0.1}, {0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}}},
		func(b *Builder, a Args, in []Value) Value {
			x, scale := in[0], in[2]
			negative := b.le(x, b.zeroOf(x))
			return b.Where(negative, b.Mul(b.negativeExpm1(x, negative, in[3]), b.Mul(in[1], scale)), b.Mul(x, scale))
		})
	activation("celu(Tensor self, Scalar alpha=1) -> Tensor",
		"x where it is positive, alpha·(e^(x/alpha) - 1) elsewhere, of floats, elementwise. ATen's celu.", Spec{Domain: [][2]float64{{-2, -0.1}, {0.5, 1.5}}},
		func(b *Builder, a Args, in []Value) Value {
			x, alpha := in[0], in[1]
			negative := b.le(x, b.zeroOf(x))
			return b.Where(negative, b.Mul(b.negativeExpm1(x, negative, b.reciprocal(alpha)), alpha), x)
		})
	activation("selu(Tensor self) -> Tensor",
		"elu with alpha 1.67326… and scale 1.05070…, which keep activations normal, of floats, elementwise. ATen's selu.", Spec{Domain: [][2]float64{{-2, -0.1}}},
		func(b *Builder, a Args, in []Value) Value {
			const alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
			x := in[0]
			negative := b.le(x, b.zeroOf(x))
			y := b.negativeExpm1(x, negative, b.Const(1, x.DType()))
			return b.Where(negative, b.scale(y, alpha*scale), b.scale(x, scale))
		})
	register("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", Spec{
		Domain:   [][2]float64{{-1, -0.1}, {0, 0.2}},
		Category: Pointwise, Promote: PromoteTensors,
		Doc: "x where it is above threshold or NaN, value elsewhere, elementwise; bool is not defined. ATen's threshold.",
		Decompose: func(b *Builder, a Args) []Value {
			refuseBool(a)
			in := b.widenAll(a.In)
			return []Value{b.Cast(b.Where(b.le(in[0], in[1]), in[2], in[0]), a.In[0].DType())}
		},
	})
}

// negativeExpm1 is expm1(x·scale) where x is negative. Elsewhere it is taken at
// 0, so that the part which is not chosen has no infinity whose gradient
// would be NaN.
func (b *Builder) negativeExpm1(x, negative, scale Value) Value {
	return b.expm1(b.Mul(b.Where(negative, x, b.zeroOf(x)), scale))
}

func refuseBool(a Args) {
	if a.In[0].DType() == Bool {
		a.Fail(ErrDType, "not defined for bool operands")
	}
}

func registerHard() {
	register("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", Spec{
		Numbers:  map[string]NumberUse{"min_val": NumberLower, "max_val": NumberUpper},
		Domain:   [][2]float64{{-1, 1}, {-3, -2}, {0.2, 0.4}},
		Category: Pointwise, Promote: PromoteTensors,
		Doc: "min(max(x, min_val), max_val), elementwise; bool is not defined. The gradient at a bound is 0. ATen's hardtanh.",
		Decompose: func(b *Builder, a Args) []Value {
			refuseBool(a)
			in := b.widenAll(a.In)
			return []Value{b.Cast(b.clamped(in[0], in[1], in[2]), a.In[0].DType())}
		},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			gx, glo, ghi := vjpHardtanh(b, in[0], in[1], in[2], g)
			return []Value{gx, glo, ghi}
		}),
	})
	register("relu6(Tensor self) -> Tensor", Spec{
		Domain:   [][2]float64{{0.5, 5.5}},
		Category: Pointwise,
		Doc:      "min(max(x, 0), 6), elementwise; bool is not defined. The gradient at 0 and 6 is 0. ATen's relu6.",
		Decompose: func(b *Builder, a Args) []Value {
			refuseBool(a)
			return []Value{b.clamped(a.In[0], b.zeroOf(a.In[0]), b.Const(6, a.In[0].DType()))}
		},
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			x := a.In[0]
			gx, _, _ := vjpHardtanh(b, x, b.zeroOf(x), b.Const(6, x.DType()), grad[0])
			return []Value{gx}
		},
	})
	activation("hardsigmoid(Tensor self) -> Tensor", "min(max(x + 3, 0), 6)/6 of floats, elementwise. The gradient at ±3 is 0. ATen's hardsigmoid.", Spec{
		Domain: [][2]float64{{-2.5, 2.5}},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			inside := b.logicalAnd(b.gt(x, b.Const(-3, x.DType())), b.lt(x, b.Const(3, x.DType())))
			return []Value{b.Where(inside, b.scale(g, 1.0/6), b.zeroOf(g))}
		}),
	}, func(b *Builder, a Args, in []Value) Value { return b.Div(b.relu6Of3(in[0]), b.Const(6, in[0].DType())) })
	activation("hardswish(Tensor self) -> Tensor", "x·min(max(x + 3, 0), 6)/6 of floats, elementwise. The gradient at -3 is 0, at 3 it is 1. ATen's hardswish.", Spec{
		Domain: [][2]float64{{-2.5, 2.5}},
		VJP: compositeVJP(func(b *Builder, a Args, in []Value, out, g Value) []Value {
			x := in[0]
			slope := b.Mul(g, b.shift(b.scale(x, 1.0/3), 0.5))
			gx := b.Where(b.lt(x, b.Const(3, x.DType())), slope, g)
			return []Value{b.Where(b.le(x, b.Const(-3, x.DType())), b.zeroOf(g), gx)}
		}),
	}, func(b *Builder, a Args, in []Value) Value {
		return b.Div(b.Mul(in[0], b.relu6Of3(in[0])), b.Const(6, in[0].DType()))
	})
}

// relu6Of3 is min(max(x + 3, 0), 6).
func (b *Builder) relu6Of3(x Value) Value {
	return b.clamped(b.shift(x, 3), b.zeroOf(x), b.Const(6, x.DType()))
}

// vjpHardtanh is 0 at and beyond the bounds; unlike clamp's, NaN passes.
func vjpHardtanh(b *Builder, x, lo, hi, g Value) (gx, glo, ghi Value) {
	zero := b.zeroOf(g)
	_, below, above := b.clampParts(x, lo, hi)
	gx = b.Where(b.logicalOr(b.le(x, lo), b.ge(x, hi)), zero, g)
	return gx, b.Where(below, g, zero), b.Where(above, g, zero)
}

func registerShrink() {
	activation("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
		"0 where |x| is at most lambd, x elsewhere, of floats, elementwise. ATen's hardshrink.", Spec{Domain: [][2]float64{{1, 2}, {0.1, 0.4}}},
		func(b *Builder, a Args, in []Value) Value {
			return b.Where(b.le(b.abs(in[0]), in[1]), b.zeroOf(in[0]), in[0])
		})
	activation("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
		"x moved towards 0 by lambd and no further, of floats, elementwise. ATen's softshrink.", Spec{Domain: [][2]float64{{-2, -1}, {0.1, 0.4}}},
		func(b *Builder, a Args, in []Value) Value {
			x, l := in[0], in[1]
			moved := b.Where(b.gt(x, b.zeroOf(x)), b.Sub(x, l), b.Add(x, l))
			return b.Where(b.le(b.abs(x), l), b.scale(x, 0), moved)
		})
}
