// Package null is a backend that computes nothing: a model returns buffers of
// zeros of the right shapes, always the same ones. What a program costs on it
// is what tracing, hashing, caching and scheduling cost.
//
// The device type is "null", with several devices, so that the locking of more
// than one can be tried.
package null

import (
	"context"
	"fmt"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// Devices is the number of null devices.
const Devices = 4

// DeviceType is "null".
var DeviceType = ir.RegisterDeviceType("null")

var devices = hostmem.Devices{Type: DeviceType, Count: Devices}

func init() { backend.Register(New()) }

// Backend is the null backend.
type Backend struct{ mem *hostmem.Allocator }

// New returns a backend with an allocator of its own.
func New() *Backend { return &Backend{mem: hostmem.NewAllocator()} }

// DeviceType returns "null".
func (*Backend) DeviceType() ir.DeviceType { return DeviceType }

// NumDevices returns Devices.
func (*Backend) NumDevices() (int, error) { return Devices, nil }

// Version never changes.
func (*Backend) Version() string { return "null-1" }

// Supports reports true: an op that is not run needs no decomposition.
func (*Backend) Supports(ir.Op) bool { return true }

// BytesInUse returns the bytes of live buffers, those that models keep included.
func (b *Backend) BytesInUse(d ir.Device) int64 { return b.mem.BytesInUse(d) }

// Upload copies host data into a buffer.
func (b *Backend) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	buf, err := devices.Upload(b.mem, s, d, data)
	if err != nil {
		return nil, err
	}
	return buf, nil
}

// Compile returns a model with the inputs and outputs of the Program.
func (b *Backend) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := devices.Check(d); err != nil {
		return nil, err
	}
	m := &model{name: p.Name}
	for _, q := range p.Params {
		m.spec.Inputs = append(m.spec.Inputs, backend.Param{Name: q.Name, Shape: q.Shape})
	}
	for i, id := range p.Returns {
		s := p.Shape(id)
		m.spec.Outputs = append(m.spec.Outputs, backend.Param{Name: fmt.Sprintf("out%d", i), Shape: s})
		z, err := b.mem.NewZeroed(s, d)
		if err != nil {
			_ = m.Close() // releases those before
			return nil, fmt.Errorf("null: program %q: %w", p.Name, err)
		}
		m.zeros = append(m.zeros, z)
	}
	return m, nil
}

// model returns its zeros.
type model struct {
	name  string
	spec  backend.Spec
	zeros []*hostmem.Buffer // one reference is the model's, until it is closed
	close sync.Once
}

// Spec returns the parameters and the results, the latter named out0, out1, …
func (m *model) Spec() backend.Spec { return m.spec }

// Run returns new references to the buffers of zeros. Of the inputs only the
// number is looked at.
func (m *model) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(inputs) != len(m.spec.Inputs) {
		return nil, fmt.Errorf("null: program %q: %w: %d inputs, want %d", m.name, ir.ErrArg, len(inputs), len(m.spec.Inputs))
	}
	outs := make([]backend.Buffer, len(m.zeros))
	for i, z := range m.zeros {
		z.Retain()
		outs[i] = z
	}
	return outs, nil
}

// Close drops the model's references to its buffers.
func (m *model) Close() error {
	m.close.Do(func() {
		for _, z := range m.zeros {
			z.Release()
		}
	})
	return nil
}
