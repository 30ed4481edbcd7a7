package cu

import (
	"context"
	"fmt"
	"sync/atomic"
	"unsafe"

	gcu "gorgonia.org/cu"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/internal/executor"
)

// Handles of package gorgonia.org/cu are structs of one pointer, of which it does not show all.
const (
	_ = uint(unsafe.Sizeof(gcu.CUContext{}) - unsafe.Sizeof(uintptr(0)))
	_ = uint(unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(gcu.CUContext{}))
	_ = uint(unsafe.Sizeof(gcu.Event{}) - unsafe.Sizeof(uintptr(0)))
	_ = uint(unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(gcu.Event{}))
)

// Context returns the context in which Loris computes on a GPU, the device's primary one, which it
// makes if need be. It lives as long as Loris uses the device, and is not the caller's to destroy.
// The error is loris.ErrDevice for a device that cannot be used, and says why.
func Context(d loris.Device) (gcu.CUContext, error) {
	handle, err := cuda.Context(d)
	if err != nil {
		return gcu.CUContext{}, err
	}
	return *(*gcu.CUContext)(unsafe.Pointer(&handle)), nil
}

// WithStream has the runs of containers and compiled Programs that are started with the context take
// their turn in a stream: after the work that is in it, and before what is enqueued afterwards. The
// stream lives until Run has returned. Steps of sessions don't look at it: see FromDevicePtr and
// DevicePtr.
func WithStream(ctx context.Context, s gcu.Stream) context.Context {
	return cuda.WithStream(ctx, streamHandle(s))
}

func streamHandle(s gcu.Stream) uintptr { return uintptr(unsafe.Pointer(s.C())) }

// FromDevicePtr returns a tensor over memory of the caller's on a GPU, dense and row-major, whose
// contents are made by what is in the stream; it waits for nothing. The stream need not live longer
// than the call.
//
// The memory must stay, and its contents must not change, until deleter is called: once, from
// another goroutine, when the tensor and all that needs it were collected and the device has done
// with the memory. The elements of bools must be 0 or 1. With an error, which is loris.ErrDevice
// for a device that cannot be used, deleter is never called.
func FromDevicePtr(s *loris.Session, d loris.Device, ptr gcu.DevicePtr, shape loris.Shape, stream gcu.Stream, deleter func()) (*loris.Tensor, error) {
	if deleter == nil {
		return nil, fmt.Errorf("cu: from device pointer: %w: the deleter is nil", loris.ErrArg)
	}
	var adopted atomic.Bool
	buf, err := cuda.FromBlob(d, uintptr(ptr), shape, streamHandle(stream), func() {
		if adopted.Load() {
			deleter()
		}
	})
	if err != nil {
		return nil, err
	}
	t := new(executor.Tensor)
	if err := (*executor.Session)(s).Adopt(t, buf); err != nil {
		buf.Release()
		return nil, fmt.Errorf("cu: from device pointer: %w", err)
	}
	adopted.Store(true)
	return (*loris.Tensor)(t), nil
}

// DevicePtr returns where the elements of a tensor on a GPU are, dense and row-major, and makes the
// work that follows in the stream wait for them. It compiles and enqueues what the tensor needs, and
// does not wait for the device.
//
// What is enqueued in the stream until done is called may read the memory, and must not write it;
// afterwards Loris may use it for something else, behind that work. The error is loris.ErrDevice for
// a tensor that is not on a GPU. An error of the work that makes the elements is told by those who
// read the tensor, and by MarkStep.
func DevicePtr(ctx context.Context, t *loris.Tensor, stream gcu.Stream) (ptr gcu.DevicePtr, done func() error, err error) {
	buf, err := queued(ctx, t)
	if err != nil {
		return 0, nil, fmt.Errorf("cu: device pointer: %w", err)
	}
	at, done, err := cuda.DataPtr(buf, streamHandle(stream))
	return gcu.DevicePtr(at), done, err
}

// Record records an event behind the work that makes the elements of a tensor on a GPU, which it
// compiles and enqueues if need be. It does not wait for the device. Errors are those of DevicePtr.
func Record(ctx context.Context, t *loris.Tensor, e gcu.Event) error {
	buf, err := queued(ctx, t)
	if err != nil {
		return fmt.Errorf("cu: record: %w", err)
	}
	return cuda.RecordEvent(buf, *(*uintptr)(unsafe.Pointer(&e)))
}

// queued returns the buffer of a tensor whose contents are enqueued.
func queued(ctx context.Context, t *loris.Tensor) (backend.Buffer, error) {
	if t == nil || (*executor.Tensor)(t).Session() == nil {
		return nil, fmt.Errorf("%w: the tensor is nil or zero", loris.ErrArg)
	}
	bufs, err := (*executor.Session)(t.Session()).FetchQueued(ctx, (*executor.Tensor)(t))
	if err != nil {
		return nil, err
	}
	return bufs[0], nil
}
