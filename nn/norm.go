package nn

import (
	"slices"

	"github.com/loris-ml/loris"
)

// LayerNorm normalises over the last dimensions, as torch.nn.LayerNorm.
type LayerNorm struct {
	Base
	Weight *loris.Variable // of the normalised dimensions, nil without one
	Bias   *loris.Variable // likewise
	dims   []int
	eps    float64
}

// NewLayerNorm returns a layer norm over last dimensions of the given sizes, with
// weight 1 and bias 0. Options: With, Eps, NoAffine, NoBias.
func NewLayerNorm(dims []int, opts ...Option) *LayerNorm {
	c := newNormConfig("LayerNorm", opts, dims, "NoBias")
	l := &LayerNorm{dims: slices.Clone(dims), eps: c.eps}
	l.Weight, l.Bias = c.affine(&l.Base, dims...)
	return l
}

// newNormConfig is newConfig for a norm over dims.
func newNormConfig(name string, opts []Option, dims []int, names ...string) *config {
	if len(dims) == 0 {
		panic(misuse(name, "no dimensions are given"))
	}
	positive(name, dims...)
	c := newConfig(name, opts, append(names, "Eps", "NoAffine")...)
	if !c.hasEps {
		c.eps = 1e-5
	}
	return c
}

// affine makes a norm's scale and shift.
func (c *config) affine(b *Base, dims ...int) (weight, bias *loris.Variable) {
	if c.noAffine {
		return nil, nil
	}
	weight = b.Param("weight", c.newVariable(Ones, dims...))
	if !c.noBias {
		bias = b.Param("bias", c.newVariable(Zeros, dims...))
	}
	return weight, bias
}

// Forward normalises x [*, dims].
func (l *LayerNorm) Forward(x *loris.Tensor) *loris.Tensor {
	return x.LayerNorm(l.dims, loris.Weight(value(l.Weight, x)), loris.Bias(value(l.Bias, x)), loris.Eps(l.eps))
}

// RMSNorm divides by the root of the mean square over the last dimensions, as
// torch.nn.RMSNorm.
type RMSNorm struct {
	Base
	Weight *loris.Variable // of the normalised dimensions, nil without one
	dims   []int
	opts   []loris.RmsNormOption
}

// NewRMSNorm returns an RMS norm over last dimensions of the given sizes, with
// weight 1. Options: With, Eps, NoAffine.
func NewRMSNorm(dims []int, opts ...Option) *RMSNorm {
	c := newNormConfig("RMSNorm", opts, dims)
	l := &RMSNorm{dims: slices.Clone(dims)}
	if c.hasEps {
		l.opts = []loris.RmsNormOption{loris.Eps(c.eps)}
	}
	c.noBias = true
	l.Weight, _ = c.affine(&l.Base, dims...)
	return l
}

// Forward normalises x [*, dims].
func (l *RMSNorm) Forward(x *loris.Tensor) *loris.Tensor {
	opts := append(l.opts[:len(l.opts):len(l.opts)], loris.Weight(value(l.Weight, x)))
	return x.RmsNorm(l.dims, opts...)
}

// GroupNorm normalises groups of channels, as torch.nn.GroupNorm.
type GroupNorm struct {
	Base
	Weight *loris.Variable // [channels], nil without one
	Bias   *loris.Variable // [channels], nil without one
	groups int
	eps    float64
}

// NewGroupNorm returns a norm of inputs [N, channels, …] over each of the groups
// of channels, with weight 1 and bias 0. Options: With, Eps, NoAffine.
func NewGroupNorm(groups, channels int, opts ...Option) *GroupNorm {
	positive("GroupNorm", groups)
	c := newNormConfig("GroupNorm", opts, []int{channels})
	if channels%groups != 0 {
		panic(misuse("GroupNorm", "%d channels do not make %d groups", channels, groups))
	}
	l := &GroupNorm{groups: groups, eps: c.eps}
	l.Weight, l.Bias = c.affine(&l.Base, channels)
	return l
}

// Forward normalises x [N, channels, …].
func (l *GroupNorm) Forward(x *loris.Tensor) *loris.Tensor {
	return x.GroupNorm(l.groups, loris.Weight(value(l.Weight, x)), loris.Bias(value(l.Bias, x)), loris.Eps(l.eps))
}
