package loris

import (
	"context"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/modelcall"
	"github.com/loris-ml/loris/ir"
)

// Model is something compiled elsewhere that Call and Session.Plug run: a
// container of package aoti, say. It is safe for concurrent use.
type Model = backend.Callable

// Call records a run of a model as one op: its outputs are lazy tensors, and its
// inputs are synced in the same step. The model runs when the outputs are needed,
// once for each Call that a sync computes; on the backend null it does not. On a GPU
// it is given tensors there, and its work is ordered with that of the step by the
// device: nobody waits. A model that runs elsewhere than its inputs are
// is a *backend.PlaceError, which is ErrDevice and says what to do.
//
// What the model returns must be known to record it. Where the model's Spec does
// not say all shapes, the model is run once, now, on zeros of the inputs' shapes;
// what it returned is remembered.
//
// Inputs that the Spec contradicts, a wrong number of them, a model that cannot
// run on zeros and one that is not comparable with ==, as pointers are, panic
// with an *OpError, as mistakes in recording do. A run that fails is the error of
// the step. No gradient flows through a model: asking for one panics. A model that
// was called is remembered until it is closed, if it has a method OnClose as
// containers and runners of package aoti have, or until ReleaseModel.
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
	return tensors(s.ex().Call(ir.OpCallModel, newTensor, []any{handles(in), id, text}, nil))
}

// deviceOf returns the device that an op on the tensors will be on.
func deviceOf(s *Session, in []*Tensor) Device {
	for _, t := range in {
		if d := t.Device(); !d.IsAny() {
			return d
		}
	}
	return s.Device()
}

// ReleaseModel lets go of a model that Call has remembered. Steps that are
// recorded with it and have not run fail; recording it again is as the first
// time. Models of package aoti need no release: closing them does the same.
func ReleaseModel(m Model) { modelcall.Forget(m) }
