// Package ref is the backend that defines what every primitive means: scalar
// loops over float64 and int64, obviously right and slow. Other backends are
// held equal to it.
//
// Elements are widened when they are read and rounded once when they are
// written; sums and products of floats accumulate in float64, whatever the
// dtype, and integers wrap. The device type is "ref", with one device.
package ref

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/check"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// DeviceType is "ref".
var DeviceType = ir.RegisterDeviceType("ref")

// Device is the one device of the backend.
var Device = ir.Device{Type: DeviceType}

var devices = hostmem.Devices{Type: DeviceType, Count: 1}

func init() { backend.Register(New()) }

// Backend is the reference backend. It has a kernel for every primitive and
// none for composites.
type Backend struct{ mem *hostmem.Allocator }

// New returns a backend with an allocator of its own.
func New() *Backend { return &Backend{mem: hostmem.NewAllocator()} }

// DeviceType returns "ref".
func (*Backend) DeviceType() ir.DeviceType { return DeviceType }

// NumDevices returns 1.
func (*Backend) NumDevices() (int, error) { return 1, nil }

// Version changes when the meaning of an op does.
func (*Backend) Version() string { return "ref-1" }

// Supports reports whether op is a primitive.
func (*Backend) Supports(op ir.Op) bool { return kernelOf(op) != nil }

// BytesInUse returns the bytes of live buffers.
func (b *Backend) BytesInUse(d ir.Device) int64 { return b.mem.BytesInUse(d) }

// Upload copies host data into a buffer.
func (b *Backend) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	buf, err := devices.Upload(b.mem, s, d, data)
	if err != nil {
		return nil, err
	}
	return buf, nil
}

// Compile checks the Program and returns a model that interprets it. An op
// without kernel gives an error wrapping backend.ErrUnsupported, an operand or
// shape that does not fit one wrapping ir.ErrShape or what the op's row says.
func (b *Backend) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := devices.Check(d); err != nil {
		return nil, err
	}
	if err := check.Program(p, has); err != nil {
		return nil, fmt.Errorf("ref: program %q: %w", p.Name, err)
	}
	return &model{p: p, mem: b.mem, limit: o.MemoryLimit}, nil
}

// model interprets one Program. It has no state between runs.
type model struct {
	p     *graph.Program
	mem   *hostmem.Allocator
	limit int64 // of the host's memory, see backend.CompileOptions
}

// Spec returns the parameters and the results, the latter named out0, out1, …
func (m *model) Spec() backend.Spec {
	var s backend.Spec
	for _, q := range m.p.Params {
		s.Inputs = append(s.Inputs, backend.Param{Name: q.Name, Shape: q.Shape})
	}
	for i, id := range m.p.Returns {
		s.Outputs = append(s.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: m.p.Shape(id)})
	}
	return s
}

// Run interprets the Program. Donated inputs are left alone, and each output is
// a buffer of its own, also where the Program returns a parameter.
func (m *model) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if len(inputs) != len(m.p.Params) {
		return nil, fmt.Errorf("ref: program %q: %w: %d inputs, want %d", m.p.Name, ir.ErrArg, len(inputs), len(m.p.Params))
	}
	data := make([][]byte, len(inputs))
	for i, in := range inputs {
		q := m.p.Params[i]
		if in.Shape() != q.Shape {
			return nil, fmt.Errorf("ref: program %q: %w: input %d (%s) is %v, want %v", m.p.Name, ir.ErrShape, i, q.Name, in.Shape(), q.Shape)
		}
		var err error
		if data[i], err = in.Bytes(ctx); err != nil {
			return nil, fmt.Errorf("ref: program %q: input %d (%s): %w", m.p.Name, i, q.Name, err)
		}
	}
	results, err := eval(ctx, m.p, data, m.limit)
	if err != nil {
		return nil, fmt.Errorf("ref: program %q: %w", m.p.Name, err)
	}
	outs := make([]backend.Buffer, len(results))
	for i, r := range results {
		b, err := m.mem.NewWithin(m.limit, m.p.Shape(m.p.Returns[i]), Device)
		if err != nil {
			for _, o := range outs[:i] {
				o.Release()
			}
			return nil, fmt.Errorf("ref: program %q: %w", m.p.Name, err)
		}
		copy(b.Data(), r)
		outs[i] = b
	}
	return outs, nil
}

// Close does nothing: the model holds no resources.
func (*model) Close() error { return nil }

// Eval runs a Program of primitives on raw little-endian inputs and returns the
// raw results, without buffers or a backend. Results may share the memory of
// inputs that the Program returns.
func Eval(p *graph.Program, inputs [][]byte) ([][]byte, error) {
	if err := check.Program(p, has); err != nil {
		return nil, fmt.Errorf("ref: program %q: %w", p.Name, err)
	}
	if len(inputs) != len(p.Params) {
		return nil, fmt.Errorf("ref: program %q: %w: %d inputs, want %d", p.Name, ir.ErrArg, len(inputs), len(p.Params))
	}
	for i, q := range p.Params {
		if len(inputs[i]) != q.Shape.Bytes() {
			return nil, fmt.Errorf("ref: program %q: %w: input %d (%s) has %d bytes, %v has %d", p.Name, ir.ErrShape, i, q.Name, len(inputs[i]), q.Shape, q.Shape.Bytes())
		}
	}
	out, err := eval(context.Background(), p, inputs, 0)
	if err != nil {
		return nil, fmt.Errorf("ref: program %q: %w", p.Name, err)
	}
	return out, nil
}
