package nn

import (
	"github.com/loris-ml/loris"
)

// BatchNorm normalises each channel over the batch, as torch.nn.BatchNorm1d,
// BatchNorm2d and BatchNorm3d. In training it uses the statistics of the batch and averages them into the
// running statistics, which it uses in evaluation.
type BatchNorm struct {
	Base
	Weight *loris.Variable // [channels], nil without one
	Bias   *loris.Variable // [channels], nil without one

	// The buffers, nil without tracking: [channels], [channels] and an i64 scalar
	// that counts the batches.
	RunningMean, RunningVar, NumBatches *loris.Variable

	name     string
	minRank  int
	maxRank  int
	eps      float64
	momentum float64
}

// NewBatchNorm1d returns a batch norm of inputs [N, channels] or
// [N, channels, L], with weight 1, bias 0, running mean 0 and variance 1.
// Options: With, Eps, Momentum, NoAffine, NoTracking.
func NewBatchNorm1d(channels int, opts ...Option) *BatchNorm {
	return newBatchNorm("BatchNorm1d", 2, 3, channels, opts)
}

// NewBatchNorm2d is NewBatchNorm1d for inputs [N, channels, H, W].
func NewBatchNorm2d(channels int, opts ...Option) *BatchNorm {
	return newBatchNorm("BatchNorm2d", 4, 4, channels, opts)
}

// NewBatchNorm3d is NewBatchNorm1d for inputs [N, channels, D, H, W].
func NewBatchNorm3d(channels int, opts ...Option) *BatchNorm {
	return newBatchNorm("BatchNorm3d", 5, 5, channels, opts)
}

func newBatchNorm(name string, minRank, maxRank, channels int, opts []Option) *BatchNorm {
	c := newNormConfig(name, opts, []int{channels}, "Momentum", "NoTracking")
	l := &BatchNorm{name: name, minRank: minRank, maxRank: maxRank, eps: c.eps, momentum: c.momentum}
	l.Weight, l.Bias = c.affine(&l.Base, channels)
	if !c.noTracking {
		l.RunningMean, l.RunningVar, l.NumBatches = c.statistics(&l.Base, channels)
	}
	return l
}

// Forward normalises x. In training it also assigns the new running statistics, so call
// it once for each batch; a batch with one element for each channel, which has no
// variance, panics.
func (l *BatchNorm) Forward(x *loris.Tensor) *loris.Tensor {
	if r := x.Rank(); r < l.minRank || r > l.maxRank {
		panic(misshapen(l.name, x, "the input has the wrong number of dimensions"))
	}
	train := l.Training() || l.RunningMean == nil
	if train && x.Numel() == x.Dim(1) {
		panic(misshapen(l.name, x, "training needs more than one element a channel"))
	}
	y, mean, variance := x.BatchNorm(value(l.Weight, x), value(l.Bias, x),
		value(l.RunningMean, x), value(l.RunningVar, x), train, l.momentum, l.eps)
	if l.Training() && l.RunningMean != nil {
		l.RunningMean.Assign(mean)
		l.RunningVar.Assign(variance)
		l.NumBatches.Assign(value(l.NumBatches, x).Add(1))
		return y
	}
	discard(mean, variance)
	return y
}
