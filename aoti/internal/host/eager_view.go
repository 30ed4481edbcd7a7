//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// viewKernels are the ops that look at the same memory in another way.
var viewKernels = map[string]eagerFunc{
	"permute": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		dims := v.ints("dims")
		if len(dims) != int(t.ndim) {
			return nil, fmt.Errorf("%w: permute %v of %d dimensions", ir.ErrShape, dims, t.ndim)
		}
		sizes, strides := make([]int64, len(dims)), make([]int64, len(dims))
		for i, d := range dims {
			k, err := dimension(int(d), len(dims))
			if err != nil {
				return nil, err
			}
			sizes[i], strides[i] = sizesOf(t)[k], stridesOf(t)[k]
		}
		return one(viewOf(t, sizes, strides, 0, int32(t.dtype)))
	},
	"slice": func(v values) ([]*tensor, error) {
		t, dim, err := v.alongDim(0)
		if err != nil {
			return nil, err
		}
		n := int(sizesOf(t)[dim])
		step := v.int("step", 1)
		if step < 1 {
			return nil, fmt.Errorf("%w: slice step %d", ir.ErrArg, step)
		}
		clip := func(i int) int {
			if i < 0 {
				i += n
			}
			return min(max(i, 0), n)
		}
		start := clip(v.int("start", 0))
		end := max(clip(v.int("end", n)), start)
		return one(cut(t, dim, start, (end-start+step-1)/step, step))
	},
	"narrow": func(v values) ([]*tensor, error) {
		t, dim, err := v.alongDim(0)
		if err != nil {
			return nil, err
		}
		n, start, length := int(sizesOf(t)[dim]), v.int("start", 0), v.int("length", 0)
		if start < 0 {
			start += n
		}
		if start < 0 || length < 0 || start+length > n {
			return nil, fmt.Errorf("%w: narrow to %d from %d of %d", ir.ErrShape, length, start, n)
		}
		return one(cut(t, dim, start, length, 1))
	},
	"squeeze": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		drop := map[int]bool{}
		list := v.ints("dim")
		if d, ok := v["dim"].(int); ok {
			list = []int64{int64(d)}
		}
		for _, d := range list {
			k, err := dimension(int(d), int(t.ndim))
			if err != nil {
				return nil, err
			}
			drop[k] = true
		}
		var sizes, strides []int64
		for i, n := range sizesOf(t) {
			if n == 1 && (drop[i] || !v.has("dim")) {
				continue
			}
			sizes, strides = append(sizes, n), append(strides, stridesOf(t)[i])
		}
		return one(viewOf(t, sizes, strides, 0, int32(t.dtype)))
	},
	"reshape": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		sizes, err := fillIn(v.ints("shape"), int64(t.numel))
		if err != nil {
			return nil, err
		}
		dense, err := made(func() *tensor { return C.lori_dense(t) })
		if err != nil {
			return nil, err
		}
		defer release(dense)
		return one(viewOf(dense, sizes, rowMajor(sizes), 0, int32(t.dtype)))
	},
	"view_dtype": viewAs, "view": viewAs,
	"view_as_real": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		to := map[C.int32_t]int32{C.LORI_C64: C.LORI_F32, C.LORI_C128: C.LORI_F64, C.LORI_C32: C.LORI_F16}[t.dtype]
		if to == 0 {
			return nil, fmt.Errorf("%w: view_as_real of PyTorch's %d", ir.ErrDType, t.dtype)
		}
		sizes, strides := append([]int64(nil), sizesOf(t)...), append([]int64(nil), stridesOf(t)...)
		for i := range strides {
			strides[i] *= 2
		}
		return one(viewAt(t, append(sizes, 2), append(strides, 1), 2*int64(t.offset), to))
	},
	"view_as_complex": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		to := map[C.int32_t]int32{C.LORI_F32: C.LORI_C64, C.LORI_F64: C.LORI_C128, C.LORI_F16: C.LORI_C32}[t.dtype]
		n := int(t.ndim) - 1
		if to == 0 || n < 0 || sizesOf(t)[n] != 2 || stridesOf(t)[n] != 1 || t.offset%2 != 0 {
			return nil, fmt.Errorf("%w: view_as_complex of %v", ir.ErrShape, sizesOf(t))
		}
		strides := append([]int64(nil), stridesOf(t)[:n]...)
		for i, s := range strides {
			if s%2 != 0 {
				return nil, fmt.Errorf("%w: view_as_complex of strides %v", ir.ErrShape, stridesOf(t))
			}
			strides[i] = s / 2
		}
		return one(viewAt(t, sizesOf(t)[:n], strides, int64(t.offset)/2, to))
	},
	"clone": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		return one(cloneOf(t))
	},
	"contiguous": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		return one(made(func() *tensor { return C.lori_dense(t) }))
	},
	"alias": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		return one(made(func() *tensor { return C.lori_tensor_alias(t) }))
	},
}

// alongDim returns self and its dimension dim.
func (v values) alongDim(otherwise int) (*tensor, int, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, 0, err
	}
	dim, err := dimension(v.int("dim", otherwise), int(t.ndim))
	if err == nil && t.ndim == 0 {
		err = fmt.Errorf("%w: a scalar has no dimension", ir.ErrShape)
	}
	return t, dim, err
}

func cloneOf(t *tensor) (*tensor, error) {
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	c, err := newStrided(s, denseLike(t))
	if err != nil {
		return nil, err
	}
	if err := copyTensor(c, t); err != nil {
		release(c)
		return nil, err
	}
	return c, nil
}

// viewOf returns a view that begins some elements after t.
func viewOf(t *tensor, sizes, strides []int64, offset int64, dtype int32) (*tensor, error) {
	return viewAt(t, sizes, strides, int64(t.offset)+offset, dtype)
}

// viewAt returns a view over the storage of t, from an element of it on.
func viewAt(t *tensor, sizes, strides []int64, offset int64, dtype int32) (*tensor, error) {
	var s, st [maxDims]C.int64_t
	if len(sizes) > maxDims {
		return nil, fmt.Errorf("%w: %d dimensions", ir.ErrShape, len(sizes))
	}
	for i := range sizes {
		s[i], st[i] = C.int64_t(sizes[i]), C.int64_t(strides[i])
	}
	return made(func() *tensor {
		C.lori_storage_retain(t.storage)
		return C.lori_tensor_over(t.storage, C.int64_t(len(sizes)), &s[0], &st[0], C.int64_t(offset), C.int32_t(dtype))
	})
}

// maxDims bounds the dimensions of handles.
const maxDims = 64

// cut returns n elements of a dimension, from start on, by step.
func cut(t *tensor, dim, start, n, step int) (*tensor, error) {
	sizes, strides := append([]int64(nil), sizesOf(t)...), append([]int64(nil), stridesOf(t)...)
	offset := int64(start) * strides[dim]
	sizes[dim] = int64(n)
	strides[dim] *= int64(step)
	return viewOf(t, sizes, strides, offset, int32(t.dtype))
}

// fillIn replaces a -1 among sizes by what is left of n elements.
func fillIn(shape []int64, n int64) ([]int64, error) {
	sizes := append([]int64(nil), shape...)
	at, known := -1, int64(1)
	for i, s := range sizes {
		if s == -1 && at < 0 {
			at = i
			continue
		}
		known *= s
	}
	if at >= 0 && known > 0 && n%known == 0 {
		sizes[at] = n / known
		known *= sizes[at]
	}
	if known != n {
		return nil, fmt.Errorf("%w: %d elements as %v", ir.ErrShape, n, shape)
	}
	return sizes, nil
}

func rowMajor(sizes []int64) []int64 {
	strides := make([]int64, len(sizes))
	step := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = step
		step *= max(sizes[i], 1)
	}
	return strides
}

// viewAs looks at the bytes as another dtype. One of another size changes the
// last dimension, along which elements must follow each other.
func viewAs(v values) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	d := v.dtype(ir.Invalid)
	from, to := int64(dtypeSize(int32(t.dtype))), int64(d.Size())
	sizes, strides := append([]int64(nil), sizesOf(t)...), append([]int64(nil), stridesOf(t)...)
	n := len(sizes) - 1
	if from != to {
		if to == 0 || n < 0 || strides[n] != 1 || sizes[n]*from%to != 0 || int64(t.offset)*from%to != 0 {
			return nil, fmt.Errorf("%w: %v as %v", ir.ErrShape, sizes, d)
		}
		sizes[n] = sizes[n] * from / to
		for i := range n {
			if strides[i]*from%to != 0 {
				return nil, fmt.Errorf("%w: strides %v as %v", ir.ErrShape, strides, d)
			}
			strides[i] = strides[i] * from / to
		}
	}
	return one(viewAt(t, sizes, strides, int64(t.offset)*from/to, scalartype.Code(d)))
}
