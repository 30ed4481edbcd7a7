//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
	"github.com/loris-ml/loris/internal/scalartype"
)

func convolutionCall(c call) error {
	// input weight bias stride. padding. dilation. transposed output_padding. groups ret0
	k := convolution{
		x: c.tensor(0), w: c.tensor(1), bias: c.tensor(2), stride: c.ints(3), padding: c.ints(5), dilation: c.ints(7),
		transposed: c.bool(9), outputPadding: c.ints(10), groups: c.int(12),
	}
	return k.give(c, 13)
}

func mkldnnConvolutionPointwise(c call) error {
	// X W B padding. stride. dilation. groups attr scalars. algorithm ret0
	k := convolution{
		x: c.tensor(0), w: c.tensor(1), bias: c.tensor(2), padding: c.ints(3), stride: c.ints(5), dilation: c.ints(7), groups: c.int(9),
	}
	var err error
	if k.act, err = c.activation(10, 11, 13); err != nil {
		return err
	}
	return k.give(c, 14)
}

func mkldnnConvolutionTransposePointwise(c call) error {
	// X W B padding. output_padding. stride. dilation. groups attr scalars. algorithm ret0
	k := convolution{
		x: c.tensor(0), w: c.tensor(1), bias: c.tensor(2), padding: c.ints(3), outputPadding: c.ints(5), stride: c.ints(7),
		dilation: c.ints(9), groups: c.int(11), transposed: true,
	}
	var err error
	if k.act, err = c.activation(12, 13, 15); err != nil {
		return err
	}
	return k.give(c, 16)
}

func mkldnnConvolutionPointwiseBinary(c call) error {
	k, err := c.binaryConvolution(0, 1)
	if err != nil {
		return err
	}
	return k.give(c, 17)
}

func mkldnnConvolutionPointwiseBinaryInPlace(c call) error {
	k, err := c.binaryConvolution(1, 0)
	if err != nil {
		return err
	}
	k.out = k.residual
	if err := k.run(); err != nil {
		return err
	}
	same, err := made(func() *tensor { return C.lori_tensor_alias(k.out) })
	c.give(17, same)
	return err
}

// binaryConvolution reads the arguments of the convolutions that add to another
// tensor: X other (in either order) W B padding. stride. dilation. groups
// binary_attr alpha unary_attr unary_scalars. unary_algorithm ret0.
func (c call) binaryConvolution(x, other int) (*convolution, error) {
	k := &convolution{
		x: c.tensor(x), residual: c.tensor(other), w: c.tensor(2), bias: c.tensor(3), padding: c.ints(4), stride: c.ints(6),
		dilation: c.ints(8), groups: c.int(10), scale: 1,
	}
	switch attr := c.text(11); attr {
	case "add":
		if alpha, ok := c.optFloat(12); ok {
			k.scale = alpha
		}
	case "sub":
		k.scale = -1
	default:
		return nil, fmt.Errorf("%w: binary operation %q", errUnimplemented, attr)
	}
	var err error
	k.act, err = c.activation(13, 14, 16)
	return k, err
}

// activation reads the name of an activation, its numbers and its algorithm.
func (c call) activation(name, scalars, algorithm int) (vec.Activation, error) {
	var nums []float64
	n := int(c.args[scalars+1])
	for _, p := range unsafe.Slice((**float64)(c.pointer(scalars)), n) {
		if p != nil {
			nums = append(nums, *p)
		}
	}
	kinds := map[string]vec.Kind{
		"": vec.Identity, "none": vec.Identity, "relu": vec.ReLU, "sigmoid": vec.Sigmoid, "tanh": vec.Tanh, "swish": vec.SiLU,
		"hardswish": vec.HardSwish, "hardsigmoid": vec.HardSigmoid, "gelu": vec.GELU, "leaky_relu": vec.LeakyReLU,
		"hardtanh": vec.HardTanh,
	}
	text := c.text(name)
	k, ok := kinds[text]
	a := vec.Activation{Kind: k}
	switch {
	case !ok:
		return a, fmt.Errorf("%w: activation %q", errUnimplemented, text)
	case k == vec.GELU && c.text(algorithm) == "tanh":
		a.Kind = vec.GELUTanh
	case k == vec.LeakyReLU && len(nums) > 0:
		a.Alpha = nums[0]
	case k == vec.HardTanh && len(nums) > 1:
		a.Alpha, a.Beta = nums[0], nums[1]
	case k == vec.LeakyReLU || k == vec.HardTanh:
		return a, fmt.Errorf("%w: activation %q of %d numbers", ir.ErrShape, text, len(nums))
	}
	return a, nil
}

// convolution is one call: act(conv(x, w) + bias + scale·residual).
type convolution struct {
	x, w, bias, residual      *tensor
	stride, padding, dilation []int64
	outputPadding             []int64 // nil for zeros
	transposed                bool
	groups                    int
	scale                     float64
	act                       vec.Activation
	out                       *tensor
}

// give computes the convolution into a new tensor and hands it out.
func (k *convolution) give(c call, ret int) error {
	if err := k.run(); err != nil {
		return err
	}
	c.give(ret, k.out)
	return nil
}

// geometry returns the shape of the convolution and the sizes of the output, for
// filters of the given sizes.
func (k *convolution) geometry(w []int) (g conv.Geometry, out []int, err error) {
	return k.geometryOf(sizesOf(k.x), w)
}

// geometryOf is geometry for an image of the given sizes.
func (k *convolution) geometryOf(xs []int64, w []int) (g conv.Geometry, out []int, err error) {
	n := len(xs) - 2
	if n < 1 || n > 3 || len(w) != len(xs) || k.groups < 1 {
		return g, nil, fmt.Errorf("%w: convolution of %v with %v in %d groups", ir.ErrShape, xs, w, k.groups)
	}
	ones := [3]int{1, 1, 1}
	g = conv.Geometry{N: int(xs[0]), Groups: k.groups, In: ones, Kernel: ones, Out: ones, Stride: ones, Dilation: ones, Transposed: k.transposed, PerImage: rowsVary()}
	if k.transposed {
		g.CIn, g.COut = w[0]/k.groups, w[1]
	} else {
		g.CIn, g.COut = w[1], w[0]/k.groups
	}
	if g.CIn*k.groups != int(xs[1]) || !k.transposed && g.COut*k.groups != w[0] {
		return g, nil, fmt.Errorf("%w: convolution of %v with %v in %d groups", ir.ErrShape, xs, w, k.groups)
	}
	out = []int{g.N, g.COut * k.groups}
	for i := range n {
		d := 3 - n + i
		g.In[d], g.Kernel[d] = int(xs[2+i]), w[2+i]
		g.Stride[d], g.Pad[d], g.Dilation[d] = entry(k.stride, i, 1), entry(k.padding, i, 0), entry(k.dilation, i, 1)
		span := g.Dilation[d] * (g.Kernel[d] - 1)
		if g.Stride[d] < 1 || g.Dilation[d] < 1 || g.Pad[d] < 0 || g.Kernel[d] < 1 {
			return g, nil, fmt.Errorf("%w: stride %v, padding %v, dilation %v of a convolution with %v", ir.ErrShape, k.stride, k.padding, k.dilation, w)
		}
		if k.transposed {
			g.Out[d] = (g.In[d]-1)*g.Stride[d] - 2*g.Pad[d] + span + entry(k.outputPadding, i, 0) + 1
		} else {
			g.Out[d] = (g.In[d]+2*g.Pad[d]-span-1)/g.Stride[d] + 1
		}
		if g.Out[d] < 1 {
			return g, nil, fmt.Errorf("%w: convolution of %v with %v has no output", ir.ErrShape, xs, w)
		}
		out = append(out, g.Out[d])
	}
	return g, out, nil
}

// entry returns number i of a list; a list of one counts for all dimensions.
func entry(list []int64, i, otherwise int) int {
	switch len(list) {
	case 0:
		return otherwise
	case 1:
		return int(list[0])
	}
	return int(list[i])
}

func (k *convolution) run() error {
	if err := sameDTypes(k.x, k.w); err != nil {
		return err
	}
	switch k.x.dtype {
	case C.LORI_F32:
		return convolve[float32, float32](k)
	case C.LORI_F64:
		return convolve[float64, float64](k)
	case C.LORI_BF16:
		return convolve[vec.BF16, float32](k)
	case C.LORI_F16:
		return convolve[vec.F16, float32](k)
	}
	return k.runEager()
}

func convolve[T conv.Element, A conv.Float](k *convolution) error {
	f, err := filtersOf[T](k)
	if err != nil {
		return err
	}
	g, dims, err := k.geometry(f.dims)
	if err != nil {
		return err
	}
	if err := k.makeOut(dims, f.packed || channelsLast(k.x) || channelsLast(k.w)); err != nil {
		return err
	}
	call := conv.Call[T, A]{X: elements[T](k.x), Y: elements[T](k.out), Activation: k.act}
	once := !f.packed && !bool(C.lori_storage_is_constant(k.w.storage))
	call.Plan = planOf[T, A](g, imageOf(k.x), imageOf(k.out), once)
	call.FilterStrides = f.strides
	if once {
		call.Filters = elements[T](k.w) // packed into memory that is used again
	} else {
		call.Weights, call.Filters = weightsOf[T, A](k.w, f, g, call.Plan.Form())
	}
	if k.bias != nil {
		bias, free, err := vector[T](k.bias, g.COut*g.Groups)
		if err != nil {
			return k.fail(err)
		}
		defer free()
		call.Bias = bias
	}
	if k.residual != nil {
		if err := sameDTypes(k.out, k.residual); err != nil {
			return k.fail(err)
		}
		if !sameSizes(k.out, k.residual) {
			return k.fail(fmt.Errorf("%w: %v added to %v", ir.ErrShape, sizesOf(k.residual), sizesOf(k.out)))
		}
		call.Residual, call.ResidualLayout, call.Scale = elements[T](k.residual), imageOf(k.residual), k.scale
	}
	call.Run()
	return nil
}

// fail deletes the output that run made.
func (k *convolution) fail(err error) error {
	if k.out != k.residual {
		release(k.out)
	}
	return err
}

// makeOut makes the output unless there is one: with channels innermost where
// PyTorch has them so.
func (k *convolution) makeOut(dims []int, last bool) error {
	if k.out != nil {
		return nil
	}
	d, err := scalartype.DType(int32(k.x.dtype))
	if err != nil {
		return err
	}
	var strides []int64
	if last && len(dims) > 3 {
		strides = channelsLastStrides(dims)
	}
	k.out, err = newStrided(ir.MakeShape(d, dims...), strides)
	return err
}

func channelsLastStrides(dims []int) []int64 {
	strides := make([]int64, len(dims))
	strides[1] = 1
	step := int64(dims[1])
	for i := len(dims) - 1; i >= 2; i-- {
		strides[i] = step
		step *= int64(dims[i])
	}
	strides[0] = step
	return strides
}

// channelsLast reports what at::Tensor::suggest_memory_format does: that the
// strides of an image are those of channels innermost, and not also those of a
// row-major one.
func channelsLast(t *tensor) bool {
	sizes, strides := sizesOf(t), stridesOf(t)
	if n := len(sizes); n != 4 && n != 5 || strides[1] == 0 || t.layout != C.LORI_STRIDED {
		return false
	}
	order := []int{1, 3, 2, 0}
	if len(sizes) == 5 {
		order = []int{1, 4, 3, 2, 0}
	}
	least := int64(0)
	for _, d := range order {
		if sizes[d] == 0 || strides[d] < least || d == 0 && least == strides[1] {
			return false
		}
		least = strides[d]
		if sizes[d] > 1 {
			least *= sizes[d]
		}
	}
	return true
}

// imageOf returns the strides of an image of up to three spatial dimensions.
func imageOf(t *tensor) conv.Layout {
	s := stridesOf(t)
	l := conv.Layout{Batch: int(s[0]), Channel: int(s[1])}
	for i, x := range s[2:] {
		l.Spatial[3-len(s[2:])+i] = int(x)
	}
	return l
}

type planKey struct {
	g       conv.Geometry
	x, y    conv.Layout
	dtype   int
	threads int
	once    bool
}

var plans32 plans[planKey, *conv.Plan[float32]]
var plans64 plans[planKey, *conv.Plan[float64]]

func planOf[T conv.Element, A conv.Float](g conv.Geometry, x, y conv.Layout, once bool) *conv.Plan[A] {
	key := planKey{g, x, y, 0, parallel.Threads(), once}
	switch any(*new(T)).(type) {
	case vec.BF16:
		key.dtype = 1
	case vec.F16:
		key.dtype = 2
	}
	make := func() *conv.Plan[A] { return conv.New[T, A](g, x, y, key.threads, once) }
	if p, ok := any(&plans32).(*plans[planKey, *conv.Plan[A]]); ok {
		return p.get(key, make)
	}
	return any(&plans64).(*plans[planKey, *conv.Plan[A]]).get(key, make)
}

// vector returns the n elements of a tensor of one dimension, which lie in a row;
// free ends their use.
func vector[T any](t *tensor, n int) (v []T, free func(), err error) {
	if int(t.numel) != n {
		return nil, nil, fmt.Errorf("%w: a bias of %d elements, want %d", ir.ErrShape, t.numel, n)
	}
	dense, err := made(func() *tensor { return C.lori_dense(t) })
	if err != nil {
		return nil, nil, err
	}
	return elements[T](dense), func() { release(dense) }, nil
}

func sameSizes(a, b *tensor) bool {
	as, bs := sizesOf(a), sizesOf(b)
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] != bs[i] {
			return false
		}
	}
	return true
}

// runEager convolves integers.
func (k *convolution) runEager() error {
	if k.act.Kind != vec.Identity || k.residual != nil || k.w.layout != C.LORI_STRIDED {
		return fmt.Errorf("%w: a fused convolution of integers", errUnimplemented)
	}
	in := []*tensor{k.x, k.w}
	if k.bias != nil {
		in = append(in, k.bias)
	}
	ints := func(list []int64, otherwise int) []int {
		v := make([]int, k.x.ndim-2)
		for i := range v {
			v[i] = entry(list, i, otherwise)
		}
		return v
	}
	stride, padding, dilation, extra := ints(k.stride, 1), ints(k.padding, 0), ints(k.dilation, 1), ints(k.outputPadding, 0)
	what := fmt.Appendf(nil, "convolution %v %v %v %v %v %v", stride, padding, dilation, extra, k.transposed, k.groups)
	res, err := eager(what, in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		var bias any
		if len(in) > 2 {
			bias = in[2]
		}
		return b.Call(aten.Convolution, []any{in[0], in[1], bias, stride, padding, dilation, k.transposed, extra, k.groups})
	})
	if err != nil {
		return err
	}
	defer res[0].Release()
	if err := k.makeOut(res[0].Shape().Dims(), channelsLast(k.x) || channelsLast(k.w)); err != nil {
		return err
	}
	if err := storeBuffer(k.out, res[0].(*hostmem.Buffer)); err != nil {
		return k.fail(err)
	}
	return nil
}
