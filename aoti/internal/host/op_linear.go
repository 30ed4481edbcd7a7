//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

func linearPointwise(c call) error {
	// X W B attr scalars. algorithm ret0
	l := linear{x: c.tensor(0), w: c.tensor(1), bias: c.tensor(2)}
	var err error
	if l.act, err = c.activation(3, 4, 6); err != nil {
		return err
	}
	return l.give(c, 7)
}

func linearPointwiseBinary(c call) error {
	// X other W B attr ret0
	l := linear{x: c.tensor(0), residual: c.tensor(1), w: c.tensor(2), bias: c.tensor(3)}
	switch attr := c.text(4); attr {
	case "add":
	case "sub":
		l.subtract = true
	default:
		return fmt.Errorf("%w: binary operation %q", errUnimplemented, attr)
	}
	return l.give(c, 5)
}

func mklLinear(c call) error {
	// X W origin_W B prepack_batch_size ret0; W is packed by MKL, origin_W is not
	l := linear{x: c.tensor(0), w: c.tensor(2), bias: c.tensor(3)}
	return l.give(c, 5)
}

// linear is one call: act(x·wᵀ + bias) ± residual, of x [..., k] and w [n, k].
type linear struct {
	x, w, bias, residual *tensor
	subtract             bool
	act                  vec.Activation
	out                  *tensor
}

func (l *linear) give(c call, ret int) error {
	if err := sameDTypes(l.x, l.w); err != nil {
		return err
	}
	var err error
	switch l.x.dtype {
	case C.LORI_F32:
		err = linearOf[float32, float32](l)
	case C.LORI_F64:
		err = linearOf[float64, float64](l)
	case C.LORI_BF16:
		err = linearOf[gemm.BF16, float32](l)
	case C.LORI_F16:
		err = linearOf[gemm.F16, float32](l)
	default:
		err = fmt.Errorf("%w: a linear layer of PyTorch's %d", ir.ErrDType, l.x.dtype)
	}
	if err != nil {
		if l.out != nil {
			release(l.out)
		}
		return err
	}
	c.give(ret, l.out)
	return nil
}

func linearOf[T gemm.Element, A gemm.Float](l *linear) error {
	w, err := linearWeights[T](l.w)
	if err != nil {
		return err
	}
	s, err := shapeOf(l.x)
	if err != nil {
		return err
	}
	dims := s.Dims()
	if len(dims) == 0 || dims[len(dims)-1] != w.Rows() {
		return fmt.Errorf("%w: a linear layer %v of %v", ir.ErrShape, []int{w.Cols(), w.Rows()}, s)
	}
	k, n := w.Rows(), w.Cols()
	rows := 1
	for _, d := range dims[:len(dims)-1] {
		rows *= d
	}
	dims[len(dims)-1] = n
	if l.out, err = newTensor(s.WithDims(dims...)); err != nil {
		return err
	}
	x, err := made(func() *tensor { return C.lori_dense(l.x) })
	if err != nil {
		return err
	}
	defer release(x)
	o := gemm.Options[T]{}
	if l.bias != nil && l.bias.storage != nil {
		bias, free, err := vector[T](l.bias, n)
		if err != nil {
			return err
		}
		defer free()
		o.ColBias = bias
	}
	y := gemm.Dense(elements[T](l.out), rows, n)
	if l.residual != nil {
		r, err := l.other()
		if err != nil {
			return err
		}
		defer release(r)
		o.Residual = gemm.Dense(elements[T](r), rows, n)
		if l.subtract {
			// y = xw − r is −(r − xw), so r goes where c is and the product is added.
			copy(y.Data, o.Residual.Data)
			o.Residual, o.Beta = gemm.Matrix[T]{}, -1
		}
	}
	// The product applies what needs no numbers.
	after := l.act.Kind == vec.LeakyReLU || l.act.Kind == vec.HardTanh
	if !after {
		o.Act = l.act.Kind
	}
	gemm.MulPacked(y, gemm.Dense(elements[T](x), rows, k), w, &o)
	if after {
		applyRows[T, A](l.act, y)
	}
	return nil
}

// other returns the second operand of the sum, dense, broadcast to the output.
func (l *linear) other() (*tensor, error) {
	if err := sameDTypes(l.out, l.residual); err != nil {
		return nil, err
	}
	if sameSizes(l.out, l.residual) {
		return made(func() *tensor { return C.lori_dense(l.residual) })
	}
	s, err := shapeOf(l.out)
	if err != nil {
		return nil, err
	}
	t, err := newTensor(s)
	if err != nil {
		return nil, err
	}
	if err := copyTensor(t, l.residual); err != nil {
		release(t)
		return nil, err
	}
	return t, nil
}

// applyRows applies an activation to a dense matrix.
func applyRows[T gemm.Element, A gemm.Float](act vec.Activation, y gemm.Matrix[T]) {
	row := make([]A, y.Cols)
	for i := range y.Rows {
		r := y.Data[i*y.Cols:][:y.Cols]
		vec.Load(row, r)
		vec.Apply(act, row)
		vec.Store(r, row)
	}
}

// linearKey is what packed weights depend on besides their contents.
type linearKey struct {
	offset, rows, cols, row, col int64
	dtype                        int32
}

func linearKeyOf(w *tensor) linearKey {
	n, s := sizesOf(w), stridesOf(w)
	return linearKey{int64(w.offset), n[0], n[1], s[0], s[1], int32(w.dtype)}
}

type packedLinear[T gemm.Element] struct {
	w   *gemm.Packed[T]
	err error
}

// linearWeights returns wᵀ packed for products: w is strided [n, k], or packed
// for oneDNN, which nobody writes.
func linearWeights[T gemm.Element](w *tensor) (*gemm.Packed[T], error) {
	if w.ndim != 2 {
		return nil, fmt.Errorf("%w: weights of %d dimensions", ir.ErrShape, w.ndim)
	}
	p := kept(w, linearKeyOf(w), func() packedLinear[T] {
		if w.layout != C.LORI_MKLDNN {
			return packedLinear[T]{w: gemm.Pack(matrixOf[T](w).T())}
		}
		d, src, err := blockedOf[T](w)
		if err != nil {
			return packedLinear[T]{err: err}
		}
		if len(d.dims) != 2 {
			return packedLinear[T]{err: fmt.Errorf("%w: weights %v of a linear layer", errBlocked, d.dims)}
		}
		n, k := d.dims[0], d.dims[1]
		dense := make([]T, n*k)
		if err := unpackBlocked(d, dense, src, []int{k, 1}); err != nil {
			return packedLinear[T]{err: err}
		}
		return packedLinear[T]{w: gemm.Pack(gemm.Dense(dense, n, k).T())}
	})
	return p.w, p.err
}
