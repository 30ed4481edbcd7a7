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
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/gemm"
)

func mmOut(c call) error {
	return matmul(c.tensor(0), nil, c.tensor(1), c.tensor(2), 0, 1)
}

func mmPlusMMOut(c call) error {
	if err := matmul(c.tensor(0), nil, c.tensor(1), c.tensor(2), 0, 1); err != nil {
		return err
	}
	return matmul(c.tensor(0), c.tensor(0), c.tensor(3), c.tensor(4), 1, 1)
}

// addmmOut is out = beta·self + alpha·mat1@mat2, of matrices or batches of them.
func addmmOut(c call) error {
	return matmul(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.float(4), c.float(5))
}

// matmul is out = beta·self + alpha·a@b for matrices or equal batches of them;
// self, which may be out or nil, broadcasts.
func matmul(out, self, a, b *tensor, beta, alpha float64) error {
	if err := sameDTypes(out, a, b); err != nil {
		return err
	}
	rank := int(out.ndim)
	if rank != 2 && rank != 3 || int(a.ndim) != rank || int(b.ndim) != rank {
		return fmt.Errorf("%w: a product of %d and %d dimensions into %d", ir.ErrShape, a.ndim, b.ndim, out.ndim)
	}
	if self == nil || self.storage == nil {
		beta = 0
	}
	switch out.dtype {
	case C.LORI_F32:
		return matmulOf[float32](out, self, a, b, beta, alpha)
	case C.LORI_F64:
		return matmulOf[float64](out, self, a, b, beta, alpha)
	case C.LORI_BF16:
		return matmulOf[gemm.BF16](out, self, a, b, beta, alpha)
	case C.LORI_F16:
		return matmulOf[gemm.F16](out, self, a, b, beta, alpha)
	}
	return matmulInts(out, self, a, b, beta, alpha)
}

func matmulOf[T gemm.Element](out, self, a, b *tensor, beta, alpha float64) error {
	batch := 1
	if out.ndim == 3 {
		batch = int(sizesOf(out)[0])
		if int(sizesOf(a)[0]) != batch || int(sizesOf(b)[0]) != batch {
			return fmt.Errorf("%w: batches of %d and %d into %d", ir.ErrShape, sizesOf(a)[0], sizesOf(b)[0], batch)
		}
	}
	o := gemm.Options[T]{Alpha: alpha, Beta: beta}
	if beta != 0 && self != out {
		bias, err := columnBias[T](out, self, beta)
		if err != nil {
			return err
		}
		if bias != nil {
			o.ColBias, o.Beta = bias, 0
		} else if err := copyTensor(out, self); err != nil {
			return err
		}
	}
	am := matrixOf[T](a)
	if alpha == 0 { // the product counts nothing, not even its NaN
		o.Alpha = 1
		am.Cols = 0
	}
	cm, bm := matrixOf[T](out), matrixOf[T](b)
	if alpha == 0 {
		bm.Rows = 0
	}
	if batch == 1 {
		if alpha != 0 && isConstant(b) && worthPacking(cm.Rows, bm) {
			gemm.MulPacked(cm, am, packedRight(b, bm), &o)
			return nil
		}
		gemm.Mul(cm, am, bm, &o)
		return nil
	}
	cs, as, bs := batchStride(out), batchStride(a), batchStride(b)
	cd, ad, bd := elements[T](out), elements[T](a), elements[T](b)
	each := o // escapes
	gemm.MulBatch(batch, func(i int) (gemm.Matrix[T], gemm.Matrix[T], gemm.Matrix[T]) {
		ci, ai, bi := cm, am, bm
		ci.Data, ai.Data, bi.Data = cd[i*cs:], ad[i*as:], bd[i*bs:]
		return ci, ai, bi
	}, &each)
	return nil
}

// columnBias returns self as one summand for each column of out, or nil if it is
// not of that form.
func columnBias[T gemm.Element](out, self *tensor, beta float64) ([]T, error) {
	if err := sameDTypes(out, self); err != nil {
		return nil, err
	}
	sizes, strides := sizesOf(self), stridesOf(self)
	n := sizesOf(out)[out.ndim-1]
	last := len(sizes) - 1
	if beta != 1 || last < 0 || sizes[last] != n || strides[last] != 1 && n > 1 {
		return nil, nil
	}
	for i := range last {
		if sizes[i] != 1 && strides[i] != 0 {
			return nil, nil
		}
	}
	return elements[T](self)[:n], nil
}

func matrixOf[T gemm.Element](t *tensor) gemm.Matrix[T] {
	sizes, strides := sizesOf(t), stridesOf(t)
	r, c := len(sizes)-2, len(sizes)-1
	return gemm.Matrix[T]{
		Data: elements[T](t), Rows: int(sizes[r]), Cols: int(sizes[c]),
		RowStride: int(strides[r]), ColStride: int(strides[c]),
	}
}

// A product with few rows reads big weights as fast where they lie.
const (
	fewRows = 4
	bigSize = 1 << 20 // in bytes
)

// worthPacking reports whether a constant right operand is to be kept packed for
// a product of so many rows.
func worthPacking[T gemm.Element](rows int, b gemm.Matrix[T]) bool {
	return rows > fewRows || b.Rows*b.Cols*int(unsafe.Sizeof(*new(T))) <= bigSize
}

// rightKey is linearKey of a right operand, which is not transposed.
type rightKey linearKey

// packedRight returns a constant right operand packed for products, as it is kept
// with the constant.
func packedRight[T gemm.Element](b *tensor, m gemm.Matrix[T]) *gemm.Packed[T] {
	n := linearKey{int64(b.offset), int64(m.Rows), int64(m.Cols), int64(m.RowStride), int64(m.ColStride), int32(b.dtype)}
	return kept(b, rightKey(n), func() *gemm.Packed[T] { return gemm.Pack(m) })
}

func batchStride(t *tensor) int { return int(stridesOf(t)[0]) }

// elements returns the memory of a tensor from its first element to its last
// one.
func elements[T any](t *tensor) []T {
	n := reach(t)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(dataOf(t)), n)
}

// matmulInts is matmul for integers, which wrap.
func matmulInts(out, self, a, b *tensor, beta, alpha float64) error {
	in := []*tensor{a, b}
	if beta != 0 {
		in = append(in, self)
	}
	what := fmt.Appendf(nil, "matmul %v %v", alpha, beta)
	return eagerInto(out, what, in, func(bl *ir.Builder, in []ir.Value) []ir.Value {
		v := bl.MatMul(in[0], in[1])
		if alpha != 1 {
			v = bl.Call1(aten.Mul, []any{v, bl.WrappedConst(int(alpha))})
		}
		if len(in) > 2 {
			s := in[2]
			if beta != 1 {
				s = bl.Call1(aten.Mul, []any{s, bl.WrappedConst(int(beta))})
			}
			v = bl.Call1(aten.Add, []any{v, s})
		}
		return []ir.Value{v}
	})
}
