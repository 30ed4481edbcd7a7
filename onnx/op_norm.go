package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
)

// normRows are normalisations, softmax and the losses on it.
var normRows = map[string]*row{
	"BatchNormalization":        many(5, 5, batchNorm),
	"LayerNormalization":        many(2, 3, layerNorm),
	"RMSNormalization":          one(2, 2, rmsNorm),
	"InstanceNormalization":     one(3, 3, instanceNorm),
	"GroupNormalization":        one(3, 3, groupNorm),
	"MeanVarianceNormalization": with(meanVariance),
	"LpNormalization":           with(lpNormalization),
	"LRN":                       one(1, 1, lrn),
	"Softmax":                   softmaxRow(func(x *loris.Tensor, axis int) *loris.Tensor { return x.Softmax(axis) }),
	"LogSoftmax":                softmaxRow(func(x *loris.Tensor, axis int) *loris.Tensor { return x.LogSoftmax(axis) }),
	"Hardmax":                   softmaxRow(hardmax),
	"Dropout":                   many(1, 3, dropout),
	"NegativeLogLikelihoodLoss": one(2, 3, func(c *call, in []*value) *value {
		return c.nllLoss(c.tensor(in[0]), in[0].elem, in[1], c.maybe(opt(in, 2)))
	}),
	"SoftmaxCrossEntropyLoss": many(2, 3, softmaxCrossEntropy),
}

// channelwise lays a vector of channels along dimension 1.
func channelwise(t *loris.Tensor, rank int) *loris.Tensor { return padRank(t, max(rank-2, 0)) }

func batchNorm(c *call, in []*value) []*value {
	x, e := c.tensor(in[0]), in[0].elem
	eps := c.float("epsilon", 1e-5)
	scale, bias, mean, variance := c.tensor(in[1]), c.tensor(in[2]), c.tensor(in[3]), c.tensor(in[4])
	old := c.node.version < 7 && !c.bool("is_test", false)
	if !c.bool("training_mode", false) && !(c.node.version < 14 && c.node.wants(1)) || old && !c.node.wants(1) {
		if x.Rank() >= 2 && x.DType() == scale.DType() && x.DType() == mean.DType() {
			y, _, _ := loris.BatchNorm(x, scale, bias, mean, variance, false, 0.0, eps)
			return []*value{out(e, y)}
		}
		r := x.Rank()
		y := toF32(x).Sub(toF32(channelwise(mean, r))).Mul(toF32(channelwise(variance, r)).Add(eps).Rsqrt())
		return []*value{out(e, y.Mul(toF32(channelwise(scale, r))).Add(toF32(channelwise(bias, r))).Cast(x.DType()))}
	}
	momentum := c.float("momentum", 0.9)
	dims := slices.DeleteFunc(allDims(x), func(i int) bool { return i == 1 })
	m, v := x.Mean(loris.Dim(dims...), loris.Keepdim(true)), (*loris.Tensor)(nil)
	d := x.Sub(m)
	v = d.Mul(d).Mean(loris.Dim(dims...), loris.Keepdim(true))
	y := d.Mul(v.Add(eps).Rsqrt()).Mul(channelwise(scale, x.Rank())).Add(channelwise(bias, x.Rank()))
	flat := x.Dim(1)
	newMean := mean.Mul(momentum).Add(m.Reshape(flat).Mul(1 - momentum))
	newVar := variance.Mul(momentum).Add(v.Reshape(flat).Mul(1 - momentum))
	return []*value{out(e, y), out(in[3].elem, newMean), out(in[4].elem, newVar), out(e, m.Reshape(flat)), out(e, v.Reshape(flat))}
}

func allDims(x *loris.Tensor) []int {
	dims := make([]int, x.Rank())
	for i := range dims {
		dims[i] = i
	}
	return dims
}

// stashed is the dtype that statistics are computed in.
func (c *call) stashed(x *loris.Tensor) *loris.Tensor {
	if c.int("stash_type", 1) == 1 && x.DType() != loris.F32 {
		return x.Cast(loris.F32)
	}
	return x
}

func layerNorm(c *call, in []*value) []*value {
	x, scale, bias := c.tensor(in[0]), c.tensor(in[1]), c.maybe(opt(in, 2))
	axis := c.axis(c.int("axis", -1), x.Rank())
	eps := c.float("epsilon", 1e-5)
	normalized := x.Dims()[axis:]
	e := in[0].elem
	if !c.node.wants(1) && !c.node.wants(2) && slices.Equal(scale.Dims(), normalized) && (bias == nil || slices.Equal(bias.Dims(), normalized)) && x.DType() == loris.F32 {
		opts := []loris.LayerNormOption{loris.Weight(scale), loris.Eps(eps)}
		if bias != nil {
			opts = append(opts, loris.Bias(bias))
		}
		return []*value{out(e, x.LayerNorm(normalized, opts...))}
	}
	f := c.stashed(x)
	dims := allDims(x)[axis:]
	mean := f.Mean(loris.Dim(dims...), loris.Keepdim(true))
	d := f.Sub(mean)
	inv := d.Mul(d).Mean(loris.Dim(dims...), loris.Keepdim(true)).Add(eps).Rsqrt()
	y := d.Mul(inv).Cast(x.DType()).Mul(scale)
	if bias != nil {
		y = y.Add(bias)
	}
	stash := elemOf(f.DType())
	return []*value{out(e, y), out(stash, mean), out(stash, inv)}
}

func rmsNorm(c *call, in []*value) *value {
	x, scale := c.tensor(in[0]), c.tensor(in[1])
	axis := c.axis(c.int("axis", -1), x.Rank())
	f := c.stashed(x)
	meanSquare := f.Mul(f).Mean(loris.Dim(allDims(x)[axis:]...), loris.Keepdim(true))
	y := f.Mul(meanSquare.Add(c.float("epsilon", 1e-5)).Rsqrt()).Cast(x.DType())
	return out(in[1].elem, y.Cast(scale.DType()).Mul(scale))
}

func instanceNorm(c *call, in []*value) *value {
	x := c.tensor(in[0])
	if x.Rank() < 3 {
		c.fail("%v has no dimensions to normalise", in[0])
	}
	y := c.normalized(x, allDims(x)[2:])
	return out(in[0].elem, y.Mul(channelwise(c.tensor(in[1]), x.Rank())).Add(channelwise(c.tensor(in[2]), x.Rank())))
}

// normalized subtracts the mean over dims and divides by the deviation.
func (c *call) normalized(x *loris.Tensor, dims []int) *loris.Tensor {
	d := x.Sub(x.Mean(loris.Dim(dims...), loris.Keepdim(true)))
	return d.Mul(d.Mul(d).Mean(loris.Dim(dims...), loris.Keepdim(true)).Add(c.float("epsilon", 1e-5)).Rsqrt())
}

func groupNorm(c *call, in []*value) *value {
	x, scale, bias := c.tensor(in[0]), c.tensor(in[1]), c.tensor(in[2])
	groups := c.int("num_groups", 1)
	if x.Rank() < 2 || groups < 1 || x.Dim(1)%groups != 0 {
		c.fail("%d groups of %v", groups, in[0])
	}
	dims := x.Dims()
	split := append([]int{dims[0], groups, dims[1] / groups}, dims[2:]...)
	wide := c.stashed(x).Reshape(split...)
	y := c.normalized(wide, allDims(wide)[2:])
	if c.node.version < 21 { // one scale for each group
		y = y.Mul(padRank(scale, len(split)-2)).Add(padRank(bias, len(split)-2)).Reshape(dims...)
	} else {
		y = y.Reshape(dims...).Mul(channelwise(scale, len(dims))).Add(channelwise(bias, len(dims)))
	}
	return out(in[0].elem, y.Cast(x.DType()))
}

func meanVariance(c *call, x *loris.Tensor) *loris.Tensor {
	axes := c.list("axes")
	if axes == nil {
		axes = []int{0, 2, 3}
	}
	mean := x.Mean(loris.Dim(axes...), loris.Keepdim(true))
	square := x.Mul(x).Mean(loris.Dim(axes...), loris.Keepdim(true))
	return x.Sub(mean).Div(square.Sub(mean.Mul(mean)).Sqrt().Add(1e-9))
}

func lpNormalization(c *call, x *loris.Tensor) *loris.Tensor {
	axis := c.axis(c.int("axis", -1), x.Rank())
	norm := lpNorm(x, float64(c.int("p", 2)), func(t *loris.Tensor) *loris.Tensor { return sum(t, []int{axis}, true) })
	return x.Div(norm)
}

// lrn divides by a power of the sum of squares over neighbouring channels.
// lrn is local_response_norm, which has the longer part of an even window before a channel where ONNX
// has it behind.
func lrn(c *call, in []*value) *value {
	x := c.tensor(in[0])
	size, rank := c.int("size", 0), x.Rank()
	if rank < 2 || size < 1 {
		c.fail("size %d of %v", size, in[0])
	}
	if rank == 2 {
		x = x.Unsqueeze(2)
	}
	if size%2 == 0 {
		x = x.Flip(1)
	}
	y := x.LocalResponseNorm(size, loris.Alpha(c.float("alpha", 1e-4)), loris.Beta(c.float("beta", 0.75)), loris.ResponseBias(c.float("bias", 1)))
	if size%2 == 0 {
		y = y.Flip(1)
	}
	return out(in[0].elem, y.Reshape(in[0].dims...))
}

// softmaxRow is the row of a function along an axis. Before opset 13 it was along all dimensions from
// the axis on.
func softmaxRow(f func(x *loris.Tensor, axis int) *loris.Tensor) *row {
	return with(func(c *call, x *loris.Tensor) *loris.Tensor {
		if c.node.version >= 13 {
			return f(x, c.axis(c.int("axis", -1), max(x.Rank(), 1)))
		}
		axis := c.axis(c.int("axis", 1), x.Rank())
		dims := x.Dims()
		return f(x.Reshape(product(dims[:axis]), product(dims[axis:])), 1).Reshape(dims...)
	})
}

func hardmax(x *loris.Tensor, axis int) *loris.Tensor {
	best := x.Argmax(loris.Dim(axis), loris.Keepdim(true))
	return x.ZerosLike().Scatter(axis, best, best.FullLike(1).Cast(x.DType()))
}

// dropout is the identity unless the node says that the model trains.
func dropout(c *call, in []*value) []*value {
	x := c.tensor(in[0])
	ratio, train := c.float("ratio", 0.5), false
	if c.node.version >= 12 {
		if r := opt(in, 1); r != nil && !r.empty {
			ratio = c.oneFloat(r)
		}
		if t := opt(in, 2); t != nil && !t.empty {
			train = c.flag(t)
		}
	}
	if !train || ratio == 0 {
		mask := out(tBool, c.run.make.Full(true, x.Dims()...))
		if c.node.version < 10 {
			mask = out(in[0].elem, c.run.make.With(loris.As(x.DType())).Ones(x.Dims()...))
		}
		return []*value{in[0], mask}
	}
	keep := c.run.make.Rand(x.Dims()...).Ge(ratio)
	return []*value{out(in[0].elem, loris.Where(keep, x.Mul(1/(1-ratio)), x.ZerosLike())), out(tBool, keep)}
}

func softmaxCrossEntropy(c *call, in []*value) []*value {
	x := c.tensor(in[0])
	logProb := x.LogSoftmax(1)
	return []*value{c.nllLoss(logProb, in[0].elem, in[1], c.maybe(opt(in, 2))), out(in[0].elem, logProb)}
}

// nllLoss takes the losses of the labelled classes, weighted, and reduces them.
func (c *call) nllLoss(logProb *loris.Tensor, e elemType, target *value, weight *loris.Tensor) *value {
	t := c.tensor(target).Cast(loris.I64)
	if logProb.Rank() < 2 || t.Rank() != logProb.Rank()-1 {
		c.fail("scores %v do not fit labels %v", logProb.Shape(), target)
	}
	valid := t.Ge(-1 << 62) // of every label
	if c.has("ignore_index") {
		valid = t.Ne(c.int("ignore_index", 0))
	}
	zero := t.Mul(0)
	safe := loris.Where(valid, t, zero)
	loss := logProb.Gather(1, safe.Unsqueeze(1)).Squeeze(loris.Dim(1)).Neg()
	w := valid.Cast(loss.DType())
	if weight != nil {
		w = w.Mul(weight.IndexSelect(0, safe.Flatten()).Reshape(t.Dims()...))
	}
	loss = loris.Where(valid, loss, loss.ZerosLike()).Mul(w) // a label of probability zero that is ignored counts nothing
	switch c.text("reduction", "mean") {
	case "sum":
		return out(e, loss.Sum())
	case "mean":
		if weight == nil && !c.has("ignore_index") {
			return out(e, loss.Mean())
		}
		return out(e, loss.Sum().Div(w.Sum()))
	}
	return out(e, loss)
}
