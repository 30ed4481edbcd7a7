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
	"fmt"
	"path"
	"runtime/cgo"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// deviceContext is what a library has on an accelerator.
type deviceContext struct {
	acc    accelerator.Device
	c      *C.lori_gpu
	files  func(name string) ([]byte, error) // of the library's package; may be nil
	loader *streamContext                    // of what is done outside of instances
	ready  *computations                     // what was compiled for ops

	mu       sync.Mutex
	contexts map[*streamContext]struct{} // guarded by mu
	blocks   map[uintptr]*held           // guarded by mu: memory that the library holds by its address
}

// streamContext is where the calls of a thread into the library go: a stream, which
// instances have to themselves.
type streamContext struct {
	deviceContext *deviceContext
	stream        accelerator.Stream
	token         cgo.Handle // of the stream context
	c             *C.lori_context
	fault         error // why an op failed or memory could not be had in the run of an instance; its alone
}

// held is a reference to memory that C has.
type held struct {
	mem accelerator.Memory
	// deviceContext is set if other streams than the one that it was allocated in may use
	// the memory.
	deviceContext *deviceContext
}

// newDeviceContext finds the driver's functions for an accelerator.
func newDeviceContext(acc accelerator.Device, files func(string) ([]byte, error)) (*deviceContext, error) {
	s := &deviceContext{acc: acc, files: files, ready: newComputations(), contexts: map[*streamContext]struct{}{}, blocks: map[uintptr]*held{}}
	s.c = (*C.lori_gpu)(C.calloc(1, C.sizeof_lori_gpu))
	s.c._type, s.c.index = C.LORI_CUDA, C.int32_t(acc.Device().Index)
	*(*uintptr)(unsafe.Pointer(&s.c.context)) = acc.Context()
	for i := C.int(0); ; i++ {
		name := C.lori_gpu_symbol(i)
		if name == nil {
			break
		}
		if !C.lori_gpu_set(s.c, i, C.uintptr_t(acc.Symbol(C.GoString(name)))) {
			C.free(unsafe.Pointer(s.c))
			return nil, fmt.Errorf("%w: the driver of %v has no %s", ir.ErrDevice, acc.Device(), C.GoString(name))
		}
	}
	var err error
	if s.loader, err = s.newStreamContext(); err != nil {
		C.free(unsafe.Pointer(s.c))
		return nil, err
	}
	return s, nil
}

// close gives the loader's stream back; the library and its instances are gone.
func (s *deviceContext) close() error {
	if s == nil {
		return nil
	}
	err := errors.Join(s.ready.close(), s.loader.close())
	C.free(unsafe.Pointer(s.c))
	return err
}

func (s *deviceContext) newStreamContext() (*streamContext, error) {
	stream, err := s.acc.NewStream()
	if err != nil {
		return nil, err
	}
	p := &streamContext{deviceContext: s, stream: stream}
	p.token = cgo.NewHandle(p)
	p.c = (*C.lori_context)(C.calloc(1, C.sizeof_lori_context))
	p.c.gpu, p.c.token = s.c, C.uintptr_t(p.token)
	*(*uintptr)(unsafe.Pointer(&p.c.stream)) = stream.Handle()
	s.mu.Lock()
	s.contexts[p] = struct{}{}
	s.mu.Unlock()
	return p, nil
}

// close gives the stream back.
func (p *streamContext) close() error {
	p.deviceContext.mu.Lock()
	delete(p.deviceContext.contexts, p)
	p.deviceContext.mu.Unlock()
	p.token.Delete()
	C.free(unsafe.Pointer(p.c))
	return p.stream.Close()
}

// guarded is guarded for calls of C in a stream context; nil is the CPU.
func (p *streamContext) guarded(fn func() C.lori_error) error {
	if p == nil {
		return guarded(fn)
	}
	return guarded(func() C.lori_error {
		before := C.lori_enter(p.c)
		defer func() { C.lori_leave(&before) }()
		return fn()
	})
}

// made calls fn, which makes a tensor, in a stream context; nil is the CPU.
func (p *streamContext) made(fn func() *tensor) (t *tensor, err error) {
	err = p.guarded(func() C.lori_error {
		if t = fn(); t == nil {
			return C.LORI_FAIL
		}
		return C.LORI_OK
	})
	return t, err
}

// at returns the stream context of what is done outside of instances, nil for the CPU.
func (l *Library) at() *streamContext {
	if l.deviceContext == nil {
		return nil
	}
	return l.deviceContext.loader
}

// drop ends a reference. All that the library has enqueued comes before the
// freeing of memory that several streams may use.
func (h *held) drop() {
	if h.deviceContext != nil {
		h.deviceContext.mu.Lock()
		for p := range h.deviceContext.contexts {
			_ = p.stream.Use(h.mem) // fails only for a device that is lost, which keeps that
		}
		h.deviceContext.mu.Unlock()
	}
	h.mem.Release()
}

// heldOf returns what a tensor's storage holds on the device, nil if that is
// none of the allocator's.
func heldOf(t *tensor) *held {
	if t == nil || t.storage == nil || t.storage.flags&C.LORI_DEVICE == 0 {
		return nil
	}
	return cgo.Handle(*(*uintptr)(unsafe.Pointer(&t.storage.arg))).Value().(*held)
}

// onDevice reports that the CPU cannot read the memory of a tensor.
func onDevice(t *tensor) bool {
	return t != nil && t.storage != nil && t.storage.device_type != C.LORI_CPU
}

// over returns a tensor over memory, whose reference it takes in any case, that
// all streams of the library may use.
func (s *deviceContext) over(m accelerator.Memory, bytes, offset int, shape ir.Shape, strides []int64) (*tensor, error) {
	h := cgo.NewHandle(&held{m, s})
	dims, n := cDims(shape)
	at := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(strides)))
	return s.loader.made(func() *tensor {
		return C.lori_device_tensor(C.uintptr_t(m.Address()), C.int64_t(bytes), C.uintptr_t(h), n, &dims[0], at,
			C.int64_t(offset), C.int32_t(scalartype.Code(shape.DType())))
	})
}

// alloc allocates for the work of a stream context.
func (p *streamContext) alloc(bytes int) (*held, error) {
	m, err := p.stream.Alloc(context.Background(), bytes)
	shared := p == p.deviceContext.loader
	switch {
	case err != nil && !shared:
		p.fault = err
		return nil, err
	case err != nil:
		return nil, err
	case shared:
		return &held{m, p.deviceContext}, nil
	}
	return &held{mem: m}, nil
}

func streamContextOf(token C.uintptr_t) *streamContext {
	if token == 0 {
		return nil
	}
	return cgo.Handle(token).Value().(*streamContext)
}

var errNoStreamContext = errors.New("no device is in use on this thread")

// allocate takes memory of the device that a token's stream is on.
func allocate(token C.uintptr_t, nbytes C.int64_t) (*streamContext, *held, error) {
	p := streamContextOf(token)
	if p == nil {
		return nil, nil, errNoStreamContext
	}
	h, err := p.alloc(int(nbytes))
	return p, h, err
}

//export loriGoDeviceAlloc
func loriGoDeviceAlloc(token C.uintptr_t, nbytes C.int64_t, address *C.uint64_t, out *C.uintptr_t) C.lori_error {
	_, h, err := allocate(token, nbytes)
	if err != nil {
		return failWith("allocate", err)
	}
	*address, *out = C.uint64_t(h.mem.Address()), C.uintptr_t(cgo.NewHandle(h))
	return C.LORI_OK
}

//export loriGoDeviceFree
func loriGoDeviceFree(token C.uintptr_t) {
	h := cgo.Handle(token)
	h.Value().(*held).drop()
	h.Delete()
}

//export loriGoDeviceMalloc
func loriGoDeviceMalloc(token C.uintptr_t, nbytes C.int64_t, address *C.uint64_t) C.lori_error {
	p, h, err := allocate(token, nbytes)
	if err != nil {
		return failWith("allocate", err)
	}
	h.deviceContext = p.deviceContext
	at := h.mem.Address()
	if at == 0 { // of no bytes
		h.drop()
	} else {
		p.deviceContext.mu.Lock()
		p.deviceContext.blocks[at] = h
		p.deviceContext.mu.Unlock()
	}
	*address = C.uint64_t(at)
	return C.LORI_OK
}

//export loriGoDeviceMallocFree
func loriGoDeviceMallocFree(token C.uintptr_t, address C.uint64_t) C.lori_error {
	p := streamContextOf(token)
	if address == 0 {
		return C.LORI_OK
	}
	if p == nil {
		return failWith("free", errNoStreamContext)
	}
	p.deviceContext.mu.Lock()
	h := p.deviceContext.blocks[uintptr(address)]
	delete(p.deviceContext.blocks, uintptr(address))
	p.deviceContext.mu.Unlock()
	if h == nil {
		return failWith("free", fmt.Errorf("%#x was not allocated", uint64(address)))
	}
	h.drop()
	return C.LORI_OK
}

//export loriGoDeviceFile
func loriGoDeviceFile(token C.uintptr_t, name *C.char) unsafe.Pointer {
	p, file := streamContextOf(token), path.Base(C.GoString(name))
	if p == nil || p.deviceContext.files == nil {
		failWith("load "+file, errNoStreamContext)
		return nil
	}
	data, err := p.deviceContext.files(file)
	if err != nil {
		failWith("load "+file, err)
		return nil
	}
	return C.CBytes(append(data, 0)) // text of PTX ends with a zero
}
