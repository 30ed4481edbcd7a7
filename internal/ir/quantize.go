package ir

// Affine quantisation: q = round(x/scale) + zero_point, limited to [quant_min, quant_max]. Quantised
// numbers are ordinary integer tensors, as in decomposed exports.

func init() {
	registerFakeQuantize()
	const limits = "int quant_min, int quant_max, ScalarType dtype"
	quantize := func(schema, doc string) {
		register(schema, Spec{Category: Neural, Doc: doc, Decompose: decomposeQuantize, NoGrad: "the result is an integer"})
	}
	quantize("quantize_per_tensor(Tensor input, Tensor scale, Tensor zero_point, "+limits+") -> Tensor",
		"round(input/scale) + zero_point, limited to quant_min to quant_max, of an integer dtype; scale and zero_point have one element. As quantized_decomposed::quantize_per_tensor.")
	quantize("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, "+limits+") -> Tensor",
		"quantize_per_tensor with a scale and a zero point for each slice along axis. As quantized_decomposed::quantize_per_channel.")
	dequantize := func(schema, doc string) {
		register(schema, Spec{Category: Neural, Doc: doc, Decompose: decomposeDequantize, NoGrad: "the operand is an integer"})
	}
	const widened = ", ScalarType out_dtype=f32"
	dequantize("dequantize_per_tensor(Tensor input, Tensor scale, Tensor zero_point, "+limits+widened+") -> Tensor",
		"(input - zero_point)·scale of integers of the given dtype, as out_dtype. quant_min and quant_max say what the input was limited to and change nothing. As quantized_decomposed::dequantize_per_tensor.")
	dequantize("dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, "+limits+widened+") -> Tensor",
		"dequantize_per_tensor with a scale and a zero point, 0 if absent, for each slice along axis. As quantized_decomposed::dequantize_per_channel.")
}

func registerFakeQuantize() {
	const limits = "int quant_min, int quant_max"
	perTensor := "(Tensor self, Tensor scale, Tensor zero_point, " + limits + ")"
	perChannel := "(Tensor self, Tensor scale, Tensor zero_point, int axis, " + limits + ")"
	straight := func(name, args, doc string) {
		register(name+args+" -> Tensor", Spec{
			Category: Neural, Doc: doc + " The gradient passes where nothing was limited. ATen's " + name + ".",
			Decompose: func(b *Builder, a Args) []Value { return fakeQuantize(b, a)[:1] },
			VJP: func(b *Builder, a Args, out, grad []Value) []Value {
				return []Value{b.Where(fakeQuantize(b, a)[1], grad[0], b.zeroOf(grad[0])), {}, {}}
			},
		})
		register(name+"_cachemask"+args+" -> (Tensor output, Tensor mask)", Spec{
			Category: Neural, Unlisted: true, Doc: name + " and where nothing was limited. As at::" + name + "_cachemask.", Decompose: fakeQuantize,
		})
	}
	straight("fake_quantize_per_tensor_affine", perTensor,
		"self after quantisation and back, of self's floating dtype, with one scale and one integer zero point.")
	straight("fake_quantize_per_channel_affine", perChannel,
		"fake_quantize_per_tensor_affine with a scale and a zero point for each slice along axis.")
}

// affineScale returns scale and zero point, shaped to broadcast against the first operand and as f32:
// one number each, or one for each slice along axis.
func affineScale(b *Builder, a Args) (scale, zero Value) {
	x := a.In[0].Shape()
	axis, n := -1, 1
	if a.Spec.Schema.Param("axis") >= 0 {
		axis = a.Dim("axis", x.Rank())
		n = AtLeast1D(x).Dim(axis)
	}
	if lo, hi := a.Int("quant_min"), a.Int("quant_max"); lo > hi {
		a.Fail(ErrArg, "quant_min %d should be less than or equal to quant_max %d", lo, hi)
	}
	shaped := func(v Value) Value {
		if v.Shape().Numel() != n || v.Rank() > 1 {
			a.Fail(ErrShape, "scales and zero points must have %d elements, got %v", n, v.Shape())
		}
		if axis < 0 {
			return b.Cast(b.Reshape(v), F32)
		}
		dims := make([]int, x.Rank())
		for d := range dims {
			dims[d] = 1
		}
		if len(dims) > 0 {
			dims[axis] = n
		}
		return b.Cast(b.Reshape(v, dims...), F32)
	}
	zero = b.Const(0, F32)
	if len(a.In) > 2 {
		zero = shaped(a.In[2])
	}
	return shaped(a.In[1]), zero
}

// quantized returns round(x/scale) + zero, not limited yet.
func quantized(b *Builder, x, scale, zero Value) Value {
	return b.Add(b.round(b.Mul(x, b.reciprocal(scale))), zero)
}

// limited returns q within quant_min to quant_max.
func limited(b *Builder, a Args, q Value) Value {
	lo, hi := b.Const(a.Int("quant_min"), q.DType()), b.Const(a.Int("quant_max"), q.DType())
	return b.minimum(b.maximum(q, lo), hi)
}

// fakeQuantize returns the result and where nothing was limited.
func fakeQuantize(b *Builder, a Args) []Value {
	x := a.In[0]
	requireFloat(a, x)
	scale, zero := affineScale(b, a)
	q := quantized(b, b.Cast(x, F32), scale, zero)
	kept := limited(b, a, q)
	out := b.Mul(b.Sub(kept, zero), scale)
	return []Value{b.Cast(out, x.DType()), b.eq(q, kept)}
}

func decomposeQuantize(b *Builder, a Args) []Value {
	x, d := a.In[0], a.DType("dtype")
	requireFloat(a, x)
	if !d.IsInt() {
		a.Fail(ErrDType, "dtype must be an integer, got %v", d)
	}
	lo, hi := intRange(d)
	if a.Int("quant_min") < int(lo) || a.Int("quant_max") > int(hi) {
		a.Fail(ErrArg, "%v does not hold quant_min %d to quant_max %d", d, a.Int("quant_min"), a.Int("quant_max"))
	}
	scale, zero := affineScale(b, a)
	return []Value{b.Cast(limited(b, a, quantized(b, b.Cast(x, F32), scale, zero)), d)}
}

func decomposeDequantize(b *Builder, a Args) []Value {
	x, d, out := a.In[0], a.DType("dtype"), a.DType("out_dtype")
	if x.DType() != d || !d.IsInt() || !out.IsFloat() {
		a.Fail(ErrDType, "input must be of the integer dtype %v and out_dtype floating, got %v and %v", d, x.DType(), out)
	}
	scale, zero := affineScale(b, a)
	return []Value{b.Cast(b.Mul(b.Sub(b.Cast(x, F32), zero), scale), out)}
}
