//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/accelerator"
	"github.com/loris-ml/loris/internal/ir"
)

// Accelerator returns a GPU for libraries that PyTorch's AOTInductor compiled. It
// returns an error wrapping ir.ErrDevice for one that there is not.
func (b *Backend) Accelerator(index int) (accelerator.Device, error) {
	d, err := b.device(index)
	if err != nil {
		return nil, err
	}
	return aotiDevice{d}, nil
}

// aotiDevice is a device as package host knows it.
type aotiDevice struct{ d *device }

// Device returns the GPU.
func (a aotiDevice) Device() ir.Device { return a.d.id }

// Context returns the CUcontext.
func (a aotiDevice) Context() uintptr { return a.d.ctx.Handle() }

// Symbol returns a function of the driver.
func (a aotiDevice) Symbol(name string) uintptr {
	drv, err := a.d.backend.driver() // it is open
	if err != nil {
		return 0
	}
	return drv.Symbol(name)
}

// NewStream returns a stream that nobody else has.
func (a aotiDevice) NewStream() (accelerator.Stream, error) {
	if err := a.d.enterModel(); err != nil {
		return nil, err
	}
	s, err := a.d.stream()
	if err != nil {
		a.d.leaveModel()
		return nil, err
	}
	return &hostStream{d: a.d, s: s, products: map[driver.MatmulSpec]*driver.Matmul{}}, nil
}

// Upload returns new memory with a copy of the data.
func (a aotiDevice) Upload(ctx context.Context, data []byte) (accelerator.Memory, error) {
	m, err := a.d.upload(ctx, data, false)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Locate returns the memory of a buffer of the device.
func (a aotiDevice) Locate(b backend.Buffer) (accelerator.Memory, int, bool) {
	own, ok := b.(*buffer)
	if !ok || own.dev != a.d {
		return nil, 0, false
	}
	return own.mem, own.off, true
}

// Buffer returns a buffer over a part of memory of the device.
func (a aotiDevice) Buffer(s ir.Shape, m accelerator.Memory, offset int) backend.Buffer {
	return newBuffer(s, m.(*memory).retain(), offset)
}

// Address returns where the memory is on the device.
func (m *memory) Address() uintptr { return uintptr(m.ptr) }

// Retain adds a reference.
func (m *memory) Retain() { m.retain() }

// Release drops one.
func (m *memory) Release() { m.release() }

// hostStream is a stream as package host knows it. One goroutine at a time
// computes in it.
type hostStream struct {
	d        *device
	s        *driver.Stream
	products map[driver.MatmulSpec]*driver.Matmul // those that were computed before
	faults   faultLog
}

// Handle returns the CUstream.
func (h *hostStream) Handle() uintptr { return h.s.Handle() }

// Alloc returns memory for the work that follows.
func (h *hostStream) Alloc(ctx context.Context, bytes int) (accelerator.Memory, error) {
	m, err := h.d.alloc(ctx, h.s, bytes)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Begin starts a run.
func (h *hostStream) Begin() { h.faults.begin() }

// Store enqueues the writing of a number of 64 bits.
func (h *hostStream) Store(address uintptr, v uint64) error {
	for i, half := range []uint32{uint32(v), uint32(v >> 32)} {
		if err := h.s.Set(driver.DevicePtr(address)+driver.DevicePtr(4*i), half, 4, 1); err != nil {
			return h.d.check(err)
		}
	}
	return nil
}

// Await makes the work that follows wait for the contents of a memory.
func (h *hostStream) Await(m accelerator.Memory) error {
	b := m.(*memory)
	if rs := b.reported(); rs != nil {
		h.faults.inherit(rs)
	}
	return b.waitReady(h.s)
}

// Overwrite makes the work that follows wait for everything that uses a memory.
func (h *hostStream) Overwrite(m accelerator.Memory) error { return m.(*memory).waitIdle(h.s) }

// Made says that what is in the stream makes the contents.
func (h *hostStream) Made(ms ...accelerator.Memory) error {
	if err := h.faults.flush(h); err != nil {
		return err
	}
	for _, m := range ms {
		m.(*memory).setReports(h.faults.reports)
	}
	return h.note((*block).markReady, ms)
}

// Use says that what is in the stream reads the contents.
func (h *hostStream) Use(ms ...accelerator.Memory) error { return h.note((*block).use, ms) }

// note records an event behind the work that is in the stream.
func (h *hostStream) note(what func(*block, *event), ms []accelerator.Memory) error {
	now, err := h.d.record(h.s)
	if err != nil {
		return err
	}
	defer now.release()
	for _, m := range ms {
		what(m.(*memory).block, now)
	}
	return nil
}

// Wait waits for all work.
func (h *hostStream) Wait(ctx context.Context) error { return h.d.check(h.s.Wait(ctx)) }

// Close gives the stream back.
func (h *hostStream) Close() error {
	var errs []error
	for _, m := range h.products {
		errs = append(errs, m.Close())
	}
	h.products = nil
	errs = append(errs, h.faults.flush(h))
	h.d.putStream(h.s)
	h.d.leaveModel()
	if h.d.lostErr() != nil {
		return nil // every call says again that it is
	}
	return errors.Join(errs...)
}

// Product computes matrix products by cuBLASLt.
func (h *hostStream) Product(ctx context.Context, p accelerator.Product) error {
	o := &p.Out
	if o.Batch*o.Rows*o.Cols == 0 {
		return nil
	}
	spec, err := specOf(&p)
	if err != nil {
		return err
	}
	mm := h.products[spec]
	if mm == nil {
		lt, err := h.d.blas()
		if err != nil {
			return err
		}
		mm, err = lt.NewMatmul(spec)
		if errors.Is(err, driver.ErrNotSupported) {
			return fmt.Errorf("%w: %w", backend.ErrUnsupported, err)
		}
		if err != nil {
			return h.d.check(err)
		}
		h.products[spec] = mm
	}
	work, err := h.d.alloc(ctx, h.s, int(mm.Choices()[0].Workspace))
	if err != nil {
		return err
	}
	defer work.release()
	return h.d.check(mm.Run(h.s, driver.MatmulArgs{
		A: driver.DevicePtr(p.A.Address), B: driver.DevicePtr(p.B.Address), D: driver.DevicePtr(o.Address),
		Bias: driver.DevicePtr(p.Bias), Alpha: p.Alpha, Beta: p.Beta, Workspace: work.ptr,
	}))
}

// specOf describes a product to cuBLASLt. What that has no way to compute is
// backend.ErrUnsupported.
func specOf(p *accelerator.Product) (driver.MatmulSpec, error) {
	o, a, b := &p.Out, &p.A, &p.B
	refuse := func(why string) (driver.MatmulSpec, error) {
		return driver.MatmulSpec{}, fmt.Errorf("%w: a product with %s", backend.ErrUnsupported, why)
	}
	if a.Rows != o.Rows || b.Cols != o.Cols || a.Cols != b.Rows || a.Batch != o.Batch || b.Batch != o.Batch {
		return driver.MatmulSpec{}, fmt.Errorf("%w: %d×[%d,%d] @ %d×[%d,%d] into %d×[%d,%d]", ir.ErrShape,
			a.Batch, a.Rows, a.Cols, b.Batch, b.Rows, b.Cols, o.Batch, o.Rows, o.Cols)
	}
	if a.Cols == 0 || p.Alpha == 0 {
		return refuse("nothing to add up")
	}
	t, ok := dataTypes[o.DType]
	if !ok || !o.DType.IsFloat() {
		return refuse("elements of " + o.DType.String())
	}
	s := driver.MatmulSpec{M: o.Rows, N: o.Cols, K: a.Cols, Batch: o.Batch, Bias: p.Bias != 0, BiasType: t, Workspace: productWorkspace}
	for _, x := range []struct {
		to   *driver.Matrix
		from *accelerator.Operand
	}{{&s.A, a}, {&s.B, b}, {&s.D, o}} {
		if *x.to, ok = layoutOf(x.from, t); !ok {
			return refuse("a matrix that lies otherwise than in rows or columns")
		}
	}
	if s.D.Trans {
		return refuse("a result in columns")
	}
	return s, nil
}

// layoutOf describes how a matrix lies in memory.
func layoutOf(o *accelerator.Operand, t driver.DataType) (driver.Matrix, bool) {
	m := driver.Matrix{Type: t, Stride: o.BatchStride}
	const align = 16 // cuBLASLt may read as much at once
	switch {
	case o.Address%align != 0:
		return m, false
	case (o.ColumnStride == 1 || o.Cols == 1) && (o.RowStride >= o.Cols || o.Rows == 1):
		m.LD = max(o.RowStride, o.Cols)
	case (o.RowStride == 1 || o.Rows == 1) && (o.ColumnStride >= o.Rows || o.Cols == 1):
		m.Trans, m.LD = true, max(o.ColumnStride, o.Rows)
	default:
		return m, false
	}
	return m, m.LD <= math.MaxInt32
}
