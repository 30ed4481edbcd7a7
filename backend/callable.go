package backend

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// Callable is a model as programs call it: a container, or whatever else runs on
// tensors. They are in host memory or, in a program on a MemoryBackend, on the
// program's device, where the outputs must be, too. Both methods are safe for
// concurrent use. Inputs are the caller's and valid during Call only; what a device
// does with them later it orders by itself.
type Callable interface {
	// Spec returns the inputs and outputs. A parameter whose shape has no dtype
	// may have any.
	Spec() Spec
	// Call computes the outputs, as Model.Run.
	Call(ctx context.Context, inputs []Buffer, donated []bool) ([]Buffer, error)
}

// AsyncCallable is a Callable whose work a device does later.
type AsyncCallable interface {
	Callable
	// StartCall is Call that does not wait for the work. The outputs are ready in
	// the order of the device's work. wait, nil if nothing can be under way, waits
	// for the work and returns its error; it need not be called.
	StartCall(ctx context.Context, inputs []Buffer, donated []bool) (outs []Buffer, wait func(context.Context) error, err error)
}

// PlacedModel is a Model or Callable that says where it runs.
type PlacedModel interface {
	// Place returns the device; the zero Device if it does not matter.
	Place() ir.Device
}

// PlaceError says that a model is called with tensors, or returned one, that are
// not where the other side runs.
type PlaceError struct {
	Model   ir.Device // where the model runs
	Tensors ir.Device // where the tensors are, or must be
}

// Error says what to do.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("%v: the model runs on %v, the tensors are on %v: load the model for %v, or move its inputs to %v before the call and its outputs back",
		ir.ErrDevice, e.Model, e.Tensors, e.Tensors, e.Model)
}

// Unwrap returns ir.ErrDevice.
func (e *PlaceError) Unwrap() error { return ir.ErrDevice }
