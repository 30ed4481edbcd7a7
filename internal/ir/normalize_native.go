package ir

import "slices"

// The normalisations as decomposed programs have them: with the statistics as results, which their
// gradients take, and under the names of ATen's kernels. Users call layer_norm, group_norm,
// batch_norm, softmax and log_softmax.

func init() {
	native := func(schema, doc string, decompose func(b *Builder, a Args) []Value) {
		register(schema, Spec{Category: Neural, Unlisted: true, Doc: doc, Decompose: decompose})
	}
	native("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
		"layer_norm with the mean and the reciprocal standard deviation of each normalised part. As at::native_layer_norm.", nativeLayerNorm)
	native("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
		"group_norm with the mean and the reciprocal standard deviation of each group, [N, group]. As at::native_group_norm.", nativeGroupNorm)
	batch := "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor output, Tensor save_mean, Tensor save_invstd"
	native("_native_batch_norm_legit_functional"+batch+", Tensor running_mean_out, Tensor running_var_out)",
		"batch_norm with the batch's mean and reciprocal standard deviation, and the updated running statistics. As at::_native_batch_norm_legit_functional.", nativeBatchNorm)
	native("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor output, Tensor save_mean, Tensor save_invstd)",
		"batch_norm by the running statistics; the other results are empty. As at::_native_batch_norm_legit_no_training.", nativeBatchNormInference)
	native("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
		"softmax; half_to_float gives f32 for f16. As at::_softmax.", nativeSoftmax("softmax"))
	native("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
		"log_softmax; half_to_float gives f32 for f16. As at::_log_softmax.", nativeSoftmax("log_softmax"))
	native("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
		"The gradient of softmax from its result, of dtype input_dtype. As at::_softmax_backward_data.", func(b *Builder, a Args) []Value {
			g, y, dim := softmaxGradientOperands(b, a)
			gy := b.Mul(g, y)
			return []Value{b.Cast(b.Sub(gy, b.Mul(y, b.Sum(gy, reduceDims(y, dim), true))), a.DType("input_dtype"))}
		})
	native("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
		"The gradient of log_softmax from its result, of dtype input_dtype. As at::_log_softmax_backward_data.", func(b *Builder, a Args) []Value {
			g, y, dim := softmaxGradientOperands(b, a)
			return []Value{b.Cast(b.Sub(g, b.Mul(b.Exp(y), b.Sum(g, reduceDims(y, dim), true))), a.DType("input_dtype"))}
		})
	registerBackward("native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, int[] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
		"The gradients of layer_norm with respect to input, weight and bias, as far as output_mask has a 1 for them; the others are empty. As at::native_layer_norm_backward.", nativeLayerNormBackward)
	registerBackward("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int HxW, int group, int[] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
		"The gradients of group_norm with respect to input, weight and bias, as far as output_mask has a 1 for them; the others are empty. As at::native_group_norm_backward.", nativeGroupNormBackward)
}

// statisticsDType is the dtype of the statistics that a normalisation returns: the parameters' where
// there are any, else the input's.
func statisticsDType(a Args) DType {
	for _, name := range []string{"weight", "bias"} {
		if v := a.Tensor(name); !v.IsNil() {
			return v.DType()
		}
	}
	return a.In[0].DType()
}

func nativeLayerNorm(b *Builder, a Args) []Value {
	dims := normTail(a)
	x, d := b.widen(a.In[0]), statisticsDType(a)
	mean := b.Mean(x, dims, true)
	c, r := b.standardize(x, dims, a.float("eps"))
	y := b.affine(b.Mul(c, r), a.Tensor("weight"), a.Tensor("bias"))
	return []Value{b.Cast(y, a.In[0].DType()), b.Cast(mean, d), b.Cast(r, d)}
}

// nativeGroups checks N, C, HxW and group against the input, and returns its groups.
func nativeGroups(b *Builder, a Args) normGroups {
	n, c, hw, group, x := a.Int("N"), a.Int("C"), a.Int("HxW"), a.Int("group"), a.Tensor("input")
	if x.Rank() < 2 || x.Dim(0) != n || x.Dim(1) != c || group < 1 || c%group != 0 || n*c*hw != x.Shape().Numel() {
		a.Fail(ErrShape, "N %d, C %d, HxW %d and group %d do not fit input %v", n, c, hw, group, x.Shape())
	}
	return groupsOf(b, x, perChannel(b, a, "weight", x), group)
}

func nativeGroupNorm(b *Builder, a Args) []Value {
	requireChannels(a)
	x, g := a.In[0], nativeGroups(b, a)
	y := b.Cast(g.forward(b, perChannel(b, a, "bias", x), a.float("eps")), x.DType())
	d, each := statisticsDType(a), []int{x.Dim(0), a.Int("group")}
	return []Value{b.Reshape(y, x.Shape().Dims()...), b.Cast(b.Reshape(g.mean, each...), d), b.Cast(b.Reshape(g.rstd, each...), d)}
}

func nativeBatchNorm(b *Builder, a Args) []Value {
	requireChannels(a)
	out := b.Call(byName["batch_norm"], []any{a.In[0], a.Tensor("weight"), a.Tensor("bias"), a.Tensor("running_mean"), a.Tensor("running_var"),
		a.Bool("training"), b.WrappedConst(a.float("momentum")), a.float("eps")})
	empty := b.Full([]int{0}, 0, a.In[0].DType())
	if !a.Bool("training") {
		return []Value{out[0], empty, empty, out[1], out[2]}
	}
	x := b.widen(a.In[0])
	dims := batchDimsOf(x)
	_, r := b.standardize(x, dims, a.float("eps"))
	d := statisticsDType(a)
	saved := []Value{out[0], b.Cast(b.Mean(x, dims, false), d), b.Cast(b.Reshape(r, x.Dim(1)), d)}
	if a.Tensor("running_mean").IsNil() { // which there is nothing to update of
		return append(saved, empty, empty)
	}
	return append(saved, out[1], out[2])
}

func nativeBatchNormInference(b *Builder, a Args) []Value {
	out := b.Call(byName["_native_batch_norm_legit_functional"], []any{a.In[0], a.Tensor("weight"), a.Tensor("bias"),
		a.Tensor("running_mean"), a.Tensor("running_var"), false, a.float("momentum"), a.float("eps")})
	return out[:3]
}

// nativeSoftmax is softmax or log_softmax as ATen's kernels are called.
func nativeSoftmax(name string) func(b *Builder, a Args) []Value {
	return func(b *Builder, a Args) []Value {
		if !a.Bool("half_to_float") {
			return []Value{b.callNamed(name, []any{a.In[0], a.Int("dim")})}
		}
		if a.In[0].DType() != F16 {
			a.Fail(ErrDType, "conversion is supported for f16 type only, got %v", a.In[0].DType())
		}
		return []Value{b.callNamed(name, []any{a.In[0], a.Int("dim"), F32})}
	}
}

// softmaxGradientOperands returns the cotangent and the result in the dtype computed in, and dim.
func softmaxGradientOperands(b *Builder, a Args) (g, y Value, dim int) {
	g, y = a.Tensor("grad_output"), a.Tensor("output")
	if g.Shape() != y.Shape() || !y.DType().IsFloat() || !a.DType("input_dtype").IsFloat() {
		a.Fail(ErrShape, "grad_output and output must be floating and of one shape, got %v and %v", g.Shape(), y.Shape())
	}
	return b.widen(g), b.widen(y), a.Dim("dim", y.Rank())
}

// wantedOf returns those gradients that the mask has a 1 for, and empty ones in the place of others.
func wantedOf(b *Builder, a Args, grads ...Value) []Value {
	for i, want := range outputMask(a, len(grads)) {
		if !want || grads[i].IsNil() {
			grads[i] = b.Full([]int{0}, 0, a.Tensor("input").DType())
		}
	}
	return grads
}

func nativeLayerNormBackward(b *Builder, a Args) []Value {
	x, g, ns := a.Tensor("input"), a.Tensor("grad_out"), a.Ints("normalized_shape")
	mean, rstd := a.Tensor("mean"), a.Tensor("rstd")
	stats := x.Shape().Dims()
	if len(ns) == 0 || len(ns) > len(stats) || !slices.Equal(stats[len(stats)-len(ns):], ns) || !g.Shape().SameDims(x.Shape()) {
		a.Fail(ErrShape, "normalized_shape %v and grad_out %v do not fit input %v", ns, g.Shape(), x.Shape())
	}
	dims := make([]int, len(ns))
	for i := range ns {
		dims[i] = len(stats) - len(ns) + i
		stats[dims[i]] = 1
	}
	for _, v := range []Value{mean, rstd} {
		if !slices.Equal(v.Shape().Dims(), stats) {
			a.Fail(ErrShape, "mean and rstd must be %v, got %v", stats, v.Shape())
		}
	}
	wide, w, bias := b.widen(x), a.Tensor("weight"), a.Tensor("bias")
	d := wide.DType()
	g, rstd = b.Cast(g, d), b.Cast(rstd, d)
	xhat := b.Mul(b.Sub(wide, b.Cast(mean, d)), rstd)
	grads := []Value{b.Cast(b.vjpStandardize(xhat, rstd, b.affine(g, w, Value{}), dims), x.DType()), {}, {}}
	if !w.IsNil() {
		grads[1] = b.Cast(b.sumTo(b.Mul(g, xhat), w.Shape()), w.DType())
	}
	if !bias.IsNil() {
		grads[2] = b.Cast(b.sumTo(g, bias.Shape()), bias.DType())
	}
	return wantedOf(b, a, grads...)
}

func nativeGroupNormBackward(b *Builder, a Args) []Value {
	x, grad, g := a.Tensor("input"), a.Tensor("grad_out"), nativeGroups(b, a)
	if !grad.Shape().SameDims(x.Shape()) {
		a.Fail(ErrShape, "grad_out %v does not fit input %v", grad.Shape(), x.Shape())
	}
	for _, name := range []string{"mean", "rstd"} {
		if v := a.Tensor(name); v.Shape().Numel() != x.Dim(0)*a.Int("group") {
			a.Fail(ErrShape, "%s must be %v, got %v", name, []int{x.Dim(0), a.Int("group")}, v.Shape())
		}
	}
	g.mean, g.rstd = g.perGroup(b, a.Tensor("mean")), g.perGroup(b, a.Tensor("rstd"))
	gx, weight, bias := g.gradients(b, grad)
	each := func(v Value) Value { return b.Cast(b.Reshape(v, x.Dim(1)), x.DType()) }
	return wantedOf(b, a, b.Reshape(b.Cast(gx, x.DType()), x.Shape().Dims()...), each(weight), each(bias))
}
