package nn

import (
	"slices"

	"github.com/loris-ml/loris"
)

// ConvTranspose is a transposed convolution over one to three spatial dimensions, the
// gradient of a convolution with respect to its input, as torch.nn.ConvTranspose1d,
// ConvTranspose2d and ConvTranspose3d.
type ConvTranspose struct {
	Base
	Weight *loris.Variable // [in, out/groups, kernel…]
	Bias   *loris.Variable // [out], nil without one

	stride, padding, outputPadding, dilation []int // one number for all dimensions or one for each
	groups, spatial                          int
}

// NewConvTranspose1d returns a transposed convolution of inputs [N, in, L] or [in, L] with
// windows of kernel elements. Weight and bias are uniform in ±1/√(out/groups·kernel).
// Options: With, NoBias, Stride, Padding, OutputPadding, Dilation, Groups, InitWeight.
func NewConvTranspose1d(in, out, kernel int, opts ...Option) *ConvTranspose {
	return newConvTranspose("ConvTranspose1d", in, out, kernel, 1, opts)
}

// NewConvTranspose2d is NewConvTranspose1d for inputs [N, in, H, W] or [in, H, W] and
// windows of kernel by kernel elements.
func NewConvTranspose2d(in, out, kernel int, opts ...Option) *ConvTranspose {
	return newConvTranspose("ConvTranspose2d", in, out, kernel, 2, opts)
}

// NewConvTranspose3d is NewConvTranspose1d for inputs [N, in, D, H, W] or [in, D, H, W] and
// windows of kernel elements in each direction.
func NewConvTranspose3d(in, out, kernel int, opts ...Option) *ConvTranspose {
	return newConvTranspose("ConvTranspose3d", in, out, kernel, 3, opts)
}

func newConvTranspose(name string, in, out, kernel, spatial int, opts []Option) *ConvTranspose {
	c := newConfig(name, opts, append(convOptions[:len(convOptions):len(convOptions)], "OutputPadding")...)
	window := slices.Repeat([]int{kernel}, spatial)
	c.checkWindows(name, in, out, window)
	l := &ConvTranspose{stride: c.stride, padding: c.padding, outputPadding: c.outputPadding, dilation: c.dilation, groups: c.groups, spatial: spatial}
	dims := append([]int{in, out / c.groups}, window...)
	l.Weight = l.Param("weight", c.newWeight(defaultWeight, dims...))
	if !c.noBias {
		fanIn, _ := fans(name, dims)
		l.Bias = l.Param("bias", c.newVariable(biasFor(fanIn), out))
	}
	return l
}

// Forward maps x to an output of (L-1)·stride - 2·padding + dilation·(kernel-1) +
// outputPadding + 1 elements in each spatial dimension of L elements.
func (l *ConvTranspose) Forward(x *loris.Tensor) *loris.Tensor {
	w, bias, groups := value(l.Weight, x), loris.Bias(value(l.Bias, x)), loris.Groups(l.groups)
	stride, padding := loris.Stride(l.stride...), loris.Padding(l.padding...)
	more, dilation := loris.OutputPadding(l.outputPadding...), loris.Dilation(l.dilation...)
	switch l.spatial {
	case 1:
		return x.ConvTranspose1d(w, bias, stride, padding, more, dilation, groups)
	case 2:
		return x.ConvTranspose2d(w, bias, stride, padding, more, dilation, groups)
	}
	return x.ConvTranspose3d(w, bias, stride, padding, more, dilation, groups)
}
