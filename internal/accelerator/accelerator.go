// Package accelerator is what a backend for devices other than the CPU offers to
// compiled models: memory, streams and computations. The host of compiled models
// runs on it, and backend/cuda implements it.
package accelerator

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Memory is a piece of an accelerator's memory, with a count of references. With
// the last it is freed, after the work that was said to use it.
type Memory interface {
	Address() uintptr
	Retain()
	Release()
}

// Layout is how a tensor lies in its memory: the strides of its dimensions and how
// far from the memory's start the first element is, in elements.
type Layout struct {
	Offset  int
	Strides []int
}

// Layouts are how the operands and results of a Computation lie. The memories of
// all start at multiples of Alignment.
type Layouts struct {
	In, Out []Layout
	// InPlace names pairs of operand and result that are in the same place: the result
	// is computed over the operand if that is possible.
	InPlace []backend.Alias
}

// Alignment is what the starts of all memories of a Computation are multiples of.
const Alignment = 256

// Computation is a Program that an accelerator has compiled for some Layouts. It
// is safe for concurrent use.
type Computation interface {
	// Run enqueues it in a stream of the same accelerator, which it waits for
	// nothing in. ins and outs are the memories' addresses; operands may overlap each
	// other and the results. What goes wrong in the work itself, such as an index out
	// of range, is the error of who reads a memory that the stream has Made since it
	// began.
	Run(ctx context.Context, s Stream, ins, outs []uintptr) error
	// Close frees it, after the runs that are under way.
	Close() error
}

// Stream is a sequence of work on an accelerator. Its methods enqueue or note;
// only Wait waits for work. It is safe for concurrent use.
type Stream interface {
	// Handle is the stream as the driver has it.
	Handle() uintptr
	// Alloc returns memory for the work that follows, with one reference.
	Alloc(ctx context.Context, bytes int) (Memory, error)
	// Begin starts a run: faults of what was enqueued before are not its own.
	Begin()
	// Store enqueues the writing of a number of 64 bits.
	Store(address uintptr, v uint64) error
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

// Device is a device, other than the CPU, on which libraries run that were
// compiled for its type. It is safe for concurrent use.
type Device interface {
	Device() ir.Device
	// Context is the driver's context of the device, and Symbol the address of a
	// function of the driver, 0 for one that it does not have.
	Context() uintptr
	Symbol(name string) uintptr
	// NewStream returns a stream that nobody else has.
	NewStream() (Stream, error)
	// Compile makes a Program ready, whose operands and results lie as the layouts say.
	// What it has no way to compute is an error wrapping backend.ErrUnsupported.
	Compile(ctx context.Context, p *graph.Program, l Layouts) (Computation, error)
	// Upload returns new memory with a copy of the data.
	Upload(ctx context.Context, data []byte) (Memory, error)
	// Locate returns where a buffer of the device lies; false for any other
	// buffer. The memory is the buffer's.
	Locate(b backend.Buffer) (m Memory, offset int, ok bool)
	// Buffer returns a buffer over a part of a memory, of which it takes a
	// reference of its own.
	Buffer(s ir.Shape, m Memory, offset int) backend.Buffer
}

// Devices are the devices of one type.
type Devices interface {
	// Accelerator returns the device of an index, or an error wrapping
	// ir.ErrDevice.
	Accelerator(index int) (Device, error)
}

var accelerators = struct {
	sync.RWMutex
	byType map[string]Devices // guarded by the mutex
}{byType: map[string]Devices{}}

// Register makes libraries for a device type, such as "cuda", run on
// its devices. The last one registered wins.
func Register(deviceType string, a Devices) {
	accelerators.Lock()
	defer accelerators.Unlock()
	accelerators.byType[deviceType] = a
}

// Of returns the devices of a type, nil if there are none.
func Of(deviceType string) Devices {
	accelerators.RLock()
	defer accelerators.RUnlock()
	return accelerators.byType[deviceType]
}

// Types returns the types that have devices, sorted.
func Types() []string {
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
