//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

func sizesOf(t *tensor) []int64   { return unsafe.Slice((*int64)(t.sizes), int(t.ndim)) }
func stridesOf(t *tensor) []int64 { return unsafe.Slice((*int64)(t.strides), int(t.ndim)) }

// reach returns the number of elements from a tensor's first to its last in
// memory.
func reach(t *tensor) int {
	if t.numel == 0 {
		return 0
	}
	n := 1
	strides := stridesOf(t)
	for i, s := range sizesOf(t) {
		n += int(s-1) * int(strides[i])
	}
	return n
}

// dataOf returns the address of the first element. That of an empty tensor stays
// within its memory, which may be Go's.
func dataOf(t *tensor) unsafe.Pointer {
	if t.numel == 0 {
		return t.storage.data
	}
	return unsafe.Add(t.storage.data, int(t.offset)*dtypeSize(int32(t.dtype)))
}

func dtypeSize(code int32) int {
	if d, err := scalartype.DType(code); err == nil {
		return d.Size()
	}
	return int(C.lori_dtype_size(C.int32_t(code)))
}

// shapeOf returns the dtype and sizes.
func shapeOf(t *tensor) (ir.Shape, error) {
	if t == nil || t.storage == nil {
		return ir.Shape{}, fmt.Errorf("%w: the tensor is undefined", ir.ErrShape)
	}
	d, err := scalartype.DType(int32(t.dtype))
	if err != nil {
		return ir.Shape{}, err
	}
	var dims [ir.MaxRank]int
	sizes := sizesOf(t)
	if len(sizes) > len(dims) {
		return ir.Shape{}, fmt.Errorf("%w: %d dimensions", ir.ErrShape, len(sizes))
	}
	for i, n := range sizes {
		dims[i] = int(n)
	}
	return ir.NewShape(d, dims[:len(sizes)])
}

// sameDTypes reports tensors that are undefined or of different dtypes.
func sameDTypes(ts ...*tensor) error {
	for _, t := range ts {
		if t == nil || t.storage == nil {
			return fmt.Errorf("%w: an operand is undefined", ir.ErrShape)
		}
		if t.dtype != ts[0].dtype {
			return fmt.Errorf("%w: PyTorch's %d and %d", ir.ErrDType, ts[0].dtype, t.dtype)
		}
	}
	return nil
}

// copyTensor copies src to dst with broadcasting and conversion.
func copyTensor(dst, src *tensor) error {
	return guarded(func() C.lori_error { return C.lori_copy(dst, src) })
}

// denseLike returns the strides that a copy of a tensor has: its own if its
// elements fill their memory in some order, else dense ones in its order of the
// dimensions.
func denseLike(t *tensor) []int64 {
	sizes, strides := sizesOf(t), stridesOf(t)
	order := make([]int, len(sizes))
	for i := range sizes {
		at := i
		for ; at > 0 && strides[order[at-1]] < strides[i]; at-- {
			order[at] = order[at-1]
		}
		order[at] = i
	}
	out := make([]int64, len(sizes))
	step := int64(1)
	keep := true
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		out[d] = step
		keep = keep && (sizes[d] == 1 || strides[d] == step)
		step *= max(sizes[d], 1)
	}
	if keep {
		copy(out, strides)
	}
	return out
}

// newUndefined returns a handle to no tensor.
func newUndefined() (*tensor, error) {
	return made(func() *tensor { return C.lori_tensor_undefined() })
}
