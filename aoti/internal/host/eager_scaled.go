//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

func resizeInPlace(c call) error {
	return resizeTensor(c.tensor(0), c.ints(1), memoryFormat(c, 3))
}

func resizeAsInPlace(c call) error {
	return resizeTensor(c.tensor(0), slices.Clone(sizesOf(c.tensor(1))), memoryFormat(c, 2))
}

func setSourceTensor(c call) error {
	return guarded(func() C.lori_error { return C.lori_tensor_assign(c.tensor(0), c.tensor(1)) })
}

// The memory formats of images with their channels innermost, as PyTorch numbers
// them.
const (
	formatLast   = 2
	formatLast3d = 3
)

func memoryFormat(c call, i int) int32 {
	f, _ := c.optBool32(i)
	return f
}

// resizeTensor gives a tensor other sizes. What it held stays in its memory; if
// that is too small it becomes larger, unless others hold it, too.
func resizeTensor(t *tensor, sizes []int64, format int32) error {
	strides, err := resizedStrides(sizes, format)
	if err != nil {
		return err
	}
	at := func(a []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(a))) }
	return guarded(func() C.lori_error { return C.lori_tensor_resize(t, C.int64_t(len(sizes)), at(sizes), at(strides)) })
}

// resizedStrides are dense strides in a memory format.
func resizedStrides(sizes []int64, format int32) ([]int64, error) {
	strides := make([]int64, len(sizes))
	step := int64(1)
	for i := range sizes {
		k := len(sizes) - 1 - i
		if format == formatLast || format == formatLast3d {
			if len(sizes) != int(format)+2 {
				return nil, fmt.Errorf("%w: %d dimensions with channels innermost", ir.ErrShape, len(sizes))
			}
			k = append([]int{1}, append(descending(len(sizes)-1, 2), 0)...)[i]
		}
		strides[k] = step
		step *= max(sizes[k], 1)
	}
	return strides, nil
}

// descending returns the numbers from hi down to lo.
func descending(hi, lo int) []int {
	var out []int
	for ; hi >= lo; hi-- {
		out = append(out, hi)
	}
	return out
}

// factors returns n numbers, of which the tensor holds all or one.
func factors(v values, name string, n int) ([]float64, error) {
	_, a, err := argument[float64](v, name)
	if err != nil {
		return nil, err
	}
	switch len(a.data) {
	case n:
		return a.data, nil
	case 1:
		return slices.Repeat(a.data, n), nil
	}
	return nil, fmt.Errorf("%w: %q has %v factors for %d", ir.ErrShape, name, a.dims, n)
}
