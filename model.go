package loris

import (
	"context"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/modelcall"
)

// Model is a compiled model that Call and Session.Plug run, such as an aoti.Runner or a
// container.Container. It is safe for concurrent use.
type Model = backend.Callable

// Call records a run of a model as one op. Its outputs are lazy tensors, and its inputs
// are synced in the same step. The model runs once for each Call that a sync computes;
// the backend null does not run it. On a GPU the model runs on tensors there, in the order
// of the device's work, and nothing waits for it. A model on another device than its
// inputs is a *backend.PlaceError, which wraps ErrDevice and says what to do.
//
// Recording needs the shapes of the outputs. Where the model's Spec does not tell them,
// Call runs the model once on zeros of the inputs' shapes and keeps the shapes that it
// returned.
//
// Call panics with an *OpError for inputs that contradict the Spec, for a model that
// cannot run on zeros, and for one that is not comparable with ==, as pointers are. A run
// that fails is the error of the step. No gradient flows through a model: asking for one
// panics. The process keeps a model that was called until it is closed, if it has a method
// OnClose as containers and runners have, or until ReleaseModel.
func Call(m Model, in ...*Tensor) []*Tensor {
	s, err := sessionOfAll(in)
	if err != nil {
		panic(ir.NewOpError("call", err, nil, "nothing is recorded"))
	}
	if s == nil {
		s = Default()
	}
	shapes := make([]Shape, len(in))
	for i, t := range in {
		shapes[i] = t.Shape()
	}
	id, err := modelcall.Register(m)
	if err != nil {
		panic(ir.NewOpError("call", err, nil, "nothing is recorded"))
	}
	outs, err := modelcall.Outputs(context.Background(), id, shapes, deviceOf(s, in))
	if err != nil {
		e := ir.NewOpError("call", err, nil, "nothing is recorded")
		e.Shapes = shapes
		panic(e)
	}
	text := string(ir.AppendShapes(nil, outs))
	return wrapAll(s.ex().Call(aten.CallModel, newTensor, []any{handles(in), id, text}, nil))
}

// deviceOf returns the device of an op on the tensors.
func deviceOf(s *Session, in []*Tensor) Device {
	for _, t := range in {
		if d := t.Device(); !d.IsAny() {
			return d
		}
	}
	return s.Device()
}

// ReleaseModel releases a model that Call keeps. Steps that were recorded with it and have
// not run fail; it may be called again, as for the first time. Closing a container or a
// runner does the same.
func ReleaseModel(m Model) { modelcall.Forget(m) }
