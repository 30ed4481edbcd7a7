//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
)

// Context returns the context in which a GPU of the registered backend computes, a CUcontext: the
// device's primary one, as CUDA's runtime uses it. It lives as long as the backend uses the
// device. Streams, events and memory that are shared with Loris belong to it.
func Context(d ir.Device) (uintptr, error) {
	b, err := registered(d)
	if err != nil {
		return 0, fmt.Errorf("cuda: context of %v: %w", d, err)
	}
	g, err := b.of(d)
	if err != nil {
		return 0, fmt.Errorf("cuda: context of %v: %w", d, err)
	}
	return g.ctx.Handle(), nil
}

// FromBlob returns a buffer over memory of the caller's, dense and row-major, on a GPU of the
// registered backend; see Backend.FromBlob.
func FromBlob(d ir.Device, ptr uintptr, s ir.Shape, stream uintptr, deleter func()) (backend.Buffer, error) {
	b, err := registered(d)
	if err != nil {
		return nil, fmt.Errorf("cuda: from blob: %w", err)
	}
	return b.FromBlob(d, ptr, s, stream, deleter)
}

// registered returns the backend that serves a GPU.
func registered(d ir.Device) (*Backend, error) {
	be, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	b, ok := be.(*Backend)
	if !ok {
		return nil, fmt.Errorf("%w: %v is not served by package cuda", ir.ErrDevice, d)
	}
	return b, nil
}

// FromBlob returns a buffer over memory of the caller's, dense and row-major, at an address on the
// device. Its contents are there after the work that is in a stream, a CUstream of the device's
// primary context; 0 is the default stream. The stream need not live longer than this call.
//
// The memory must stay, and its contents must not change, until the deleter is called: once, from
// another goroutine, when nothing has the buffer any more and the device has done with it. Models
// only read the memory, donated or not. The elements of bools must be 0 or 1. With an error the
// deleter is never called.
func (b *Backend) FromBlob(d ir.Device, ptr uintptr, s ir.Shape, stream uintptr, deleter func()) (backend.Buffer, error) {
	buf, err := b.fromBlob(d, ptr, s, stream, deleter)
	if err != nil {
		return nil, fmt.Errorf("cuda: from blob of %v on %v: %w", s, d, err)
	}
	return buf, nil
}

func (b *Backend) fromBlob(id ir.Device, ptr uintptr, s ir.Shape, stream uintptr, deleter func()) (*buffer, error) {
	d, err := b.of(id)
	if err != nil {
		return nil, err
	}
	if ptr == 0 && s.Bytes() > 0 {
		return nil, fmt.Errorf("%w: the address is 0", ir.ErrArg)
	}
	if deleter == nil {
		return nil, fmt.Errorf("%w: the deleter is nil", ir.ErrArg)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	at, err := d.record(d.ctx.WrapStream(stream))
	if err != nil {
		return nil, err
	}
	m := &memory{block: &block{dev: d, ptr: driver.DevicePtr(ptr), bytes: int64(s.Bytes()), ready: at, deleter: deleter}}
	m.refs.Store(1)
	m.collected()
	return newBuffer(s, m, 0), nil
}

// giveBack calls the deleter of memory that came by FromBlob, once the device has done with it.
func (b *block) giveBack() {
	b.mu.Lock()
	last := append(slices.Clone(b.uses), b.ready)
	b.uses, b.ready = nil, nil
	b.mu.Unlock()
	go func() {
		b.dev.awaitAll(last)
		b.deleter()
	}()
}

// awaitAll waits for events and releases them. A device that is closed or lost has done
// everything.
func (d *device) awaitAll(events []*event) {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.closed {
		return
	}
	for _, m := range events {
		_ = m.wait(context.Background())
		m.release()
	}
}

// DataPtr returns where the elements of a buffer of this package are on its device, and makes the
// work that follows in a stream, a CUstream of the device's primary context, wait for them; the
// host does not wait. They may be read, and not written, by what is enqueued in the stream until
// done is called: afterwards Loris frees the memory, or writes over it, behind that work. The
// address is aligned to the elements.
//
// An error of the work that makes the elements is not told here, but by Wait and Bytes of the
// buffer. One of done is that the device is lost, or the stream none of its context.
func DataPtr(b backend.Buffer, stream uintptr) (ptr uintptr, done func() error, err error) {
	x, d, err := onDevice(b)
	if err != nil {
		return 0, nil, fmt.Errorf("cuda: data pointer: %w", err)
	}
	defer d.leave()
	s := d.ctx.WrapStream(stream)
	if err := x.waitReady(s); err != nil {
		return 0, nil, fmt.Errorf("cuda: data pointer of %v on %v: %w", x.shape, d.id, d.check(err))
	}
	mem := x.mem.retain()
	done = sync.OnceValue(func() error {
		defer mem.release()
		if err := mem.usedIn(s); err != nil {
			return fmt.Errorf("cuda: end of the use of %v on %v: %w", x.shape, d.id, err)
		}
		return nil
	})
	return uintptr(x.address()), done, nil
}

// usedIn says that the memory is read by what is in a stream of the caller's.
func (b *block) usedIn(s *driver.Stream) error {
	if err := b.dev.enter(); err != nil {
		return err
	}
	defer b.dev.leave()
	at, err := b.dev.record(s)
	if err != nil {
		return err
	}
	defer at.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	// Each use is in a stream that is not known to be another's, so that they would add up.
	b.uses = slices.DeleteFunc(b.uses, func(m *event) bool {
		over, err := m.done()
		if over && err == nil {
			m.release()
		}
		return over && err == nil
	})
	b.uses = append(b.uses, at.retain())
	return nil
}

// RecordEvent records an event, a CUevent of the primary context of the buffer's device, behind the
// work that makes the elements of a buffer of this package. It does not wait.
func RecordEvent(b backend.Buffer, event uintptr) error {
	x, d, err := onDevice(b)
	if err != nil {
		return fmt.Errorf("cuda: record an event: %w", err)
	}
	defer d.leave()
	s, err := d.stream()
	if err == nil {
		defer d.putStream(s)
		if err = x.waitReady(s); err == nil {
			err = d.ctx.WrapEvent(event).Record(s)
		}
	}
	if err != nil {
		return fmt.Errorf("cuda: record an event for %v on %v: %w", x.shape, d.id, d.check(err))
	}
	return nil
}

// onDevice returns a buffer of this package and its device, which the caller leaves.
func onDevice(b backend.Buffer) (*buffer, *device, error) {
	x, ok := b.(*buffer)
	if !ok {
		return nil, nil, fmt.Errorf("%w: the buffer of %v is on %v", ir.ErrDevice, b.Shape(), b.Device())
	}
	return x, x.dev, x.dev.enter()
}
