package ir

import "math"

const lossDoc = " self and target broadcast and are promoted to their common, floating dtype; f16 and bf16 compute in f32; reduction is none, mean or sum. As torch.nn.functional."

func init() {
	register("mse_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor", Spec{
		Doc:      "(self - target)²." + lossDoc + "mse_loss.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(func(b *Builder, a Args, x, t Value) Value {
			d := b.Sub(x, t)
			return b.Mul(d, d)
		}),
	})
	register("l1_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor", Spec{
		Doc:      "|self - target|." + lossDoc + "l1_loss.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(func(b *Builder, a Args, x, t Value) Value {
			return b.abs(b.Sub(x, t))
		}),
	})
	register("smooth_l1_loss(Tensor self, Tensor target, str reduction='mean', float beta=1.0) -> Tensor", Spec{
		Doc:      "d²/(2·beta) for |d| = |self - target| < beta and |d| - beta/2 beyond." + lossDoc + "smooth_l1_loss.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(smoothL1),
	})
	register("huber_loss(Tensor self, Tensor target, str reduction='mean', float delta=1.0) -> Tensor", Spec{
		Doc:      "d²/2 for |d| = |self - target| < delta and delta·(|d| - delta/2) beyond." + lossDoc + "huber_loss.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(huber),
	})
	register("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor", Spec{
		Doc:      "-weight·(target·log self + (1 - target)·log(1 - self)) for probabilities self; the logarithms are at least -100 and weight has no gradient." + lossDoc + "binary_cross_entropy.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(binaryCrossEntropy), VJP: vjpBinaryCrossEntropy,
	})
	register("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, str reduction='mean') -> Tensor", Spec{
		Doc:      "Binary cross entropy of sigmoid(self), computed without overflow; pos_weight scales the positive part." + lossDoc + "binary_cross_entropy_with_logits.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(binaryCrossEntropyLogits),
	})
	register("kl_div(Tensor self, Tensor target, str reduction='mean', *, bool log_target=False) -> Tensor", Spec{
		Doc:      "target·(log target - self) for log-probabilities self; with log_target the target holds logarithms, too. reduction may also be batchmean, the sum over the first dimension's size." + lossDoc + "kl_div.",
		Category: Neural, Promote: PromoteDefault, Decompose: elementLoss(klDiv),
	})
	register("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", Spec{
		Doc:      "Σ x1·x2/(max(‖x1‖, eps)·max(‖x2‖, eps)) along dim of the operands broadcast together and promoted to their common, floating dtype; f16 and bf16 compute in f32. As torch.nn.functional.cosine_similarity.",
		Category: Neural, Promote: PromoteDefault, Decompose: cosineSimilarity,
	})
	register("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", Spec{
		Doc: "The gradient of soft_margin_loss by self: -target·e/(e + 1)·grad_output for e = exp(-target·self), divided by the " +
			"number of elements where reduction is 1, for mean. ATen's soft_margin_loss_backward.",
		Category: Neural, Unlisted: true, Decompose: softMarginBackward, NoGrad: "ATen has no gradient of it",
	})
}

func softMarginBackward(b *Builder, a Args) []Value {
	self := a.In[1]
	if !self.DType().IsFloat() || !a.In[2].Shape().SameDims(self.Shape()) {
		a.Fail(ErrShape, "self is %v and target %v, must be floating and of one shape", self.Shape(), a.In[2].Shape())
	}
	g, x, y := b.widen(a.In[0]), b.widen(self), b.widen(a.In[2])
	e := b.Exp(b.Neg(b.Mul(y, x)))
	slope := b.Div(b.Mul(y, e), b.Add(e, b.Const(1, e.DType())))
	norm := -1.0
	if a.Int("reduction") == 1 {
		norm /= float64(max(self.Shape().Numel(), 1))
	}
	return []Value{b.Cast(b.Mul(b.scale(slope, norm), g), self.DType())}
}

// lossReduction reads and checks the reduction attribute.
func lossReduction(a Args) string {
	r := a.Str("reduction")
	if r != "none" && r != "mean" && r != "sum" && (r != "batchmean" || a.Spec.Name != "kl_div") {
		a.Fail(ErrArg, "reduction must be none, mean or sum, got %q", r)
	}
	return r
}

// requireFloatLoss fails unless the operands, which are promoted, are floating.
func requireFloatLoss(a Args) {
	if d := a.In[0].DType(); !d.IsFloat() {
		a.Fail(ErrDType, "operands must be floating, got %v", d)
	}
}

// elementLoss makes the decomposition of a loss given for each element.
func elementLoss(f func(b *Builder, a Args, x, t Value) Value) func(*Builder, Args) []Value {
	return func(b *Builder, a Args) []Value {
		requireFloatLoss(a)
		reduction := lossReduction(a)
		loss := f(b, a, b.widen(a.In[0]), b.widen(a.In[1]))
		switch reduction {
		case "mean":
			loss = b.Mean(loss, nil, false)
		case "sum":
			loss = b.Sum(loss, nil, false)
		case "batchmean":
			n := 1
			if a.In[0].Rank() > 0 {
				n = a.In[0].Dim(0)
			}
			loss = b.Div(b.Sum(loss, nil, false), b.Const(float64(n), loss.DType()))
		}
		return []Value{b.Cast(loss, a.In[0].DType())}
	}
}

func smoothL1(b *Builder, a Args, x, t Value) Value {
	beta := a.float("beta")
	d := b.abs(b.Sub(x, t))
	switch {
	case !(beta >= 0):
		a.Fail(ErrArg, "beta must not be negative, got %v", beta)
	case beta == 0:
		return d
	}
	k := func(v float64) Value { return b.Const(v, x.DType()) }
	return b.Where(b.lt(d, k(beta)), b.Mul(b.Mul(d, d), k(0.5/beta)), b.Sub(d, k(beta/2)))
}

func huber(b *Builder, a Args, x, t Value) Value {
	delta := a.float("delta")
	if !(delta > 0) {
		a.Fail(ErrArg, "delta must be positive, got %v", delta)
	}
	d := b.abs(b.Sub(x, t))
	k := func(v float64) Value { return b.Const(v, x.DType()) }
	return b.Where(b.lt(d, k(delta)), b.Mul(b.Mul(d, d), k(0.5)), b.Mul(b.Sub(d, k(delta/2)), k(delta)))
}

// clippedLogs returns log x and log(1-x), at least -100.
func clippedLogs(b *Builder, x Value) (log, log1m Value) {
	least := b.Const(-100.0, x.DType())
	return b.maximum(b.log(x), least), b.maximum(b.log1p(b.Neg(x)), least)
}

func binaryCrossEntropy(b *Builder, a Args, x, t Value) Value {
	if !a.In[0].Shape().SameDims(a.In[1].Shape()) {
		a.Fail(ErrShape, "target must have the dimensions of self")
	}
	one := b.Const(1.0, x.DType())
	log, log1m := clippedLogs(b, x)
	loss := b.Sub(b.Mul(b.Sub(t, one), log1m), b.Mul(t, log))
	if w := a.Tensor("weight"); !w.IsNil() {
		loss = weighted(b, a, loss, w)
	}
	return loss
}

// weighted scales a loss by a weight that broadcasts to it.
func weighted(b *Builder, a Args, loss, w Value) Value {
	r := b.Mul(loss, b.widen(w))
	if !r.Shape().SameDims(loss.Shape()) {
		a.Fail(ErrShape, "weight %v does not broadcast to the loss %v", w.Shape(), loss.Shape())
	}
	return r
}

// vjpBinaryCrossEntropy is (x - t)/max(x·(1-x), 1e-12) for self, which stays
// finite where the logarithms are clipped.
func vjpBinaryCrossEntropy(b *Builder, a Args, out, grad []Value) []Value {
	x, t, g := b.widen(a.In[0]), b.widen(a.In[1]), b.widen(grad[0])
	d := x.DType()
	if a.Str("reduction") == "mean" {
		g = b.Div(g, b.Const(float64(x.Shape().Numel()), d))
	}
	if w := a.Tensor("weight"); !w.IsNil() {
		g = b.Mul(g, b.widen(w))
	}
	spread := b.maximum(b.Mul(x, b.Sub(b.Const(1.0, d), x)), b.Const(1e-12, d))
	log, log1m := clippedLogs(b, x)
	gs := make([]Value, len(a.In))
	gs[0] = b.Cast(b.Mul(g, b.Div(b.Sub(x, t), spread)), a.In[0].DType())
	gs[1] = b.Cast(b.Mul(g, b.Sub(log1m, log)), a.In[1].DType())
	return gs
}

// binaryCrossEntropyLogits uses log(1 + exp(-x)) = max(-x, 0) + log1p(exp(-|x|)).
func binaryCrossEntropyLogits(b *Builder, a Args, x, t Value) Value {
	if !a.In[0].Shape().SameDims(a.In[1].Shape()) {
		a.Fail(ErrShape, "target must have the dimensions of self")
	}
	d := x.DType()
	zero, one := b.Const(0.0, d), b.Const(1.0, d)
	soft := b.Add(b.maximum(b.Neg(x), zero), b.log1p(b.Exp(b.Neg(b.abs(x)))))
	if p := a.Tensor("pos_weight"); !p.IsNil() {
		soft = weighted(b, a, soft, b.Add(b.Mul(b.Sub(b.widen(p), one), t), one))
	}
	loss := b.Add(b.Mul(b.Sub(one, t), x), soft)
	if w := a.Tensor("weight"); !w.IsNil() {
		loss = weighted(b, a, loss, w)
	}
	return loss
}

// klDiv takes 0·log 0 as 0, and so does its gradient.
func klDiv(b *Builder, a Args, x, t Value) Value {
	if a.Bool("log_target") {
		return b.Mul(b.Exp(t), b.Sub(t, x))
	}
	none := b.eq(t, b.Const(0.0, t.DType()))
	log := b.log(b.Where(none, b.Const(1.0, t.DType()), t))
	return b.Sub(b.Mul(t, log), b.Mul(t, x))
}

func cosineSimilarity(b *Builder, a Args) []Value {
	requireFloatLoss(a)
	s, ok := BroadcastDims(a.In[0].Shape(), a.In[1].Shape())
	if !ok {
		a.Fail(ErrShape, "the operands do not broadcast together")
	}
	dims := []int{a.Dim("dim", s.Rank())}
	if s.Rank() == 0 {
		dims = nil
	}
	eps := a.float("eps")
	unit := func(v Value) Value {
		v = b.Expand(b.widen(v), s.Dims()...)
		// Where the norm is too small, a constant goes into the root instead, so that its gradient
		// is 0 and not 0/0.
		square := b.Sum(b.Mul(v, v), dims, true)
		small := b.lt(square, b.Const(eps*eps, v.DType()))
		if eps == 0 {
			small = b.le(square, b.Const(0.0, v.DType()))
		}
		norm := b.sqrt(b.Where(small, b.Const(1.0, v.DType()), square))
		return b.Div(v, b.Where(small, b.Const(math.Abs(eps), v.DType()), norm))
	}
	r := b.Sum(b.Mul(unit(a.In[0]), unit(a.In[1])), dims, false)
	return []Value{b.Cast(r, a.In[0].DType())}
}
