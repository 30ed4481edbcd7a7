//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"

	"github.com/loris-ml/loris/internal/kernels/conv"
)

// filters are weights as values, dense in PyTorch's order or strided.
type filters[T any] struct {
	data    func() ([]T, error)
	dims    []int
	strides [5]int
	packed  bool // for oneDNN
}

func filtersOf[T any](k *convolution) (filters[T], error) {
	if k.w.layout != C.LORI_MKLDNN {
		return stridedFilters[T](k.w), nil
	}
	d, src, err := blockedOf[T](k.w)
	if err != nil {
		return filters[T]{}, err
	}
	return unpackFilters(d, src, int(k.x.ndim), k.groups, k.transposed)
}

func stridedFilters[T any](w *tensor) filters[T] {
	f := filters[T]{data: func() ([]T, error) { return elements[T](w), nil }}
	s := stridesOf(w)
	for i, n := range sizesOf(w) {
		f.dims = append(f.dims, int(n))
		if i < 2 {
			f.strides[i] = int(s[i])
		} else {
			f.strides[5-len(s)+i] = int(s[i])
		}
	}
	return f
}

// unpackFilters reads filters packed by oneDNN: [output, input, kernel…] or
// [groups, output, input, kernel…], also for transposed convolutions.
func unpackFilters[T any](d *blocked, src []T, rank, groups int, transposed bool) (filters[T], error) {
	f := filters[T]{packed: true}
	dims := d.dims
	g := 1
	if len(dims) == rank+1 {
		g, dims = dims[0], dims[1:]
	}
	if len(dims) != rank || rank > 5 || g != 1 && g != groups {
		return f, fmt.Errorf("%w: filters %v in %d groups", errBlocked, d.dims, groups)
	}
	out, in := dims[0], dims[1]
	inner := 1
	strides := make([]int, len(dims))
	for i := len(dims) - 1; i >= 2; i-- {
		strides[i] = inner
		inner *= dims[i]
	}
	group := out * in * inner
	if transposed {
		strides[1], strides[0] = out*inner, inner
		f.dims = append([]int{in * g, out}, dims[2:]...)
		f.strides[0], f.strides[1] = out*inner, inner
	} else {
		strides[0], strides[1] = in*inner, inner
		f.dims = append([]int{out * g, in}, dims[2:]...)
		f.strides[0], f.strides[1] = in*inner, inner
	}
	for i := 2; i < len(dims); i++ {
		f.strides[5-len(dims)+i] = strides[i]
	}
	if len(d.dims) > rank {
		strides = append([]int{group}, strides...)
	}
	f.data = func() ([]T, error) {
		dst := make([]T, g*group)
		return dst, unpackBlocked(d, dst, src, strides)
	}
	return f, nil
}

// weightsKey is what packed filters depend on besides their contents.
type weightsKey struct {
	g       conv.Geometry
	form    conv.Form
	strides [5]int
	offset  int64
	dtype   int32
}

type packedWeights[T conv.Element, A conv.Float] struct {
	w    *conv.Weights[A]
	data []T // as they were, for those that a plan needs beside packed ones
	err  error
}

// weightsOf returns packed filters, and the filters themselves if the form wants them.
func weightsOf[T conv.Element, A conv.Float](w *tensor, f filters[T], g conv.Geometry, form conv.Form) (*conv.Weights[A], []T) {
	g.N, g.In, g.Out = 1, [3]int{}, [3]int{}
	key := weightsKey{g, form, f.strides, int64(w.offset), int32(w.dtype)}
	p := kept(w, key, func() packedWeights[T, A] {
		data, err := f.data()
		if err != nil {
			return packedWeights[T, A]{err: err}
		}
		p := packedWeights[T, A]{w: conv.Pack[A](data, f.strides, g, form)}
		if form == conv.Winograd && f.packed {
			p.data = data
		}
		return p
	})
	if p.err != nil {
		panic(p.err) // becomes the call's error
	}
	if form == conv.Winograd && !f.packed {
		return p.w, elements[T](w)
	}
	return p.w, p.data
}
