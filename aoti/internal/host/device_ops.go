//go:build linux && cgo

package host

/*
#include <stdlib.h>
#include "device.h"
*/
import "C"

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/scalartype"
)

// shimPrefix begins the names of the C functions that artefacts call.
const shimPrefix = "aoti_torch_"

// writesFirst reports whether an op writes into its first argument.
func writesFirst(name string) bool {
	_, name = split(strings.TrimPrefix(name, shimPrefix))
	name = strings.TrimLeft(name, "_")
	return strings.HasSuffix(name, "_out") || strings.HasSuffix(name, "_") || strings.Contains(name, "__")
}

// compute computes a call in a stream context: on the device if that can, and else on the host
// from copies of its tensors.
func (p *streamContext) compute(f *function, c call) error {
	here := !c.onDevice() && !c.makesOnDevice()
	for _, fn := range [...]deviceFunc{f.device, f.program} {
		if fn == nil || here {
			continue
		}
		if err := fn(p, c); !errors.Is(err, backend.ErrUnsupported) {
			return p.failed(err)
		}
	}
	switch {
	case f.host == nil:
		return errUnimplemented
	case here:
		return f.host(c)
	}
	return c.cpuFallback(f.host)
}

// handles returns the tensors of an argument of any kind that has some.
func (c call) handles(i int) []*tensor {
	switch c.sig.params[i].kind {
	case kindTensor, kindOptTensor:
		return []*tensor{c.tensor(i)}
	case kindTensors, kindOptTensors:
		return c.tensors(i)
	}
	return nil
}

// onDevice reports whether some tensor of the call is on a device.
func (c call) onDevice() bool {
	for i := range c.sig.params {
		if slices.ContainsFunc(c.handles(i), onDevice) {
			return true
		}
	}
	return false
}

// failed keeps why an op of an instance's run failed, if it did: the library hands on
// no more than the text.
func (p *streamContext) failed(err error) error {
	if err != nil && p != p.deviceContext.loader {
		p.fault = err
	}
	return err
}

// makesOnDevice reports whether a call without tensors is to make one on a device:
// it is told so, or is a function for CUDA.
func (c call) makesOnDevice() bool {
	for i, p := range c.sig.params {
		if p.name != "device" {
			continue
		}
		kind, there := c.bool32(i), true
		if p.kind == kindOptBool {
			kind, there = c.optBool32(i)
		}
		if there {
			return kind != C.LORI_CPU
		}
	}
	return strings.HasPrefix(c.sig.name, shimPrefix+"cuda_")
}

// stage holds what a call on the host uses in the place of what is on the device.
type stage struct {
	tensors []*tensor
	memory  []unsafe.Pointer // of C
}

func (s *stage) free() {
	for _, t := range s.tensors {
		release(t)
	}
	for _, p := range s.memory {
		C.free(p)
	}
}

// host returns a copy of t in the host's memory, or t if that is there.
func (s *stage) host(t *tensor) (*tensor, error) {
	if !onDevice(t) {
		return t, nil
	}
	h, err := made(func() *tensor { return C.lori_device_host(t) })
	if err == nil {
		s.tensors = append(s.tensors, h)
	}
	return h, err
}

// words returns memory for n pointers.
func (s *stage) words(n int) []uintptr {
	p := C.calloc(C.size_t(n+1), C.size_t(unsafe.Sizeof(uintptr(0))))
	s.memory = append(s.memory, p)
	return unsafe.Slice((*uintptr)(p), n)
}

// argument returns the word that stands for argument i on the host.
func (s *stage) argument(c call, i int) (int64, error) {
	kind, list := c.sig.params[i].kind, c.handles(i)
	if len(list) == 0 || kind != kindTensors && kind != kindOptTensors && list[0] == nil {
		return c.args[i], nil
	}
	out := s.words(len(list))
	for j, t := range list {
		h, err := s.host(t)
		if err != nil {
			return 0, err
		}
		out[j] = uintptr(unsafe.Pointer(h))
	}
	at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))
	switch kind {
	case kindTensor:
		return int64(out[0]), nil
	case kindOptTensors:
		to := s.words(len(list))
		for j := range list {
			if list[j] != nil {
				to[j] = uintptr(unsafe.Pointer(&out[j]))
			}
		}
		return int64(uintptr(unsafe.Pointer(unsafe.SliceData(to)))), nil
	}
	return at, nil
}

// cpuFallback calls fn with copies of the tensors on the host, and brings what it makes
// and what it wrote to the device.
func (c call) cpuFallback(fn opFunc) error {
	var s stage
	defer s.free()
	on := call{sig: c.sig, args: slices.Clone(c.args)}
	for i := range c.sig.params {
		var err error
		if on.args[i], err = s.argument(c, i); err != nil {
			return err
		}
	}
	if err := fn(on); err != nil {
		return err
	}
	for i, p := range c.sig.params {
		if p.kind == kindOut && c.args[i] != 0 {
			if err := c.deliver(i); err != nil {
				return err
			}
		}
	}
	if first := c.handles(0); len(first) == 1 && onDevice(first[0]) && writesFirst(c.sig.name) {
		return copyTensor(first[0], on.handles(0)[0])
	}
	return nil
}

// deliver brings a result to the device.
func (c call) deliver(i int) error {
	slot := (**tensor)(c.pointer(i))
	t, err := toDevice(*slot)
	if err != nil {
		release(t)
		t = nil
	}
	storePointer(unsafe.Pointer(slot), unsafe.Pointer(t))
	return err
}

// nativeProduct is a product of arguments a and a+1 into argument 0, with a summand if
// self is not negative: then scales follow the operands.
func nativeProduct(a, self int) func(*streamContext, call) error {
	return func(p *streamContext, c call) error {
		if self < 0 {
			return p.product(c.tensor(0), nil, c.tensor(a), c.tensor(a+1), 0, 1)
		}
		return p.product(c.tensor(0), c.tensor(self), c.tensor(a), c.tensor(a+1), c.float(a+2), c.float(a+3))
	}
}

// product is out = beta·self + alpha·a@b.
func (p *streamContext) product(out, self, a, b *tensor, beta, alpha float64) error {
	if err := sameDTypes(out, a, b); err != nil {
		return err
	}
	x := accelerator.Product{Alpha: alpha}
	var err error
	for _, o := range []struct {
		to *accelerator.Operand
		t  *tensor
	}{{&x.Out, out}, {&x.A, a}, {&x.B, b}} {
		if *o.to, err = operandOf(o.t); err != nil {
			return err
		}
	}
	if self == nil || self.storage == nil {
		beta = 0
	}
	switch {
	case beta == 0:
	case self == out:
		x.Beta = beta
	case beta == 1 && out.ndim == 2 && isRow(self, sizesOf(out)[1]) && onDevice(self):
		if err := sameDTypes(out, self); err != nil {
			return err
		}
		x.Bias = addressOf(self)
	default:
		if err := copyTensor(out, self); err != nil {
			return err
		}
		x.Beta = beta
	}
	return p.stream.Product(context.Background(), x)
}

// isRow reports whether t is one vector of n elements for all rows.
func isRow(t *tensor, n int64) bool {
	sizes, strides := sizesOf(t), stridesOf(t)
	last := len(sizes) - 1
	if last < 0 || sizes[last] != n || n > 1 && strides[last] != 1 {
		return false
	}
	for i := range last {
		if sizes[i] != 1 && strides[i] != 0 {
			return false
		}
	}
	return true
}

// addressOf is the address of a tensor's first element.
func addressOf(t *tensor) uintptr {
	return *(*uintptr)(unsafe.Pointer(&t.storage.data)) + uintptr(int64(t.offset)*int64(C.lori_dtype_size(t.dtype)))
}

// operandOf describes a matrix or a batch of them on the device.
func operandOf(t *tensor) (accelerator.Operand, error) {
	d, err := scalartype.DType(int32(t.dtype))
	sizes, strides := sizesOf(t), stridesOf(t)
	if err != nil || len(sizes) < 2 || len(sizes) > 3 || !onDevice(t) {
		return accelerator.Operand{}, backend.ErrUnsupported
	}
	o := accelerator.Operand{Address: addressOf(t), DType: d, Batch: 1}
	if len(sizes) == 3 {
		o.Batch, o.BatchStride = int(sizes[0]), int(strides[0])
		sizes, strides = sizes[1:], strides[1:]
	}
	o.Rows, o.Cols, o.RowStride, o.ColumnStride = int(sizes[0]), int(sizes[1]), int(strides[0]), int(strides[1])
	return o, nil
}
