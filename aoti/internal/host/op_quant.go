//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/quant"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/scalartype"
)

func qlinearPointwiseTensor(c call) error {
	// X act_scale act_zero_point W W_scales W_zero_points B output_scale
	// output_zero_point output_dtype post_op post_op_args. post_op_algorithm ret0
	q := quantizedLayer{step: c.float(7), zero: c.int(8)}
	if err := q.read(c, 6, 9); err != nil {
		return err
	}
	var err error
	if q.act, err = c.activation(10, 11, 13); err != nil {
		return err
	}
	return q.give(c, 14, q.linear)
}

func qlinearPointwiseBinaryTensor(c call) error {
	// X act_scale act_zero_point W W_scales W_zero_points other B output_scale
	// output_zero_point output_dtype other_scale other_zero_point binary alpha
	// unary unary_args. unary_algorithm ret0
	q := quantizedLayer{step: c.float(8), zero: c.int(9), other: c.tensor(6), otherScale: c.float(11), otherZero: c.int(12)}
	if err := q.read(c, 7, 10); err != nil {
		return err
	}
	alpha := c.float(14)
	if err := q.binary(c.text(13), alpha); err != nil {
		return err
	}
	var err error
	if q.act, err = c.activation(15, 16, 18); err != nil {
		return err
	}
	return q.give(c, 19, q.linear)
}

// quantizedLayer is one call of a layer of 8-bit integers. What it stands for is
// act((x − xZero)·xScale · w·wScale + bias ± residual)/step + zero.
type quantizedLayer struct {
	x, w, wScale, bias *tensor
	xScale             float32
	xZero              int32
	step               float64
	zero               int

	other      *tensor // what is added; nil for nothing
	otherScale float64
	otherZero  int
	inPlace    bool // the result goes where other is

	// oneDNN multiplied the scales before it multiplied sums by them, when PyTorch
	// was version 2.6.
	together bool

	act   vec.Activation
	dtype ir.DType // of the result
	out   *tensor
}

// read reads the arguments that all layers begin with, and those at the given
// places.
func (q *quantizedLayer) read(c call, bias, dtype int) error {
	q.x, q.w, q.wScale, q.bias = c.tensor(0), c.tensor(3), c.tensor(4), c.tensor(bias)
	if q.bias != nil && q.bias.storage == nil {
		q.bias = nil
	}
	if err := sameDTypes(q.x); err != nil {
		return err
	}
	if d := int32(q.x.dtype); d != C.LORI_U8 && d != C.LORI_I8 {
		return fmt.Errorf("%w: a quantized layer over PyTorch's %d, want u8 or i8", ir.ErrDType, d)
	}
	if q.w == nil || q.w.storage == nil || q.w.dtype != C.LORI_I8 {
		return fmt.Errorf("%w: the weights of a quantized layer are not i8", ir.ErrDType)
	}
	scale, err := scalarOf(c.tensor(1), 1)
	if err != nil {
		return fmt.Errorf("the input's scale: %w", err)
	}
	zero, err := scalarOf(c.tensor(2), 0)
	if err != nil {
		return fmt.Errorf("the input's zero point: %w", err)
	}
	q.xScale, q.xZero = float32(scale), int32(zero)
	q.dtype = dtypeOf(q.x)
	if code, ok := c.optBool32(dtype); ok {
		q.dtype, err = scalartype.DType(code)
	}
	return err
}

// binary reads what is done with the other operand.
func (q *quantizedLayer) binary(name string, alpha float64) error {
	switch name {
	case "none":
		q.other = nil
		return nil
	case "sum":
		q.inPlace = true
	case "add":
	default:
		return fmt.Errorf("%w: binary operation %q", errUnimplemented, name)
	}
	if alpha != 1 {
		return fmt.Errorf("%w: a factor of %v in a quantized sum", errUnimplemented, alpha)
	}
	if err := sameDTypes(q.other); err != nil {
		return err
	}
	if d := dtypeOf(q.other); q.inPlace && d != q.dtype {
		return fmt.Errorf("%w: a result of %v over a sum of %v", ir.ErrDType, q.dtype, d)
	}
	return nil
}

// give runs the layer and hands its result out.
func (q *quantizedLayer) give(c call, ret int, run func() error) error {
	if q.step <= 0 {
		return fmt.Errorf("%w: the output's scale %v", ir.ErrArg, q.step)
	}
	if err := run(); err != nil {
		if q.out != nil {
			release(q.out)
		}
		return err
	}
	c.give(ret, q.out)
	return nil
}

// result makes the output of the given sizes and strides, or takes that which is
// there for it.
func (q *quantizedLayer) result(dims []int, strides []int64) error {
	var err error
	if !q.inPlace {
		q.out, err = newStrided(ir.MakeShape(q.dtype, dims...), strides)
		return err
	}
	if q.out, err = made(func() *tensor { return C.lori_tensor_alias(q.other) }); err != nil {
		return err
	}
	return fits(q.other, dims, strides)
}

// fits reports a tensor that is not laid out as the result is.
func fits(t *tensor, dims []int, strides []int64) error {
	sizes, have := sizesOf(t), stridesOf(t)
	if strides == nil {
		var wide []int64
		for _, n := range dims {
			wide = append(wide, int64(n))
		}
		strides = rowMajor(wide)
	}
	same := len(sizes) == len(dims)
	for i := 0; same && i < len(dims); i++ {
		same = int(sizes[i]) == dims[i] && (dims[i] == 1 || have[i] == strides[i])
	}
	if !same {
		return fmt.Errorf("%w: %v with strides %v in a sum of %v with strides %v", ir.ErrShape, sizes, have, dims, strides)
	}
	return nil
}

// finish describes what becomes of the sums of n columns. free ends the use of
// what it holds.
func (q *quantizedLayer) finish(n int) (f *quant.Finish, free func(), err error) {
	f = &quant.Finish{
		Factor: q.xScale, Activation: q.act, Step: float32(q.step), Zero: int32(q.zero), Stride: n,
		OtherScale: float32(q.otherScale), OtherZero: int32(q.otherZero),
	}
	if f.Scale, err = floatsOf(q.wScale, n); err != nil {
		return nil, nil, fmt.Errorf("the weights' scales: %w", err)
	}
	if q.together {
		for i := range f.Scale {
			f.Scale[i] *= q.xScale
		}
		f.Factor = 1
	}
	if q.bias != nil {
		if f.Bias, err = floatsOf(q.bias, n); err != nil {
			return nil, nil, fmt.Errorf("the bias: %w", err)
		}
		if len(f.Bias) != n {
			return nil, nil, fmt.Errorf("%w: a bias of %d elements, want %d", ir.ErrShape, len(f.Bias), n)
		}
	}
	if f.Out, err = quantValues(q.out); err != nil {
		return nil, nil, err
	}
	free = func() {}
	switch {
	case q.inPlace:
		f.Other = f.Out
	case q.other != nil:
		other, err := made(func() *tensor { return C.lori_dense(q.other) })
		if err != nil {
			return nil, nil, err
		}
		free = func() { release(other) }
		if f.Other, err = quantValues(other); err != nil {
			free()
			return nil, nil, err
		}
	}
	return f, free, nil
}

// quantValues returns the elements of a result or of what is added to one.
func quantValues(t *tensor) (quant.Values, error) {
	switch t.dtype {
	case C.LORI_U8:
		return quant.U8s(elements[uint8](t)), nil
	case C.LORI_I8:
		return quant.I8s(elements[int8](t)), nil
	case C.LORI_F32:
		return quant.F32s(elements[float32](t)), nil
	case C.LORI_BF16:
		return quant.BF16s(elements[vec.BF16](t)), nil
	}
	return nil, fmt.Errorf("%w: a quantized layer with PyTorch's %d as result or summand", ir.ErrDType, t.dtype)
}

// linear computes x·w + …, of x [..., k] and w [k, n].
func (q *quantizedLayer) linear() error {
	packed := quantizedWeights(q.w)
	if packed.err != nil {
		return packed.err
	}
	w := packed.w
	q.together = packed.older
	sizes := sizesOf(q.x)
	last := len(sizes) - 1
	if last < 0 || int(sizes[last]) != w.Depth() {
		return fmt.Errorf("%w: a quantized layer %v of %v", ir.ErrShape, []int{w.Depth(), w.Cols()}, sizes)
	}
	dims := make([]int, len(sizes))
	rows := 1
	for i, n := range sizes[:last] {
		dims[i] = int(n)
		rows *= dims[i]
	}
	dims[last] = w.Cols()
	if err := q.result(dims, nil); err != nil {
		return err
	}
	if q.other != nil && !q.inPlace && int(q.other.numel) != rows*w.Cols() {
		return fmt.Errorf("%w: %v added to %v", ir.ErrShape, sizesOf(q.other), dims)
	}
	f, free, err := q.finish(w.Cols())
	if err != nil {
		return err
	}
	defer free()
	x, err := made(func() *tensor { return C.lori_dense(q.x) })
	if err != nil {
		return err
	}
	defer release(x)
	if x.dtype == C.LORI_U8 {
		quant.Mul(rows, quant.Shift(elements[uint8](x), w.Depth(), q.xZero), w, f)
	} else {
		quant.Mul(rows, quant.Shift(elements[int8](x), w.Depth(), q.xZero), w, f)
	}
	return nil
}

// quantizedKey is what packed 8-bit weights depend on besides their contents.
type quantizedKey linearKey

type packedQuantized struct {
	w     *quant.Packed
	older bool // by PyTorch 2.6
	err   error
}

// quantizedWeights returns the weights of a layer of 8-bit integers: w is [k, n],
// strided or packed for oneDNN.
func quantizedWeights(w *tensor) packedQuantized {
	if w.ndim != 2 {
		return packedQuantized{err: fmt.Errorf("%w: weights of %d dimensions", ir.ErrShape, w.ndim)}
	}
	return kept(w, quantizedKey(linearKeyOf(w)), func() packedQuantized {
		k, n := int(sizesOf(w)[0]), int(sizesOf(w)[1])
		dense := make([]int8, k*n)
		if w.layout != C.LORI_MKLDNN {
			src, s := elements[int8](w), stridesOf(w)
			for j := range n {
				for p := range k {
					dense[j*k+p] = src[p*int(s[0])+j*int(s[1])]
				}
			}
			return packedQuantized{w: quant.Pack(dense, n, k)}
		}
		d, src, err := blockedOf[int8](w)
		if err == nil && !slices.Equal(d.dims, []int{k, n}) {
			err = fmt.Errorf("%w: weights %v of a layer [%d, %d]", errBlocked, d.dims, k, n)
		}
		if err == nil {
			err = unpackBlocked(d, dense, src, []int{1, k})
		}
		if err != nil {
			return packedQuantized{err: err}
		}
		return packedQuantized{w: quant.Pack(dense, n, k), older: d.older}
	})
}

// scalarOf reads the number that a tensor holds, or the given one if it is empty.
func scalarOf(t *tensor, otherwise float64) (float64, error) {
	switch {
	case t == nil || t.storage == nil || t.numel == 0:
		return otherwise, nil
	case t.numel > 1:
		return 0, fmt.Errorf("%w: %v, want one number", ir.ErrShape, sizesOf(t))
	}
	p := dataOf(t)
	switch t.dtype {
	case C.LORI_F32:
		return float64(*(*float32)(p)), nil
	case C.LORI_F64:
		return *(*float64)(p), nil
	case C.LORI_I64:
		return float64(*(*int64)(p)), nil
	case C.LORI_I32:
		return float64(*(*int32)(p)), nil
	case C.LORI_I8:
		return float64(*(*int8)(p)), nil
	case C.LORI_U8:
		return float64(*(*uint8)(p)), nil
	}
	return 0, fmt.Errorf("%w: PyTorch's %d for a number", ir.ErrDType, t.dtype)
}

// floatsOf returns the n elements of a tensor, or the one that it has, as float32
// in new memory.
func floatsOf(t *tensor, n int) ([]float32, error) {
	if err := sameDTypes(t); err != nil {
		return nil, err
	}
	if int(t.numel) != n && t.numel != 1 {
		return nil, fmt.Errorf("%w: %v, want %d numbers", ir.ErrShape, sizesOf(t), n)
	}
	shape, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	wide, err := newTensor(shape.WithDType(ir.F32))
	if err != nil {
		return nil, err
	}
	defer release(wide)
	if err := copyTensor(wide, t); err != nil {
		return nil, err
	}
	return append([]float32(nil), elements[float32](wide)...), nil
}
