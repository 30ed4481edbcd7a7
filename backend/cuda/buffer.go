//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
)

// buffer is one tensor in a device's memory, dense and row-major. It implements
// backend.AsyncBuffer.
type buffer struct {
	shape ir.Shape
	dev   *device
	mem   *memory
	off   int // bytes
	refs  atomic.Int32
}

// newBuffer returns a buffer with one reference over a part of a memory, of which
// it takes over a reference.
func newBuffer(s ir.Shape, m *memory, off int) *buffer {
	b := &buffer{shape: s, dev: m.dev, mem: m, off: off}
	b.refs.Store(1)
	return b
}

// Shape returns the dtype and dimensions.
func (b *buffer) Shape() ir.Shape { return b.shape }

// Device returns the GPU.
func (b *buffer) Device() ir.Device { return b.dev.id }

// Retain adds a reference.
func (b *buffer) Retain() {
	if b.refs.Add(1) <= 1 {
		panic(fmt.Sprintf("cuda: a buffer of %v is retained after its release", b.shape))
	}
}

// Release drops one; with the last the memory is freed, in the order of the work
// that uses it.
func (b *buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		b.mem.release()
	case n < 0:
		panic(fmt.Sprintf("cuda: a buffer of %v is released too often", b.shape))
	}
}

// address returns where the elements are on the device.
func (b *buffer) address() driver.DevicePtr { return b.mem.ptr + driver.DevicePtr(b.off) }

// waitReady makes the work that follows in a stream wait for the contents.
func (b *buffer) waitReady(s *driver.Stream) error { return b.mem.waitReady(s) }

// Wait waits for the contents, or until ctx is done: see backend.AsyncBuffer.
func (b *buffer) Wait(ctx context.Context) error {
	if err := b.wait(ctx); err != nil {
		return fmt.Errorf("cuda: wait for %v on %v: %w", b.shape, b.dev.id, err)
	}
	return nil
}

func (b *buffer) wait(ctx context.Context) error {
	if err := b.dev.enter(); err != nil {
		return err
	}
	defer b.dev.leave()
	if err := b.mem.awaitReady(ctx, nil); err != nil {
		return err
	}
	return b.mem.fault(ctx)
}

// Bytes copies the elements to the host. It waits for them, or until ctx is
// done. A fault of the work that makes them, or of other work on the device, is
// its error.
func (b *buffer) Bytes(ctx context.Context) ([]byte, error) {
	out := make([]byte, b.shape.Bytes())
	if err := b.dev.download(ctx, out, b.mem, b.off); err != nil {
		return nil, fmt.Errorf("cuda: read %v from %v: %w", b.shape, b.dev.id, err)
	}
	return out, nil
}
