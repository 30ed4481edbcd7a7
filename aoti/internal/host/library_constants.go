//go:build linux && cgo

package host

/*
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// allocator makes the buffers that the loader fills.
var allocator = hostmem.NewAllocator()

// constant is one constant of a library.
type constant struct {
	backend.Constant
	name     *C.char // of Constant.Name, until the library is unloaded
	strides  []int64 // nil: row-major
	offset   int64   // in elements, of a value in a blob
	opaque   []byte  // what the bytes of a packed one are
	shaped   bool    // the shape is known
	readOnly bool    // instances may share it
}

func newConstant(k *C.lori_constant, o LibraryOptions) (constant, error) {
	c := constant{
		Constant: backend.Constant{
			Name:       C.GoString(k.name),
			FromFolded: bool(k.folded),
			Type:       constantType(k),
			Bytes:      max(int64(k.bytes), 0),
		},
		readOnly: true,
	}
	if k.fqn != nil && !c.FromFolded {
		c.OriginalName = C.GoString(k.fqn)
	}
	told, known := o.Constants[c.Name]
	switch {
	case k.initial != nil:
		if err := c.shapeOf(k.initial); err != nil {
			return c, fmt.Errorf("constant %q: %w", c.Name, err)
		}
	case known && told.Shape.DType().Valid():
		c.Shape, c.strides, c.shaped = told.Shape, told.Strides, true
	default:
		c.guessShape(int32(k.dtype))
	}
	if c.Bytes == 0 {
		c.Bytes = int64(c.Shape.Bytes())
	}
	switch {
	case c.Type == backend.ConstantParameter:
	case known:
		c.readOnly = told.ReadOnly
	default:
		// It may be a buffer, and where libraries do not tell types, which is before
		// 2.11, models write what was folded from one, too.
		c.readOnly = c.FromFolded && k._type != 0
	}
	c.name = C.CString(c.Name)
	return c, nil
}

func constantType(k *C.lori_constant) backend.ConstantType {
	if bool(k.folded) {
		return backend.ConstantFolded
	}
	if t := backend.ConstantType(k._type); t <= backend.ConstantFolded {
		return t
	}
	return backend.ConstantUnknown
}

// shapeOf takes the shape of the tensor that the library made.
func (c *constant) shapeOf(t *tensor) error {
	l, err := describe(t)
	if err != nil {
		return err
	}
	c.Shape, c.shaped = l.shape, true
	c.offset, c.opaque = l.offset, l.opaque
	if err := readable(l.opaque, l.shape.DType()); err != nil {
		return err
	}
	if !bool(C.lori_tensor_dense(t)) {
		c.strides = l.strides
	}
	c.Bytes = max(c.Bytes, l.bytes)
	return nil
}

// guessShape makes a shape of a constant of which only dtype and size are known.
func (c *constant) guessShape(code int32) {
	d, err := scalartype.DType(code)
	if err != nil {
		d = ir.U8
	}
	c.Shape = ir.MakeShape(d, int(c.Bytes)/d.Size())
}

// check returns an error wrapping ir.ErrShape or ir.ErrDType if a value cannot
// be one of the constant.
func (c *constant) check(s ir.Shape) error {
	switch {
	case s.DType() != c.Shape.DType():
		return fmt.Errorf("constant %q: %w: it is %v, the value is %v", c.Name, ir.ErrDType, c.Shape, s)
	case c.shaped && s != c.Shape:
		return fmt.Errorf("constant %q: %w: it is %v, the value is %v", c.Name, ir.ErrShape, c.Shape, s)
	case !c.shaped && int64(s.Bytes()) > c.Bytes:
		return fmt.Errorf("constant %q: %w: it has %d bytes, the value is %v", c.Name, ir.ErrShape, c.Bytes, s)
	}
	return nil
}

// packed is the value of a constant in the layout that its library takes. It is
// a backend.Buffer only for the container, which passes it on.
type packed struct {
	refs  atomic.Int32
	shape ir.Shape
	t     *tensor
	lib   *Library // which is not held
	free  func()   // after the handle is gone, may be nil
}

func (l *Library) newPacked(s ir.Shape, t *tensor, free func()) *packed {
	p := &packed{shape: s, t: t, lib: l, free: free}
	p.refs.Store(1)
	return p
}

// Shape returns the dtype and dimensions of the dense value.
func (p *packed) Shape() ir.Shape { return p.shape }

// Device returns the library's device.
func (p *packed) Device() ir.Device { return p.lib.where() }

// Bytes returns a dense copy of the elements.
func (p *packed) Bytes(context.Context) ([]byte, error) {
	out := make([]byte, p.shape.Bytes())
	return out, p.read(out)
}

func (p *packed) read(dst []byte) error {
	return p.lib.awaited(p.t).guarded(func() C.lori_error {
		return C.lori_tensor_read(p.t, unsafe.Pointer(unsafe.SliceData(dst)), C.int64_t(len(dst)))
	})
}

// Retain adds a reference.
func (p *packed) Retain() { p.refs.Add(1) }

// Release drops a reference.
func (p *packed) Release() {
	n := p.refs.Add(-1)
	if n < 0 {
		panic("host: a constant was released more often than retained")
	}
	if n > 0 {
		return
	}
	release(p.t)
	if p.free != nil {
		p.free()
	}
}

// pack brings a dense value to the layout of constant i.
func (l *Library) pack(ctx context.Context, k *constant, value backend.Buffer, cp bool) (backend.Buffer, error) {
	if p, ok := value.(*packed); ok && !cp {
		p.Retain()
		return p, nil
	}
	if err := k.check(value.Shape()); err != nil {
		return nil, err
	}
	if k.opaque != nil {
		return nil, fmt.Errorf("constant %q: its library holds it packed for oneDNN; such a constant cannot be replaced", k.Name)
	}
	if l.deviceContext != nil {
		return l.packThere(ctx, k, value, cp)
	}
	data, err := value.Bytes(ctx)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	pin := new(runtime.Pinner)
	t, err := borrow(value.Shape(), data, pin)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	if !cp && k.strides == nil {
		value.Retain()
		return l.newPacked(value.Shape(), t, func() { pin.Unpin(); value.Release() }), nil
	}
	defer pin.Unpin()
	defer release(t)
	own, err := k.copyOf(t)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	return l.newPacked(value.Shape(), own, nil), nil
}

// packBlob makes a value of the bytes of constant i as they lie in a blob.
func (l *Library) packBlob(k *constant, raw []byte, cp bool) (backend.Buffer, error) {
	if l.deviceContext != nil {
		return l.packBlobThere(k, raw)
	}
	pin := new(runtime.Pinner)
	if p := unsafe.SliceData(raw); p != nil {
		pin.Pin(p)
	}
	dims, n := cDims(k.Shape)
	strides := (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(k.strides)))
	t, err := made(func() *tensor {
		t := C.lori_tensor_raw(unsafe.Pointer(unsafe.SliceData(raw)), C.int64_t(len(raw)), n, &dims[0], strides,
			C.int64_t(k.offset), C.int32_t(scalartype.Code(k.Shape.DType())))
		if t != nil && k.opaque != nil &&
			C.lori_opaque_set(t, (*C.uint8_t)(unsafe.SliceData(k.opaque)), C.int64_t(len(k.opaque))) != C.LORI_OK {
			C.lori_tensor_delete(t)
			return nil
		}
		return t
	})
	if err != nil {
		pin.Unpin()
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	if !cp {
		return l.newPacked(k.Shape, t, pin.Unpin), nil
	}
	defer pin.Unpin()
	defer release(t)
	own, err := made(func() *tensor { return C.lori_tensor_copy(t) })
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	return l.newPacked(k.Shape, own, nil), nil
}

// copyOf returns a new tensor with the constant's strides and the elements of t.
func (k *constant) copyOf(t *tensor) (*tensor, error) {
	dims, n := cDims(k.Shape)
	sizes, strides := &dims[0], (*C.int64_t)(nil)
	if k.shaped && k.strides != nil {
		strides = (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(k.strides)))
	}
	if !k.shaped { // then the value has the shape that counts
		sizes, n = t.sizes, C.int64_t(t.ndim)
	}
	own, err := made(func() *tensor { return C.lori_tensor_empty(n, sizes, strides, t.dtype) })
	if err != nil {
		return nil, err
	}
	if err := guarded(func() C.lori_error { return C.lori_copy(own, t) }); err != nil {
		release(own)
		return nil, err
	}
	return own, nil
}

// unpack is the inverse of pack.
func unpack(v *packed, cp bool) (backend.Buffer, error) {
	if v.t.opaque != nil {
		return nil, fmt.Errorf("the constant is packed for oneDNN and cannot be read")
	}
	if v.lib.deviceContext != nil {
		return unpackThere(v, cp)
	}
	if data := tensorBytes(v.t); !cp && data != nil {
		v.Retain()
		b, err := hostmem.Wrap(v.shape, hostDevice(), data, v.Release)
		if err != nil {
			v.Release()
			return nil, err
		}
		return b, nil
	}
	b, err := allocator.New(v.shape, hostDevice())
	if err != nil {
		return nil, err
	}
	if err := v.read(b.Data()); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// takeInitial returns the values of the constants that the library came with, by
// index of all, each a new reference; nil for one that it does not hold.
func (l *Library) takeInitial() ([]*packed, error) {
	l.mu.Lock()
	i := l.initial
	l.initial = nil
	l.mu.Unlock()
	if i == nil { // they were handed out before
		var err error
		if i, err = l.describe(nil); err != nil {
			return nil, err
		}
	}
	out := make([]*packed, len(l.all))
	for n := range l.all {
		t := i.tensors[n]
		if t == nil {
			continue
		}
		p, err := i.pack(&l.all[n], t)
		if err != nil {
			releaseAll(out)
			i.release()
			return nil, err
		}
		out[n] = p
	}
	return out, i.release()
}

// pack makes a value of a tensor of the container. Where folding uses the
// library's own memory the value is a copy.
func (i *initial) pack(k *constant, t *tensor) (*packed, error) {
	if i.lib.ownMemory {
		own, err := i.lib.at().made(func() *tensor { return C.lori_tensor_keep(t) })
		if err != nil {
			return nil, err
		}
		return i.lib.newPacked(k.Shape, own, nil), nil
	}
	own, err := made(func() *tensor { return C.lori_tensor_alias(t) })
	if err != nil {
		return nil, err
	}
	i.retain()
	return i.lib.newPacked(k.Shape, own, func() { i.release() }), nil
}

func releaseAll(list []*packed) {
	for _, p := range list {
		if p != nil {
			p.Release()
		}
	}
}

// fold computes the folded constants from the others. values and the result go
// by index of all.
func (l *Library) fold(values []*packed) ([]*packed, error) {
	l.folds.Lock()
	defer l.folds.Unlock()
	pairs := (*C.lori_pair)(C.calloc(C.size_t(len(values)+1), C.sizeof_lori_pair))
	defer C.free(unsafe.Pointer(pairs))
	results := (**tensor)(C.calloc(C.size_t(len(values)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	defer C.free(unsafe.Pointer(results))
	n := 0
	for i := range l.all {
		if l.all[i].FromFolded {
			continue
		}
		unsafe.Slice(pairs, len(values))[n] = C.lori_pair{name: l.all[i].name, handle: C.lori_handle(unsafe.Pointer(values[i].t))}
		n++
	}
	for _, v := range values {
		if v != nil {
			l.awaited(v.t)
		}
	}
	err := withPinned(func(pin pinner) error {
		f := C.lori_fold{from: l.source(pin), pairs: pairs, n_pairs: C.size_t(n), constants: C.size_t(len(values))}
		return l.at().guarded(func() C.lori_error { return C.lori_library_fold(l.c, &f, results) })
	})
	runtime.KeepAlive(values)
	if err != nil {
		return nil, fmt.Errorf("fold the constants: %w", err)
	}
	out := make([]*packed, len(values))
	for i, t := range unsafe.Slice(results, len(values)) {
		if t == nil {
			continue
		}
		s := l.all[i].Shape
		if lay, err := describe(t); err == nil {
			s = lay.shape
		}
		out[i] = l.newPacked(s, t, nil)
	}
	return out, nil
}
