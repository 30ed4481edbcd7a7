package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// Memory is a piece of an accelerator's memory, with a count of references. With
// the last it is freed, after the work that was said to use it.
type Memory interface {
	Address() uintptr
	Retain()
	Release()
}

// Stream is a sequence of work on an accelerator. Its methods enqueue or note;
// only Wait waits for work. It is safe for concurrent use.
type Stream interface {
	// Handle is the stream as the driver has it.
	Handle() uintptr
	// Alloc returns memory for the work that follows, with one reference.
	Alloc(ctx context.Context, bytes int) (Memory, error)
	// Await makes the work that follows wait for the contents of a memory, and
	// Overwrite for everything that reads or makes them.
	Await(m Memory) error
	Overwrite(m Memory) error
	// Made says that what is in the stream makes the contents, and Use that it
	// reads them.
	Made(ms ...Memory) error
	Use(ms ...Memory) error
	// Product computes matrix products. What it has no way to compute is an error
	// wrapping backend.ErrUnsupported.
	Product(ctx context.Context, p Product) error
	// Wait waits for all work, or until ctx is done.
	Wait(ctx context.Context) error
	// Close gives the stream back.
	Close() error
}

// Operand is a matrix, or a batch of them, in an accelerator's memory. Strides are
// in elements.
type Operand struct {
	Address                              uintptr
	DType                                ir.DType
	Batch, Rows, Cols                    int
	BatchStride, RowStride, ColumnStride int
}

// Product is Out = Alpha·A·B + Beta·Out + Bias, where Bias, if not 0, is the address
// of a vector of a value for each column.
type Product struct {
	Out, A, B   Operand
	Bias        uintptr
	Alpha, Beta float64
}

// Accelerator is a device, other than the CPU, on which libraries run that were
// compiled for its type. It is safe for concurrent use.
type Accelerator interface {
	Device() ir.Device
	// Context is the driver's context of the device, and Symbol the address of a
	// function of the driver, 0 for one that it does not have.
	Context() uintptr
	Symbol(name string) uintptr
	// NewStream returns a stream that nobody else has.
	NewStream() (Stream, error)
	// Upload returns new memory with a copy of the data.
	Upload(ctx context.Context, data []byte) (Memory, error)
	// Locate returns where a buffer of the device lies; false for any other
	// buffer. The memory is the buffer's.
	Locate(b backend.Buffer) (m Memory, offset int, ok bool)
	// Buffer returns a buffer over a part of a memory, of which it takes a
	// reference of its own.
	Buffer(s ir.Shape, m Memory, offset int) backend.Buffer
}

// Accelerators are the devices of one type.
type Accelerators interface {
	// Accelerator returns the device of an index, or an error wrapping
	// ir.ErrDevice.
	Accelerator(index int) (Accelerator, error)
}

var accelerators = struct {
	sync.RWMutex
	byType map[string]Accelerators // guarded by the mutex
}{byType: map[string]Accelerators{}}

// RegisterAccelerators makes libraries for a device type, such as "cuda", run on
// its devices. The last one registered wins.
func RegisterAccelerators(deviceType string, a Accelerators) {
	accelerators.Lock()
	defer accelerators.Unlock()
	accelerators.byType[deviceType] = a
}

// AcceleratorsOf returns the devices of a type, nil if there are none.
func AcceleratorsOf(deviceType string) Accelerators {
	accelerators.RLock()
	defer accelerators.RUnlock()
	return accelerators.byType[deviceType]
}

// AcceleratorTypes returns the types that have devices, sorted.
func AcceleratorTypes() []string {
	accelerators.RLock()
	defer accelerators.RUnlock()
	var out []string
	for t := range accelerators.byType {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// ErrPlace says that a tensor is not where the model runs; it comes with
// ir.ErrDevice.
var ErrPlace = errors.New("tensors must be on the model's device")
