//go:build linux && cgo

package host

/*
#cgo CFLAGS: -std=gnu17 -O2
#cgo LDFLAGS: -rdynamic -ldl -lm -lpthread
#include "tensor.h"

// These keep no pointer of their arguments, so Go may have sizes and strides on its stack.
#cgo noescape lori_tensor_empty
#cgo noescape lori_tensor_borrow
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// tensor is a handle as libraries hold it. It is memory of C.
type tensor = C.lori_tensor

// BytesInUse returns the bytes of the live tensors that this host allocated for
// libraries. Memory that is kept for reuse does not count.
func BytesInUse() int64 { return int64(memory().bytes) }

// Handles returns how many tensor handles are alive.
func Handles() int64 { return int64(memory().handles) }

// PooledBytes returns the bytes that are kept for reuse.
func PooledBytes() int64 { return int64(memory().pooled) }

// SetPoolLimit bounds the bytes that are kept for reuse; 0 keeps none.
func SetPoolLimit(bytes int64) { C.lori_pool_limit(C.int64_t(bytes)) }

// Trim frees what is kept for reuse.
func Trim() { C.lori_pool_trim() }

func memory() (s C.lori_memory_stats) {
	C.lori_memory(&s)
	return s
}

// guarded calls fn, which calls C, and returns the text of its failure: it is
// kept per thread, so the goroutine may not change threads in between.
func guarded(fn func() C.lori_error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if fn() == C.LORI_OK {
		return nil
	}
	return errors.New(C.GoString(C.lori_error_text()))
}

// made is guarded for functions that return a handle.
func made(fn func() *tensor) (t *tensor, err error) {
	err = guarded(func() C.lori_error {
		if t = fn(); t == nil {
			return C.LORI_FAIL
		}
		return C.LORI_OK
	})
	return t, err
}

// borrow returns a handle over the dense elements in data. It pins the memory if
// it is Go's; the handle and what was made from it must be gone before the
// pinner unpins.
func borrow(s ir.Shape, data []byte, pin *runtime.Pinner) (*tensor, error) {
	if len(data) != s.Bytes() {
		return nil, fmt.Errorf("%w: %v has %d bytes, got %d", ir.ErrShape, s, s.Bytes(), len(data))
	}
	p := unsafe.Pointer(unsafe.SliceData(data))
	if p != nil {
		pin.Pin(p)
	}
	dims, n := cDims(s)
	return made(func() *tensor {
		return C.lori_tensor_borrow(p, C.int64_t(len(data)), n, &dims[0], nil, C.int32_t(scalartype.Code(s.DType())))
	})
}

// newTensor returns a handle to uninitialised memory of its own.
func newTensor(s ir.Shape) (*tensor, error) {
	dims, n := cDims(s)
	return made(func() *tensor {
		return C.lori_tensor_empty(n, &dims[0], nil, C.int32_t(scalartype.Code(s.DType())))
	})
}

func cDims(s ir.Shape) (dims [ir.MaxRank]C.int64_t, n C.int64_t) {
	for i := range s.Rank() {
		dims[i] = C.int64_t(s.Dim(i))
	}
	return dims, C.int64_t(s.Rank())
}

// release deletes a handle.
func release(t *tensor) { C.lori_tensor_delete(t) }

// layout is what a handle says of itself.
type layout struct {
	shape   ir.Shape
	strides []int64 // in elements
	offset  int64   // in elements, from the start of the storage
	bytes   int64   // of the storage
	opaque  []byte  // of packed (oneDNN) tensors: the description; nil for strided ones
}

// describe returns the layout of a handle. It returns an error wrapping
// ir.ErrShape or ir.ErrDType if Loris has no such shape.
func describe(t *tensor) (layout, error) {
	if t.storage == nil {
		return layout{}, fmt.Errorf("%w: the tensor is undefined", ir.ErrShape)
	}
	d, err := scalartype.DType(int32(t.dtype))
	if err != nil {
		return layout{}, err
	}
	sizes, strides := unsafe.Slice((*int64)(t.sizes), t.ndim), unsafe.Slice((*int64)(t.strides), t.ndim)
	dims := make([]int, t.ndim)
	for i, n := range sizes {
		dims[i] = int(n)
	}
	s, err := ir.NewShape(d, dims)
	if err != nil {
		return layout{}, err
	}
	l := layout{shape: s, strides: append([]int64(nil), strides...), offset: int64(t.offset), bytes: int64(t.storage.nbytes)}
	if o := t.opaque; o != nil {
		l.opaque = C.GoBytes(unsafe.Pointer(uintptr(unsafe.Pointer(o))+unsafe.Sizeof(*o)), C.int(o.size))
	}
	return l, nil
}

// tensorBytes returns the memory of a dense tensor, which is the handle's; nil if it is
// not dense.
func tensorBytes(t *tensor) []byte {
	if t.storage == nil || !bool(C.lori_tensor_dense(t)) {
		return nil
	}
	n := int64(t.numel) * int64(C.lori_dtype_size(t.dtype))
	return unsafe.Slice((*byte)(C.lori_tensor_data(t)), n)
}
