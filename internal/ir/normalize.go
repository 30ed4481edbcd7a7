package ir

// float32Eps and float64Eps are the distances from 1 to the next number.
const (
	float32Eps = 0x1p-23
	float64Eps = 0x1p-52
)

func init() {
	register("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor", Spec{
		Doc:      "(x - mean)/√(var + eps)·weight + bias with the biased variance over the last dimensions, which normalized_shape names and weight and bias have. Floating dtypes; f16 and bf16 compute in f32. As torch.nn.functional.layer_norm.",
		Category: Neural, Decompose: layerNorm, VJP: vjpLayerNorm,
	})
	register("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", Spec{
		Doc:      "x/√(mean x² + eps)·weight over the last dimensions, which normalized_shape names; eps is the epsilon of the dtype computed in if it is not given. Floating dtypes; f16 and bf16 compute in f32. As torch.nn.functional.rms_norm.",
		Category: Neural, Decompose: rmsNorm, VJP: vjpRMSNorm,
	})
	register("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor", Spec{
		Doc:      "layer_norm over each of num_groups groups of channels of input [N, C, …], then weight [C] and bias [C]. As torch.nn.functional.group_norm.",
		Category: Neural, Decompose: groupNorm, VJP: vjpGroupNorm,
	})
	register("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1) -> Tensor", Spec{
		Doc:      "input [N, C, …] over (k + alpha·mean)^beta, the mean that of the squares of size channels around each one, size/2 of them before it; channels that are not there count as 0. Floating dtypes; f16 and bf16 compute in f32. As torch.nn.functional.local_response_norm.",
		Category: Neural, Decompose: localResponseNorm,
	})
	register("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, Scalar momentum, float eps) -> (Tensor output, Tensor running_mean, Tensor running_var)", Spec{
		Doc:      "Normalises each channel of input [N, C, …]: with the batch's mean and biased variance when training, with running_mean and running_var [C] otherwise. It changes nothing in place: outputs 1 and 2 are the updated running statistics, old·(1-momentum) + batch·momentum with the unbiased variance when training, and the old ones otherwise; without running statistics they are the batch's own. They carry no gradient. As ATen's _native_batch_norm_legit_functional.",
		Category: Neural, Promote: PromoteScalars, Decompose: batchNorm, VJP: vjpBatchNorm,
	})
}

// affine is x·weight + bias in x's dtype, each absent or of dimensions that
// broadcast to x.
func (b *Builder) affine(x, weight, bias Value) Value {
	if !weight.IsNil() {
		x = b.Mul(x, b.Cast(weight, x.DType()))
	}
	if !bias.IsNil() {
		x = b.Add(x, b.Cast(bias, x.DType()))
	}
	return x
}

// standardize returns x - mean over dims and the reciprocal of its standard
// deviation, both in x's dtype. Gradients call it, too; its nodes are merged with the first ones.
func (b *Builder) standardize(x Value, dims []int, eps float64) (centred, rstd Value) {
	centred = b.Sub(x, b.Mean(x, dims, true))
	v := b.Mean(b.Mul(centred, centred), dims, true)
	return centred, b.rsqrt(b.Add(v, b.Const(eps, x.DType())))
}

// vjpStandardize is the gradient of xhat = centred·rstd for the cotangent g:
// rstd·(g - mean g - xhat·mean(g·xhat)).
func (b *Builder) vjpStandardize(xhat, rstd, g Value, dims []int) Value {
	slope := b.Mul(xhat, b.Mean(b.Mul(g, xhat), dims, true))
	return b.Mul(rstd, b.Sub(b.Sub(g, b.Mean(g, dims, true)), slope))
}

// normTail checks normalized_shape against the last dimensions of the input and
// the affine parameters against it, and returns the dimensions' numbers.
func normTail(a Args) []int {
	x, ns := a.In[0].Shape(), a.Ints("normalized_shape")
	if !x.DType().IsFloat() {
		a.Fail(ErrDType, "input must be floating, got %v", x.DType())
	}
	if len(ns) == 0 || len(ns) > x.Rank() {
		a.Fail(ErrShape, "normalized_shape %v needs 1 to %d dimensions", ns, x.Rank())
	}
	dims := make([]int, len(ns))
	for i, n := range ns {
		dims[i] = x.Rank() - len(ns) + i
		if x.Dim(dims[i]) != n {
			a.Fail(ErrShape, "the last dimensions of input are not normalized_shape %v", ns)
		}
	}
	for _, v := range a.In[1:] {
		if !v.Shape().SameDims(MakeShape(F32, ns...)) || !v.DType().IsFloat() {
			a.Fail(ErrShape, "weight and bias must be floating and have dimensions %v, got %v", ns, v.Shape())
		}
	}
	return dims
}

func layerNorm(b *Builder, a Args) []Value {
	dims := normTail(a)
	c, r := b.standardize(b.widen(a.In[0]), dims, a.float("eps"))
	y := b.affine(b.Mul(c, r), a.Tensor("weight"), a.Tensor("bias"))
	return []Value{b.Cast(y, a.In[0].DType())}
}

func vjpLayerNorm(b *Builder, a Args, out, grad []Value) []Value {
	dims := normTail(a)
	w, bias, g := a.Tensor("weight"), a.Tensor("bias"), b.widen(grad[0])
	c, r := b.standardize(b.widen(a.In[0]), dims, a.float("eps"))
	xhat := b.Mul(c, r)
	gx := b.vjpStandardize(xhat, r, b.affine(g, w, Value{}), dims)
	gs := []Value{b.Cast(gx, a.In[0].DType())}
	if !w.IsNil() {
		gs = append(gs, b.Cast(b.sumTo(b.Mul(g, xhat), w.Shape()), w.DType()))
	}
	if !bias.IsNil() {
		gs = append(gs, b.Cast(b.sumTo(g, bias.Shape()), bias.DType()))
	}
	return gs
}

// meanSquareRsqrt is 1/√(mean x² + eps) over dims.
func meanSquareRsqrt(b *Builder, a Args, x Value, dims []int) Value {
	eps, ok := a.OptFloat("eps")
	if !ok {
		if eps = float32Eps; x.DType() == F64 {
			eps = float64Eps
		}
	}
	return b.rsqrt(b.Add(b.Mean(b.Mul(x, x), dims, true), b.Const(eps, x.DType())))
}

func rmsNorm(b *Builder, a Args) []Value {
	dims := normTail(a)
	x := b.widen(a.In[0])
	y := b.affine(b.Mul(x, meanSquareRsqrt(b, a, x, dims)), a.Tensor("weight"), Value{})
	return []Value{b.Cast(y, a.In[0].DType())}
}

// vjpRMSNorm is r·(g - xhat·mean(g·xhat)) for xhat = x·r.
func vjpRMSNorm(b *Builder, a Args, out, grad []Value) []Value {
	dims := normTail(a)
	x, w, g := b.widen(a.In[0]), a.Tensor("weight"), b.widen(grad[0])
	r := meanSquareRsqrt(b, a, x, dims)
	xhat := b.Mul(x, r)
	gy := b.affine(g, w, Value{})
	gx := b.Mul(r, b.Sub(gy, b.Mul(xhat, b.Mean(b.Mul(gy, xhat), dims, true))))
	gs := []Value{b.Cast(gx, a.In[0].DType())}
	if !w.IsNil() {
		gs = append(gs, b.Cast(b.sumTo(b.Mul(g, xhat), w.Shape()), w.DType()))
	}
	return gs
}

// perChannel checks a parameter that has one number for each channel, and reshapes it to broadcast
// along dimension 1 of x. It returns an absent parameter as it is.
func perChannel(b *Builder, a Args, name string, x Value) Value {
	v := a.Tensor(name)
	if v.IsNil() {
		return v
	}
	if v.Rank() != 1 || v.Dim(0) != x.Dim(1) || !v.DType().IsFloat() {
		a.Fail(ErrShape, "%s must be floating with %d entries, one a channel, got %v", name, x.Dim(1), v.Shape())
	}
	return b.Reshape(v, channelDims(x)...)
}

// channelDims is [1, C, 1, …] for x [N, C, …].
func channelDims(x Value) []int {
	dims := make([]int, x.Rank())
	for i := range dims {
		dims[i] = 1
	}
	dims[1] = x.Dim(1)
	return dims
}

// requireChannels fails unless the input is floating and has a channel dimension.
func requireChannels(a Args) {
	x := a.In[0]
	if !x.DType().IsFloat() {
		a.Fail(ErrDType, "input must be floating, got %v", x.DType())
	}
	if x.Rank() < 2 {
		a.Fail(ErrShape, "input must have at least 2 dimensions (batch, channels), got %d", x.Rank())
	}
}

// batchDimsOf lists all dimensions of x but the channels.
func batchDimsOf(x Value) []int {
	dims := []int{0}
	for i := 2; i < x.Rank(); i++ {
		dims = append(dims, i)
	}
	return dims
}

// runningStats returns the running statistics in the dtype computed in, shaped
// to broadcast against x.
func runningStats(b *Builder, a Args, x Value) (mean, variance Value) {
	mean, variance = perChannel(b, a, "running_mean", x), perChannel(b, a, "running_var", x)
	if mean.IsNil() != variance.IsNil() {
		a.Fail(ErrArg, "running_mean and running_var must be given together")
	}
	if mean.IsNil() {
		if !a.Bool("training") {
			a.Fail(ErrArg, "running_mean and running_var are needed when not training")
		}
		return mean, variance
	}
	return b.Cast(mean, x.DType()), b.Cast(variance, x.DType())
}

// batchStandardize returns x - mean and the reciprocal standard deviation by the
// batch or the running statistics.
func batchStandardize(b *Builder, a Args, x, mean, variance Value) (centred, rstd Value) {
	if a.Bool("training") {
		return b.standardize(x, batchDimsOf(x), a.float("eps"))
	}
	return b.Sub(x, mean), b.rsqrt(b.Add(variance, b.Const(a.float("eps"), x.DType())))
}

func batchNorm(b *Builder, a Args) []Value {
	requireChannels(a)
	x := b.widen(a.In[0])
	mean, variance := runningStats(b, a, x)
	c, r := batchStandardize(b, a, x, mean, variance)
	y := b.affine(b.Mul(c, r), perChannel(b, a, "weight", x), perChannel(b, a, "bias", x))
	y = b.Cast(y, a.In[0].DType())
	if !a.Bool("training") {
		return []Value{y, a.Tensor("running_mean"), a.Tensor("running_var")}
	}
	dims, channels := batchDimsOf(x), x.Dim(1)
	n := x.Shape().Numel() / max(channels, 1)
	// The sums are those of standardize, so that there is one of each.
	batchMean := b.Reshape(b.Mean(x, dims, true), channels)
	batchVar := b.Div(b.Reshape(b.Sum(b.Mul(c, c), dims, true), channels), b.Const(float64(n-1), x.DType()))
	if mean.IsNil() {
		return []Value{y, batchMean, batchVar}
	}
	m := b.Cast(a.Tensor("momentum"), x.DType())
	keep := b.Sub(b.Const(1.0, x.DType()), m)
	mix := func(name string, now Value) Value {
		old := a.Tensor(name)
		return b.Cast(b.Add(b.Mul(b.Cast(old, x.DType()), keep), b.Mul(now, m)), old.DType())
	}
	return []Value{y, mix("running_mean", batchMean), mix("running_var", batchVar)}
}

func vjpBatchNorm(b *Builder, a Args, out, grad []Value) []Value {
	gs := make([]Value, len(a.In))
	if grad[0].IsNil() {
		return gs
	}
	x, g := b.widen(a.In[0]), b.widen(grad[0])
	mean, variance := runningStats(b, a, x)
	c, r := batchStandardize(b, a, x, mean, variance)
	xhat := b.Mul(c, r)
	dims := batchDimsOf(x)
	// The weight is the same along dims, so that the sums of the statistics' gradients are those
	// of the parameters'.
	slope := b.affine(r, perChannel(b, a, "weight", x), Value{})
	gx := b.Mul(g, slope)
	if a.Bool("training") {
		gx = b.vjpStandardize(xhat, slope, g, dims)
	}
	gs[0] = b.Cast(gx, a.In[0].DType())
	if w := a.Tensor("weight"); !w.IsNil() {
		gs[a.InputIndex("weight")] = b.Cast(b.Reshape(b.Sum(b.Mul(g, xhat), dims, true), w.Dim(0)), w.DType())
	}
	if v := a.Tensor("bias"); !v.IsNil() {
		gs[a.InputIndex("bias")] = b.Cast(b.Reshape(b.Sum(g, dims, true), v.Dim(0)), v.DType())
	}
	return gs
}

func localResponseNorm(b *Builder, a Args) []Value {
	x, size := a.Tensor("input"), a.Int("size")
	switch d := x.DType(); {
	case !d.IsFloat():
		a.Fail(ErrDType, "not defined for %v operands", d)
	case x.Rank() < 3:
		a.Fail(ErrShape, "input must have at least 3 dimensions, got %v", x.Shape())
	case size < 1:
		a.Fail(ErrArg, "size must be positive, got %d", size)
	}
	wide := b.widen(x)
	squares := b.padDim(b.Mul(wide, wide), 1, size/2, (size-1)/2, 0)
	mean := b.windowMean(squares, 1, size)
	factor := b.pow(b.shift(b.scale(mean, a.float("alpha")), a.float("k")), b.Const(a.float("beta"), wide.DType()))
	return []Value{b.Cast(b.Div(wide, factor), x.DType())}
}

// windowMean is the mean of each window of size elements along a dimension.
func (b *Builder) windowMean(x Value, dim, size int) Value {
	const few = 16 // windows are sums of slices, which are read where they are
	if size > few {
		return b.Mean(b.callNamed("unfold", []any{x, dim, size, 1}), []int{x.Rank()}, false)
	}
	n := x.Dim(dim) - size + 1
	sum := b.Slice(x, dim, 0, n, 1)
	for i := 1; i < size; i++ {
		sum = b.Add(sum, b.Slice(x, dim, i, i+n, 1))
	}
	return b.Div(sum, b.Const(float64(size), x.DType()))
}
