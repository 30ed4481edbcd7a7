//go:build linux && cgo && (amd64 || arm64)

// Package drive calls the vector functions by their symbols and measures them: test files
// can't use cgo themselves.
package drive

// #cgo CFLAGS: -O2 -Wall -Wextra -Werror
// #cgo LDFLAGS: -rdynamic -lm -ldl
// #include <stdlib.h>
// #include "drive.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

// Float is the type of a lane.
type Float interface{ float32 | float64 }

// A Func is a vector function found by its symbol.
type Func struct {
	ptr    unsafe.Pointer
	vector string
	args   int
}

// Lookup finds a symbol among those that this process exports.
func Lookup(symbol, vector string, args int) (Func, error) {
	name := C.CString(symbol)
	defer C.free(unsafe.Pointer(name))
	p := C.drive_lookup(name)
	if p == nil {
		return Func{}, fmt.Errorf("drive: no symbol %q", symbol)
	}
	return Func{ptr: p, vector: vector, args: args}, nil
}

// Usable reports whether this processor has the instructions of a vector type.
func Usable(vector string) bool {
	switch {
	case runtime.GOARCH != "amd64":
		return vector == "f4" || vector == "d2"
	case vector == "f16" || vector == "d8":
		return isa.AVX512()
	default:
		return isa.AVX2()
	}
}

// Call applies f to x (and y where f has two arguments), whose length is a
// multiple of 16. The lanes' type is that of f.
func Call[T Float](f Func, x, y, out []T) {
	v := C.CString(f.vector)
	defer C.free(unsafe.Pointer(v))
	second := unsafe.Pointer(&x[0])
	if f.args == 2 {
		second = unsafe.Pointer(&y[0])
	}
	C.drive_call(f.ptr, v, C.int(f.args), unsafe.Pointer(&x[0]), second, unsafe.Pointer(&out[0]), C.long(len(x)))
}

// Reference holds a function's exact values at some points: for float32 as C's doubles,
// for float64 as C's 128-bit floats.
type Reference[T Float] struct {
	refs unsafe.Pointer
	n    int
}

// NewReference computes the values of the C function name at x (and y). Free it.
func NewReference[T Float](name string, x, y []T) (*Reference[T], error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	if y == nil {
		y = x
	}
	var zero T
	p := C.drive_reference(s, C.int(unsafe.Sizeof(zero)), unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), C.long(len(x)))
	if p == nil {
		return nil, fmt.Errorf("drive: no reference for %q", name)
	}
	return &Reference[T]{refs: p, n: len(x)}, nil
}

// Free releases the values.
func (r *Reference[T]) Free() { C.free(r.refs) }

// Worst returns the largest error of got in units of the last place of the exact value, and
// where it is. A NaN or an infinity where none belongs, and a zero of the wrong sign,
// count as infinite. Errors of at most slack in absolute size don't count.
func (r *Reference[T]) Worst(got []T, slack float64) (ulp float64, at int) {
	var where C.long
	var zero T
	u := C.drive_worst(r.refs, C.int(unsafe.Sizeof(zero)), unsafe.Pointer(&got[0]), C.long(r.n), C.double(slack), &where)
	return float64(u), int(where)
}

// Value is the exact value at i, rounded to double.
func (r *Reference[T]) Value(i int) float64 {
	var zero T
	return float64(C.drive_value(r.refs, C.int(unsafe.Sizeof(zero)), C.long(i)))
}
