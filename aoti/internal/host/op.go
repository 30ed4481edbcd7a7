//go:build linux && cgo

package host

/*
#include <stdlib.h>
#include "device.h"
#include "op.h"
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// opFunc computes one math function. The tensors of the call belong to the
// caller, who waits.
type opFunc func(c call) error

// errUnimplemented says that a library called what the host does not have;
// opening it should have been refused.
var errUnimplemented = errors.New("the host does not implement it")

//export loriGoCall
func loriGoCall(op C.int32_t, args *C.int64_t) (code C.lori_error) {
	s := &signatures[op]
	defer func() {
		if r := recover(); r != nil {
			code = failWith(s.name, recovered(r))
		}
	}()
	if bool(C.lori_pending()) && C.lori_take_pending() != C.LORI_OK {
		return C.LORI_FAIL
	}
	f := &functions[op]
	c := call{sig: s, args: unsafe.Slice((*int64)(args), len(s.params))}
	var err error
	switch p := streamContextOf(C.lori_here_token()); {
	case p != nil:
		err = p.compute(f, c)
	case f.host == nil || f.cuda:
		err = errUnimplemented
	default:
		err = f.host(c)
	}
	if err != nil {
		return failWith(s.name, err)
	}
	return C.LORI_OK
}

// recovered makes an error of a panic: mistakes that Loris reports by a panic
// with an error are that error, anything else carries the stack.
func recovered(r any) error {
	if err, ok := r.(error); ok {
		var op *ir.OpError
		if errors.As(err, &op) {
			return err
		}
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %v\n%s", r, debug.Stack())
}

// failWith keeps the text for the thread, which is that of the library's call:
// a goroutine does not leave it before it has returned.
func failWith(name string, err error) C.lori_error {
	text := C.CString(name + ": " + err.Error())
	defer C.free(unsafe.Pointer(text))
	return C.lori_fail_text(text)
}

// call is one call of a math function.
type call struct {
	sig  *signature
	args []int64
}

// pointer reads an argument as a pointer into memory of C.
func (c call) pointer(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&c.args[i])) }

// tensor returns an argument of kindTensor or kindOptTensor; nil for none.
func (c call) tensor(i int) *tensor {
	p := c.pointer(i)
	if p != nil && c.sig.params[i].kind == kindOptTensor {
		return *(**tensor)(p)
	}
	return (*tensor)(p)
}

// tensors returns a list of handles, nil for those that are none.
func (c call) tensors(i int) []*tensor {
	n := int(c.args[i+1])
	if c.sig.params[i].kind == kindTensors {
		return unsafe.Slice((**tensor)(c.pointer(i)), n)
	}
	out := make([]*tensor, n)
	for j, p := range unsafe.Slice((***tensor)(c.pointer(i)), n) {
		if p != nil {
			out[j] = *p
		}
	}
	return out
}

func (c call) int(i int) int { return int(c.args[i]) }

// optInt returns an optional int; false for none.
func (c call) optInt(i int) (int, bool) {
	p := (*int64)(c.pointer(i))
	if p == nil {
		return 0, false
	}
	return int(*p), true
}

// ints returns a list, which is memory of C.
func (c call) ints(i int) []int64 {
	p := c.pointer(i)
	if p != nil && c.sig.params[i].kind == kindOptInts {
		p = *(*unsafe.Pointer)(p)
	}
	return unsafe.Slice((*int64)(p), int(c.args[i+1]))
}

// bool32 reads an int32_t: its upper half of the word is not specified.
func (c call) bool32(i int) int32            { return int32(c.args[i]) }
func (c call) bool(i int) bool               { return int32(c.args[i]) != 0 }
func (c call) float(i int) float64           { return *(*float64)(unsafe.Pointer(&c.args[i])) }
func (c call) present(i int) bool            { return c.args[i] != 0 }
func (c call) dtype(i int) (ir.DType, error) { return scalartype.DType(c.bool32(i)) }

// optBool32 returns an optional int32_t, such as a dtype's number.
func (c call) optBool32(i int) (int32, bool) {
	p := (*int32)(c.pointer(i))
	if p == nil {
		return 0, false
	}
	return *p, true
}

func (c call) optFloat(i int) (float64, bool) {
	p := (*float64)(c.pointer(i))
	if p == nil {
		return 0, false
	}
	return *p, true
}

// text returns a string; "" for none.
func (c call) text(i int) string {
	p := c.pointer(i)
	if p != nil && c.sig.params[i].kind == kindOptString {
		p = *(*unsafe.Pointer)(p)
	}
	if p == nil {
		return ""
	}
	return C.GoString((*C.char)(p))
}

// give hands a new handle out through an argument of kindOut.
func (c call) give(i int, t *tensor) { storePointer(c.pointer(i), unsafe.Pointer(t)) }

// storePointer writes a pointer into memory of C. Storing it as a pointer would make the
// write barrier look at what was there before: the last run's address of memory
// that Go has reused since, or what the stack of C happens to hold, on which the
// runtime ends the process ("found bad pointer in Go heap").
func storePointer(slot, p unsafe.Pointer) { *(*uintptr)(slot) = uintptr(p) }

// bools returns a list of int32_t as ints.
func (c call) bools(i int) []int64 {
	out := make([]int64, int(c.args[i+1]))
	for j, b := range unsafe.Slice((*int32)(c.pointer(i)), len(out)) {
		out[j] = int64(b)
	}
	return out
}

// floats returns a list that is given by a pointer to it.
func (c call) floats(i int) []float64 {
	p := *(*unsafe.Pointer)(c.pointer(i))
	return append([]float64(nil), unsafe.Slice((*float64)(p), int(c.args[i+1]))...)
}
