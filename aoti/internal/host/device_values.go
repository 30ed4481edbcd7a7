//go:build linux && cgo

package host

/*
#include "instance.h"
#include "device.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
)

// deviceError is the failure of a run with the cause that the device, or a collective, gave.
type deviceError struct {
	text string
	err  error
}

// Error returns the whole text, of which the cause is a part.
func (e *deviceError) Error() string { return e.text }

// Unwrap returns the cause.
func (e *deviceError) Unwrap() error { return e.err }

// await makes the work that follows in a stream context wait for the contents of a tensor.
func (p *streamContext) await(t *tensor) error {
	if h := heldOf(t); h != nil && p != nil {
		return p.stream.Await(h.mem)
	}
	return nil
}

// awaited returns the stream context of what is done outside of instances, where the work
// that follows waits for the contents of a tensor. What the device says instead
// it says of that work, too.
func (l *Library) awaited(t *tensor) *streamContext {
	p := l.at()
	_ = p.await(t)
	return p
}

// elsewhere reports that what is on a device cannot be what the library reads,
// as far as the device tells.
func (l *Library) elsewhere(d ir.Device) bool {
	here := l.where()
	return d != here && (l.deviceContext != nil || d.Type != here.Type && accelerator.Of(d.Type.String()) != nil)
}

// locate gives C the address of a buffer on the device.
func (m *Instance) locate(v *C.lori_value, b backend.Buffer) error {
	if x, ok := b.(*Boxed); ok {
		b = x.Buffer
	}
	mem, offset, ok := m.lib.deviceContext.acc.Locate(b)
	if !ok {
		return fmt.Errorf("%w: %w: the tensor is on %v, the model on %v", ir.ErrDevice, accelerator.ErrPlace, b.Device(), m.lib.where())
	}
	m.used = append(m.used, mem)
	*(*uintptr)(unsafe.Pointer(&v.data)) = mem.Address() + uintptr(offset)
	return m.stream.stream.Await(mem)
}

// ran notes what the run that was enqueued uses and makes.
func (m *Instance) ran(outputs []backend.Buffer) error {
	given := len(m.used) - m.given(outputs)
	err := m.stream.stream.Use(m.used[:given]...) // also tells whether the device is lost
	if made := m.used[given:]; len(made) > 0 {
		err = errors.Join(err, m.stream.stream.Made(made...))
	}
	clear(m.used)
	m.used = m.used[:0]
	return err
}

// given counts the buffers that were given for outputs.
func (m *Instance) given(outputs []backend.Buffer) int {
	n := 0
	for _, b := range outputs {
		if b != nil {
			n++
		}
	}
	return n
}

// takeThere makes a buffer of a result, whose memory nobody else has.
func (m *Instance) takeThere(s ir.Shape, h *held, t *tensor) (backend.Buffer, error) {
	if err := m.stream.stream.Made(h.mem); err != nil {
		return nil, err
	}
	return m.lib.deviceContext.acc.Buffer(s, h.mem, int(t.offset)*s.DType().Size()), nil
}

// packThere is pack of a library on a device. The value may be on any.
func (l *Library) packThere(ctx context.Context, k *constant, value backend.Buffer, cp bool) (backend.Buffer, error) {
	s := value.Shape()
	if mem, offset, ok := l.deviceContext.acc.Locate(value); ok && k.strides == nil {
		mem.Retain()
		t, err := l.deviceContext.over(mem, offset+s.Bytes(), offset/s.DType().Size(), s, nil)
		if err == nil && cp {
			t, err = l.copyThere(t)
		}
		if err != nil {
			return nil, fmt.Errorf("constant %q: %w", k.Name, err)
		}
		return l.newPacked(s, t, nil), nil
	}
	data, err := value.Bytes(ctx)
	if err == nil && k.strides != nil {
		data, err = k.strided(s, data)
	}
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	return l.uploadThere(ctx, k, s, data, 0)
}

// strided returns the bytes of a value with the strides of the constant.
func (k *constant) strided(s ir.Shape, data []byte) ([]byte, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	dense, err := borrow(s, data, &pin)
	if err != nil {
		return nil, err
	}
	defer release(dense)
	t, err := k.copyOf(dense)
	if err != nil {
		return nil, err
	}
	defer release(t)
	return append([]byte(nil), unsafe.Slice((*byte)(t.storage.data), int(t.storage.nbytes))...), nil
}

// uploadThere makes a value of bytes that lie as the constant's do.
func (l *Library) uploadThere(ctx context.Context, k *constant, s ir.Shape, data []byte, offset int) (backend.Buffer, error) {
	mem, err := l.deviceContext.acc.Upload(ctx, data)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	t, err := l.deviceContext.over(mem, len(data), offset, s, k.strides)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", k.Name, err)
	}
	return l.newPacked(s, t, nil), nil
}

// packBlobThere is packBlob of a library on a device.
func (l *Library) packBlobThere(k *constant, raw []byte) (backend.Buffer, error) {
	return l.uploadThere(context.Background(), k, k.Shape, raw, int(k.offset))
}

// copyThere returns a copy of a tensor's storage, and releases the tensor.
func (l *Library) copyThere(t *tensor) (*tensor, error) {
	defer release(t)
	return l.awaited(t).made(func() *tensor { return C.lori_tensor_copy(t) })
}

// unpackThere is unpack of a library on a device: the value is there, too.
func unpackThere(v *packed, cp bool) (backend.Buffer, error) {
	acc := v.lib.deviceContext.acc
	if bool(C.lori_tensor_dense(v.t)) {
		t, err := made(func() *tensor { return C.lori_tensor_alias(v.t) })
		if err == nil && (cp || heldOf(t) == nil) {
			t, err = v.lib.copyThere(t)
		}
		if err != nil {
			return nil, err
		}
		defer release(t)
		return acc.Buffer(v.shape, heldOf(t).mem, int(t.offset)*v.shape.DType().Size()), nil
	}
	data := make([]byte, v.shape.Bytes())
	if err := v.read(data); err != nil {
		return nil, err
	}
	mem, err := acc.Upload(context.Background(), data)
	if err != nil {
		return nil, err
	}
	defer mem.Release()
	return acc.Buffer(v.shape, mem, 0), nil
}
