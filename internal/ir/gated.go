package ir

import "slices"

// Activations with parameters or gates of their own, and parametrised weights.

func init() {
	register("glu(Tensor self, int dim=-1) -> Tensor", Spec{
		Category: Neural,
		Doc:      "The first half of a floating self along dim, times the sigmoid of the second. ATen's glu.",
		Decompose: func(b *Builder, a Args) []Value {
			x := a.In[0]
			if x.Rank() == 0 || x.Dim(a.Dim("dim", x.Rank()))%2 != 0 {
				a.Fail(ErrShape, "halving dimension must be even, got %v", x.Shape())
			}
			requireFloat(a, x)
			wide, dim := b.widen(x), a.Dim("dim", x.Rank())
			n := x.Dim(dim) / 2
			out := b.Mul(b.Slice(wide, dim, 0, n, 1), b.sigmoid(b.Slice(wide, dim, n, 2*n, 1)))
			return []Value{b.Cast(out, x.DType())}
		},
	})
	register("prelu(Tensor self, Tensor weight) -> Tensor", Spec{
		Category: Neural,
		Doc: "x where it is positive, x·weight elsewhere; weight has one number, or one for each channel, which is dimension 1. The gradient at 0 is weight's. " +
			"ATen's prelu.",
		Decompose: decomposePrelu,
	})
	register("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps) -> Tensor", Spec{
		Category: Neural,
		Doc: "Normalises each channel of each sample of input [N, C, *], by its own mean and biased variance if use_input_stats, by running_mean and running_var otherwise; " +
			"updating those is not supported. ATen's instance_norm.",
		Decompose: decomposeInstanceNorm,
	})
	register("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", Spec{
		Category: Linalg,
		Doc:      "Σ input1[*, i]·weight[k, i, j]·input2[*, j] + bias[k] for each k. ATen's bilinear.",
		Decompose: func(b *Builder, a Args) []Value {
			x, y, w := a.Tensor("input1"), a.Tensor("input2"), a.Tensor("weight")
			if x.Rank() == 0 || x.Rank() != y.Rank() || w.Rank() != 3 || x.Dim(-1) != w.Dim(1) || y.Dim(-1) != w.Dim(2) ||
				!slices.Equal(x.Shape().Dims()[:x.Rank()-1], y.Shape().Dims()[:y.Rank()-1]) {
				a.Fail(ErrShape, "input1 %v and input2 %v do not fit weight %v", x.Shape(), y.Shape(), w.Shape())
			}
			out := b.callNamed("einsum", []any{"...i,kij,...j->...k", []Value{x, w, y}})
			return []Value{b.affine(out, Value{}, a.Tensor("bias"))}
		},
	})
	register("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", Spec{
		Category: Neural, Unlisted: true,
		Doc: "v·g/‖v‖, the norm being over all dimensions but dim, or over all for -1. As at::_weight_norm.",
		Decompose: func(b *Builder, a Args) []Value {
			return b.Call(byName["_weight_norm_interface"], []any{a.In[0], a.In[1], a.Int("dim")})[:1]
		},
	})
	register("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor w, Tensor norms)", Spec{
		Category: Neural, Unlisted: true,
		Doc:       "_weight_norm and the norms. As at::_weight_norm_interface.",
		Decompose: decomposeWeightNorm,
	})
}

func decomposePrelu(b *Builder, a Args) []Value {
	x, w := a.In[0], a.In[1]
	requireFloat(a, x)
	requireSameDType(a, "weight")
	channels := 1
	if x.Rank() > 1 {
		channels = x.Dim(1)
	}
	n := w.Shape().Numel()
	if w.Rank() > 1 || n != 1 && n != channels {
		a.Fail(ErrShape, "weight must have 1 element or one for each of %d channels, got %v", channels, w.Shape())
	}
	if w = b.widen(w); n == 1 {
		w = b.Reshape(w)
	} else {
		w = b.Reshape(w, channelDims(x)...)
	}
	wide := b.widen(x)
	return []Value{b.Cast(b.Where(b.gt(wide, b.zeroOf(wide)), wide, b.Mul(w, wide)), x.DType())}
}

func decomposeInstanceNorm(b *Builder, a Args) []Value {
	requireChannels(a)
	x, own := a.In[0], a.Bool("use_input_stats")
	mean, variance := a.Tensor("running_mean"), a.Tensor("running_var")
	if !own {
		return b.Call(byName["batch_norm"], []any{x, a.Tensor("weight"), a.Tensor("bias"), mean, variance, false,
			b.WrappedConst(a.float("momentum")), a.float("eps")})[:1]
	}
	if !mean.IsNil() || !variance.IsNil() {
		a.Fail(ErrArg, "running statistics are not updated: leave them out, or set use_input_stats to false")
	}
	return []Value{b.callNamed("group_norm", []any{x, max(x.Dim(1), 1), a.Tensor("weight"), a.Tensor("bias"), a.float("eps")})}
}

func decomposeWeightNorm(b *Builder, a Args) []Value {
	v, g, dim := a.In[0], a.In[1], a.Int("dim")
	requireFloat(a, v)
	if dim < -1 || dim >= max(v.Rank(), 1) {
		a.Fail(ErrIndex, "dim must be between -1 and %d, got %d", v.Rank()-1, dim)
	}
	wide := b.widen(v)
	var over []int
	for d := range v.Rank() {
		if d != dim {
			over = append(over, d)
		}
	}
	norms := wide
	if len(over) > 0 {
		norms = b.callNamed("norm", []any{wide, 2.0, over, true})
	} else {
		norms = b.abs(wide)
	}
	if dim == -1 {
		norms = b.Reshape(norms)
	}
	if _, ok := BroadcastDims(g.Shape(), norms.Shape()); !ok {
		a.Fail(ErrShape, "g %v does not fit the norms %v", g.Shape(), norms.Shape())
	}
	w := b.Mul(wide, b.Div(b.Cast(g, wide.DType()), norms))
	return []Value{b.Cast(w, v.DType()), b.Cast(norms, g.DType())}
}
