package nn

import (
	"github.com/loris-ml/loris"
)

// Conv is a convolution layer over one to three spatial dimensions, as
// torch.nn.Conv1d, Conv2d and Conv3d.
type Conv struct {
	Base
	Weight *loris.Variable // [out, in/groups, kernel…]
	Bias   *loris.Variable // [out], nil without one
	op     convOp

	stride, padding, dilation []int // one number for all dimensions or one for each
	groups                    int
}

// convOp is the op of a convolution with the layer's settings.
type convOp func(l *Conv, x, weight, bias *loris.Tensor) *loris.Tensor

func conv1d(l *Conv, x, weight, bias *loris.Tensor) *loris.Tensor {
	return x.Conv1d(weight, loris.Bias(bias), loris.Stride(l.stride...), loris.Padding(l.padding...),
		loris.Dilation(l.dilation...), loris.Groups(l.groups))
}

func conv2d(l *Conv, x, weight, bias *loris.Tensor) *loris.Tensor {
	return x.Conv2d(weight, loris.Bias(bias), loris.Stride(l.stride...), loris.Padding(l.padding...),
		loris.Dilation(l.dilation...), loris.Groups(l.groups))
}

func conv3d(l *Conv, x, weight, bias *loris.Tensor) *loris.Tensor {
	return x.Conv3d(weight, loris.Bias(bias), loris.Stride(l.stride...), loris.Padding(l.padding...),
		loris.Dilation(l.dilation...), loris.Groups(l.groups))
}

var convOptions = []string{"NoBias", "Stride", "Padding", "Dilation", "Groups", "InitWeight"}

// NewConv1d returns a convolution of inputs [N, in, L] or [in, L] with windows of kernel
// elements. Weight and bias are uniform in ±1/√(in/groups·kernel).
// Options: With, NoBias, Stride, Padding, Dilation, Groups, InitWeight.
func NewConv1d(in, out, kernel int, opts ...Option) *Conv {
	return newConv("Conv1d", conv1d, in, out, []int{kernel}, opts)
}

// NewConv2d returns a convolution of inputs [N, in, H, W] or [in, H, W] with
// windows of kernel by kernel elements. Weight and bias are uniform in
// ±1/√(in/groups·kernel²). Options are those of NewConv1d.
func NewConv2d(in, out, kernel int, opts ...Option) *Conv {
	return NewConv2dRect(in, out, [2]int{kernel, kernel}, opts...)
}

// NewConv2dRect is NewConv2d with windows of kernel[0] rows and kernel[1]
// columns.
func NewConv2dRect(in, out int, kernel [2]int, opts ...Option) *Conv {
	return newConv("Conv2d", conv2d, in, out, kernel[:], opts)
}

// NewConv3d returns a convolution of inputs [N, in, D, H, W] or [in, D, H, W] with windows
// of kernel elements in each direction. Weight and bias are uniform in
// ±1/√(in/groups·kernel³). Options are those of NewConv1d.
func NewConv3d(in, out, kernel int, opts ...Option) *Conv {
	return newConv("Conv3d", conv3d, in, out, []int{kernel, kernel, kernel}, opts)
}

func newConv(name string, op convOp, in, out int, kernel []int, opts []Option) *Conv {
	c := newConfig(name, opts, convOptions...)
	c.checkWindows(name, in, out, kernel)
	l := &Conv{op: op, stride: c.stride, padding: c.padding, dilation: c.dilation, groups: c.groups}
	dims := append([]int{out, in / c.groups}, kernel...)
	l.Weight = l.Param("weight", c.newWeight(defaultWeight, dims...))
	if !c.noBias {
		fanIn, _ := fans(name, dims)
		l.Bias = l.Param("bias", c.newVariable(biasFor(fanIn), out))
	}
	return l
}

// checkWindows panics unless the sizes of a convolution fit each other.
func (c *config) checkWindows(name string, in, out int, kernel []int) {
	positive(name, in, out, c.groups)
	positive(name, kernel...)
	if in%c.groups != 0 || out%c.groups != 0 {
		panic(misuse(name, "%d and %d channels do not make %d groups", in, out, c.groups))
	}
	for _, v := range [][]int{c.stride, c.padding, c.dilation, c.outputPadding} {
		if len(v) != 1 && len(v) != len(kernel) {
			panic(misuse(name, "Stride, Padding, OutputPadding and Dilation take 1 or %d numbers, got %v", len(kernel), v))
		}
	}
}

// Forward convolves x.
func (l *Conv) Forward(x *loris.Tensor) *loris.Tensor {
	return l.op(l, x, value(l.Weight, x), value(l.Bias, x))
}
