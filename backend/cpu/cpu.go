// Package cpu is the default backend. It compiles fused loops to machine code, runs all other ops
// by kernels in Go and assembly, and spreads the work over the processors. The device type is
// "cpu", with one device.
//
// Compile turns a Program into a sequence of steps over buffers (package backend/internal/plan):
//
//   - Views (reshape, permute, expand, slice, flip) move nothing: a value is a buffer and strides
//     of it. It is copied only for a kernel that needs its elements in order.
//   - Pointwise ops with equal output dimensions form a group, with the reductions of those
//     dimensions and the ops on their results: a softmax or a layer norm and the ops around it are
//     one group. A group is one kernel of a few passes (package loop). Its machine code is kept by
//     the kernel's structure, so that other sizes compile nothing. A group with an op that has no
//     machine code runs in Go, block by block.
//   - The kernels of the operands of cat and pad write into the result.
//   - Buffers whose lifetimes do not overlap share one workspace, a step may write over an operand
//     that it is the last to use, and outputs have their own memory from the start.
//
// A step is a range of independent units and a function that computes some of them. Neither the
// units nor the order of a sum depend on the number of processors, nor on what else is in a
// kernel: results are the same bits for every thread count, and alone or fused. Some things are
// not:
//
//   - the sign of a NaN, alone and fused;
//   - the last places of a product, convolution or attention, alone and fused: its step may end
//     with the ops that follow it (epilogue.go), and it sums in another order where an operand has
//     other strides;
//   - the queries before an infinity or NaN among the values of causal attention, on different
//     numbers of processors: those of its unit get a NaN. With
//     backend.CompileOptions.Deterministic units are always the same;
//   - subnormal numbers with backend.CompileOptions.FlushDenormals: machine code of groups takes
//     them as zero, all other steps keep them.
//
// A run holds a permit while it computes, one of as many as GOMAXPROCS. Its workers take free
// permits, up to CompileOptions.Threads in all. Runs that find none free wait in order for the
// permits that workers and steps release, so that no more units are computed at a time than there
// are processors, however many models run at once.
package cpu

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/nest"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/native"
	"github.com/loris-ml/loris/internal/parallel"
)

// DeviceType is "cpu".
var DeviceType = ir.RegisterDeviceType("cpu")

// Device is the one device of the backend.
var Device = ir.Device{Type: DeviceType}

var devices = hostmem.Devices{Type: DeviceType, Count: 1}

func init() { backend.Register(New()) }

// Backend computes Programs on the host. It has kernels for all primitives.
type Backend struct {
	mem      *hostmem.Allocator
	tune     tuning
	engine   *engine // nil in a portable backend
	observer atomic.Pointer[func(Step)]
}

// tuning is how work is cut into pieces. Results do not depend on it but for
// cut, which orders sums.
type tuning struct {
	block int // most elements in a block of pointwise ops
	unit  int // elements of a copy or a created tensor that are one unit of work
	piece int // elements in a call of a kernel, about
	// together is how many short rows of a kernel are taken together at least, and half of how many elements
	// that lie apart.
	together int
	cut      nest.Cut
	nanos    float64 // the work that is worth another goroutine
}

// New returns a backend with an allocator of its own. It compiles kernels to
// machine code where the platform has a compiler for it.
func New() *Backend {
	b := NewPortable()
	if levels := native.Available(); len(levels) > 0 {
		b.engine = engineFor(levels[0])
	}
	return b
}

// NewPortable returns a backend that computes by loops written in Go alone, as
// New does where there is no compiler of kernels. Sums are taken in another
// order and elementary functions by other polynomials than in machine code, so
// results of the two may differ in the last places.
func NewPortable() *Backend {
	return &Backend{mem: hostmem.NewAllocator(), tune: tuning{block: 4096, unit: 4096, piece: nest.Piece, together: 32, cut: nest.Cuts(), nanos: 30_000}}
}

// DeviceType returns "cpu".
func (*Backend) DeviceType() ir.DeviceType { return DeviceType }

// NumDevices returns 1.
func (*Backend) NumDevices() (int, error) { return 1, nil }

// Version changes when the results of kernels do.
func (*Backend) Version() string { return "cpu-21" }

// Supports reports whether op is a primitive, or a composite with a kernel of
// its own.
func (*Backend) Supports(op ir.Op) bool {
	sp := op.Spec()
	return composites[op] || sp != nil && !sp.Composite() && (sp.Category == ir.Pointwise || sp.Category == ir.Collective || plan.IsView(op) || lowerings[op] != nil)
}

// BytesInUse returns the bytes of live buffers; the workspace of a Run counts
// while it lasts.
func (b *Backend) BytesInUse(d ir.Device) int64 { return b.mem.BytesInUse(d) }

// Idle reports whether a Run would begin at once.
func (*Backend) Idle() bool { return parallel.Idle() }

// Upload copies host data into a buffer. It returns an error wrapping
// ir.ErrShape if data does not have the size of the shape, and one wrapping
// ir.ErrDevice for another device.
func (b *Backend) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	buf, err := devices.Upload(b.mem, s, d, data)
	if err != nil {
		return nil, err
	}
	if s.DType() == ir.Bool {
		// Kernels rely on a bool being 0 or 1.
		kernels.NonZero(buf.Data(), buf.Data())
	}
	return buf, nil
}

// UploadNumber is Upload of one element that is only read.
func (b *Backend) UploadNumber(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	if b.mem.Guarded() || s.DType() == ir.Bool {
		return b.Upload(ctx, s, d, data)
	}
	if err := devices.Check(d); err != nil {
		return nil, err
	}
	return hostmem.Number(s, d, data)
}

// UploadFrom is Upload of what fill writes to the buffer.
func (b *Backend) UploadFrom(ctx context.Context, s ir.Shape, d ir.Device, fill func(data []byte) error) (backend.Buffer, error) {
	if err := devices.Check(d); err != nil {
		return nil, err
	}
	buf, err := b.mem.New(s, d)
	if err != nil {
		return nil, fmt.Errorf("cpu: upload: %w", err)
	}
	if err := fill(buf.Data()); err != nil {
		buf.Release()
		return nil, err
	}
	if s.DType() == ir.Bool {
		kernels.NonZero(buf.Data(), buf.Data())
	}
	return buf, nil
}

// Compile plans the kernels and the memory of a Program. An op without kernel
// gives an error wrapping backend.ErrUnsupported.
func (b *Backend) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	return b.compile(ctx, p, d, o, b.engine.journal(o.Threads))
}

func (b *Backend) compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions, j *journal) (backend.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := devices.Check(d); err != nil {
		return nil, err
	}
	m, err := compileNoting(ctx, b, p, o, j)
	if err != nil {
		return nil, fmt.Errorf("cpu: program %q: %w", p.Name, err)
	}
	return m, nil
}
