// Package backend holds the small interfaces between the executor and the code
// that computes, and the registry of backends.
package backend

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Buffer is one tensor's storage on a device, dense and row-major. It is
// reference-counted; a new one has one reference.
type Buffer interface {
	// Shape returns the dtype and dimensions.
	Shape() ir.Shape
	// Device returns where the data is.
	Device() ir.Device
	// Bytes returns the elements, little endian. A device buffer copies them to
	// the host, which may block until ctx is done; a host buffer returns its
	// memory, which the caller changes, if ever, only while nothing else uses the buffer.
	Bytes(ctx context.Context) ([]byte, error)
	// Retain adds a reference.
	Retain()
	// Release drops one; the storage goes back to its pool with the last.
	Release()
}

// Contents returns a buffer's elements as its Bytes does, for a caller who only reads them. A host
// buffer whose Bytes has been called may be written by whoever did, so nothing that was computed of its
// contents is kept; this call leaves that as it is.
func Contents(ctx context.Context, b Buffer) ([]byte, error) {
	if r, ok := b.(interface {
		Contents(ctx context.Context) ([]byte, error)
	}); ok {
		return r.Contents(ctx)
	}
	return b.Bytes(ctx)
}

// AsyncBuffer is a Buffer whose contents a device may make later.
type AsyncBuffer interface {
	Buffer
	// Wait waits until the contents are there, or until ctx is done, without
	// copying them. A fault of the work that makes them is its error, as it is that
	// of Bytes.
	Wait(ctx context.Context) error
}

// Spec describes a model: what it takes and what it returns.
type Spec struct {
	Inputs  []Param
	Outputs []Param
}

// Param is one named input or output.
type Param struct {
	Name  string
	Shape ir.Shape
}

// Model is one instance of something that runs: a compiled Program, or a model
// that another system compiled. One Run at a time; a Container pools instances.
type Model interface {
	// Spec returns the inputs and outputs.
	Spec() Spec
	// Run computes the outputs. Inputs stay the caller's; the outputs are new
	// references. donated[i] says that input i may be overwritten or returned as
	// an output; nil donates nothing. A panic inside is returned as an error.
	Run(ctx context.Context, inputs []Buffer, donated []bool) ([]Buffer, error)
	// Close frees the instance. Calling it again does nothing.
	Close() error
}

// Sizer is a Model that tells what it keeps between runs, which counts against the bound of the
// cache that keeps the model.
type Sizer interface {
	Model
	// HeldBytes returns the bytes of code, constants, packed weights, the plan and the Program. What
	// several models share counts in each.
	HeldBytes() int64
}

// PromptBackend is a Backend whose models begin a Run when it is called, as far as processors are free.
type PromptBackend interface {
	Backend
	// Idle reports whether one is free, so that a Run would wait for nothing.
	Idle() bool
}

// Alias says that an output may take the storage of a donated input.
type Alias struct{ Input, Output int }

// CompileOptions are the executor's wishes for one compilation.
type CompileOptions struct {
	// Aliases are the donated inputs and the outputs that replace them.
	Aliases []Alias
	// Threads bounds the processors of the host that a Run of the model uses; 0
	// does not.
	Threads int
	// Deterministic asks for a model whose results are the same bits in each Run
	// on this machine, whatever the Threads, the processors there are and the load.
	Deterministic bool
	// FlushDenormals allows to take subnormal numbers as zero.
	FlushDenormals bool
	// MemoryLimit bounds the bytes of the host's memory that tensors of the process
	// hold when a Run asks for more; 0 stands for the default. It is of no interest to
	// a MemoryBackend. Beyond it a Run is an *ir.OutOfMemory.
	MemoryLimit int64
	// Progress, if set, is told now and then how many of the parts that take the time of Compile are
	// done, and of how many: kernels that are compiled or instructions that are lowered. Several
	// goroutines may call it at once.
	Progress func(done, total int)
}

// Backend computes Programs on the devices of one type. All methods are safe
// for concurrent use.
type Backend interface {
	// DeviceType returns the type of its devices.
	DeviceType() ir.DeviceType
	// NumDevices returns how many there are, or why they cannot be used.
	NumDevices() (int, error)
	// Version changes when compiled artefacts of before must not be used.
	Version() string
	// Supports reports whether the backend has a kernel for an op; composites
	// that it does not have are decomposed before Compile.
	Supports(op ir.Op) bool
	// Compile builds a model from a Program whose ops it all supports.
	Compile(ctx context.Context, p *graph.Program, d ir.Device, o CompileOptions) (Model, error)
	// Upload makes a buffer from host data, which is copied.
	Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (Buffer, error)
	// BytesInUse returns the bytes of live buffers on a device.
	BytesInUse(d ir.Device) int64
}

// ArtifactBackend is a Backend that can keep what Compile made of a Program from
// one process to the next: machine code, for instance.
type ArtifactBackend interface {
	Backend
	// ArtifactID names all that artefacts for a device depend on besides the
	// Program and the options: the version of the compiler and what the machine
	// can do. It is empty where there is nothing to keep.
	ArtifactID(d ir.Device) string
	// CompileArtifact is Compile that makes use of an artefact of an earlier
	// compilation under the same ArtifactID, nil if there is none. fresh is the
	// artefact to keep for the next time, nil if the given one served or there is
	// nothing worth keeping. One that is of no use is no error: the Program is
	// compiled anew.
	CompileArtifact(ctx context.Context, p *graph.Program, d ir.Device, o CompileOptions, artifact []byte) (m Model, fresh []byte, err error)
}

// ErrUnsupported says that a backend cannot compile an op.
var ErrUnsupported = errors.New("not supported by the backend")

var registry = struct {
	sync.RWMutex
	byType map[ir.DeviceType]Backend
	absent map[ir.DeviceType]error
}{byType: map[ir.DeviceType]Backend{}, absent: map[ir.DeviceType]error{}}

// Register makes a backend available for its device type; the last one wins.
func Register(b Backend) {
	registry.Lock()
	defer registry.Unlock()
	registry.byType[b.DeviceType()] = b
}

// RegisterAbsent says why this program has no backend for a device type, for
// errors about its devices.
func RegisterAbsent(t ir.DeviceType, why error) {
	registry.Lock()
	defer registry.Unlock()
	registry.absent[t] = why
}

// Absent returns what RegisterAbsent said of a device type, by its name; nil if
// nothing.
func Absent(deviceType string) error {
	registry.RLock()
	defer registry.RUnlock()
	for t, why := range registry.absent {
		if t.String() == deviceType {
			return why
		}
	}
	return nil
}

// For returns the backend that serves a device, or an error wrapping
// ir.ErrDevice that says which devices there are.
func For(d ir.Device) (Backend, error) {
	registry.RLock()
	b, why := registry.byType[d.Type], registry.absent[d.Type]
	registry.RUnlock()
	if b == nil && why != nil {
		return nil, fmt.Errorf("%w: no backend is registered for %v: %w", ir.ErrDevice, d, why)
	}
	if b == nil {
		return nil, fmt.Errorf("%w: no backend is registered for %v", ir.ErrDevice, d)
	}
	n, err := b.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ir.ErrDevice, d, err)
	}
	if int(d.Index) >= n {
		return nil, fmt.Errorf("%w: %v: there are %d %v devices", ir.ErrDevice, d, n, d.Type)
	}
	return b, nil
}

// All returns the registered backends, ordered by device type.
func All() []Backend {
	registry.RLock()
	defer registry.RUnlock()
	out := make([]Backend, 0, len(registry.byType))
	for _, b := range registry.byType {
		out = append(out, b)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].DeviceType() < out[j].DeviceType() })
	return out
}
