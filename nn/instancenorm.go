package nn

import (
	"github.com/loris-ml/loris"
)

// InstanceNorm normalises each channel of each element of the batch, as
// torch.nn.InstanceNorm1d, InstanceNorm2d and InstanceNorm3d. With Tracking it averages the
// statistics in training and normalises by the averages in evaluation.
type InstanceNorm struct {
	Base
	Weight *loris.Variable // [channels], nil without Affine
	Bias   *loris.Variable // [channels], nil without Affine

	// The buffers, nil without Tracking: [channels], [channels] and an i64 scalar,
	// which stays 0 as in PyTorch.
	RunningMean, RunningVar, NumBatches *loris.Variable

	name              string
	channels, spatial int
	eps, momentum     float64
}

// NewInstanceNorm1d returns an instance norm of inputs [N, channels, L] or [channels, L].
// With Affine the weight is 1 and the bias 0 at first. Options: With, Eps, Momentum, Affine,
// Tracking.
func NewInstanceNorm1d(channels int, opts ...Option) *InstanceNorm {
	return newInstanceNorm("InstanceNorm1d", channels, 1, opts)
}

// NewInstanceNorm2d is NewInstanceNorm1d for inputs [N, channels, H, W] or [channels, H, W].
func NewInstanceNorm2d(channels int, opts ...Option) *InstanceNorm {
	return newInstanceNorm("InstanceNorm2d", channels, 2, opts)
}

// NewInstanceNorm3d is NewInstanceNorm1d for inputs of three spatial dimensions.
func NewInstanceNorm3d(channels int, opts ...Option) *InstanceNorm {
	return newInstanceNorm("InstanceNorm3d", channels, 3, opts)
}

func newInstanceNorm(name string, channels, spatial int, opts []Option) *InstanceNorm {
	positive(name, channels)
	c := newConfig(name, opts, "Eps", "Momentum", "Affine", "Tracking")
	if !c.hasEps {
		c.eps = 1e-5
	}
	l := &InstanceNorm{name: name, channels: channels, spatial: spatial, eps: c.eps, momentum: c.momentum}
	if c.affineOn {
		l.Weight = l.Param("weight", c.newVariable(Ones, channels))
		l.Bias = l.Param("bias", c.newVariable(Zeros, channels))
	}
	if c.tracking {
		l.RunningMean, l.RunningVar, l.NumBatches = c.statistics(&l.Base, channels)
	}
	return l
}

// statistics makes a norm's running statistics.
func (c *config) statistics(b *Base, channels int) (mean, variance, batches *loris.Variable) {
	mean = b.Buffer("running_mean", c.newVariable(Zeros, channels))
	variance = b.Buffer("running_var", c.newVariable(Ones, channels))
	c.maker = c.maker.With(loris.As(loris.I64))
	return mean, variance, b.Buffer("num_batches_tracked", c.newVariable(Zeros))
}

// Forward normalises x. In training with Tracking it also assigns the new running
// statistics, so call it once for each batch. An input with one element for each channel,
// which has no variance, panics where it would need one.
func (l *InstanceNorm) Forward(x *loris.Tensor) *loris.Tensor {
	if r := x.Rank() - l.spatial; r != 1 && r != 2 {
		panic(misshapen(l.name, x, "the input has the wrong number of dimensions"))
	}
	if x.Rank() == l.spatial+1 {
		return l.Forward(x.Unsqueeze(0)).Squeeze(loris.Dim(0))
	}
	weight, bias := value(l.Weight, x), value(l.Bias, x)
	if !l.Training() && l.RunningMean != nil {
		y, mean, variance := x.BatchNorm(weight, bias, value(l.RunningMean, x), value(l.RunningVar, x), false, l.momentum, l.eps)
		discard(mean, variance)
		return y
	}
	if x.Numel() == x.Dim(0)*x.Dim(1) {
		panic(misshapen(l.name, x, "the statistics need more than one element a channel"))
	}
	if l.RunningMean != nil {
		variance, mean := x.Flatten(loris.StartDim(2)).VarMean(loris.Dim(2))
		l.average(l.RunningMean, mean)
		l.average(l.RunningVar, variance)
	}
	return x.GroupNorm(l.channels, loris.Weight(weight), loris.Bias(bias), loris.Eps(l.eps))
}

// average adds statistics [N, channels] of a batch to running ones.
func (l *InstanceNorm) average(running *loris.Variable, batch *loris.Tensor) {
	old := value(running, batch)
	running.Assign(old.Mul(1 - l.momentum).Add(batch.Mean(loris.Dim(0)).Mul(l.momentum)).Cast(old.DType()))
}

// discard keeps the step from computing results that nobody uses.
func discard(ts ...*loris.Tensor) {
	for _, t := range ts {
		if t.Pending() {
			t.Discard()
		}
	}
}
