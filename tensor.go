package loris

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Tensor is a lazy tensor: a result of the graph being recorded, or data that is computed
// or being computed. Its elements never change. The zero Tensor cannot be used.
type Tensor executor.Tensor

// ex returns the executor's form of t: the same object, so that recording an op allocates one.
func (t *Tensor) ex() *executor.Tensor { return (*executor.Tensor)(t) }

// newTensor makes the handle of an output.
func newTensor() *executor.Tensor { return new(executor.Tensor) }

func handles(ts []*Tensor) []*executor.Tensor {
	out := make([]*executor.Tensor, len(ts))
	for i, t := range ts {
		out[i] = t.ex()
	}
	return out
}

func wrapAll(ts []*executor.Tensor) []*Tensor {
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		out[i] = (*Tensor)(t)
	}
	return out
}

// session returns the session of a tensor that op uses, or panics.
func (t *Tensor) session(op string) *executor.Session {
	if t != nil {
		if s := t.ex().Session(); s != nil {
			return s
		}
	}
	panic(ir.NewOpError(op, ErrArg, nil, "a tensor is nil or zero: make one with FromSlice, Zeros or an op"))
}

// sessionOfAll returns the session of the first tensor; nil if there is none.
func sessionOfAll(ts []*Tensor) (*Session, error) {
	for i, t := range ts {
		if t == nil || t.ex().Session() == nil {
			return nil, fmt.Errorf("loris: %w: tensor %d is nil or zero", ErrArg, i)
		}
	}
	if len(ts) == 0 {
		return nil, nil
	}
	return ts[0].Session(), nil
}

// Session returns the session that the tensor belongs to.
func (t *Tensor) Session() *Session { return (*Session)(t.session("session")) }

// Shape returns the dtype and dimensions; it never waits.
func (t *Tensor) Shape() Shape {
	t.session("shape")
	return t.ex().Shape()
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.Shape().DType() }

// Dims returns a fresh slice of the dimensions.
func (t *Tensor) Dims() []int { return t.Shape().Dims() }

// Dim returns dimension i; a negative i counts from the last.
func (t *Tensor) Dim(i int) int { return t.Shape().Dim(i) }

// Rank returns the number of dimensions.
func (t *Tensor) Rank() int { return t.Shape().Rank() }

// Numel returns the number of elements.
func (t *Tensor) Numel() int { return t.Shape().Numel() }

// Device returns where the tensor is or will be.
func (t *Tensor) Device() Device {
	t.session("device")
	return t.ex().Device()
}

// Pending reports whether the tensor is recorded and neither computed nor scheduled.
func (t *Tensor) Pending() bool {
	t.session("pending")
	return t.ex().Pending()
}

// Ready reports whether the elements are computed, so that reading does not wait.
func (t *Tensor) Ready() bool {
	t.session("ready")
	d := t.ex().Data()
	return d != nil && d.Ready()
}

// Wait syncs the tensor if it is pending and blocks until its elements are computed. It
// returns the error of that computation.
func (t *Tensor) Wait(ctx context.Context) error {
	if err := ir.CheckContext("wait", ctx); err != nil {
		return err
	}
	return t.session("wait").With(ctx, func([]backend.Buffer) error { return nil }, t.ex())
}

// Sync computes the tensor if it is pending and returns once the work is
// scheduled.
func (t *Tensor) Sync(ctx context.Context) error { return Sync(ctx, t) }

// Keep marks the tensor to be computed at the next MarkStep even if a recorded op uses
// it, and to outlive a Step. It returns t.
func (t *Tensor) Keep() *Tensor {
	Keep(t)
	return t
}

// Discard marks the tensor not to be computed at MarkStep; it is computed when it is
// used. It returns t.
func (t *Tensor) Discard() *Tensor {
	Discard(t)
	return t
}

// Release says that the tensor is not needed any more: it is dead from now on, as after its Step, and a use
// of it fails with ErrReleased. The memory of its elements is used again for the next result instead of when
// the garbage collector finds it dropped, which is worth it for results of about a megabyte and more in a
// loop. What was read of it stays valid, and so does what was recorded with it. Release does nothing to a
// tensor that is dead, or that a variable is waiting for, or while a function is traced.
func (t *Tensor) Release() { t.session("release").Release(t.ex()) }

// To returns a copy of the tensor on another device of its session, or t if it is on that
// device. It syncs a pending tensor and copies in the background. No gradient flows
// through it.
func (t *Tensor) To(ctx context.Context, d Device) (*Tensor, error) {
	if err := ir.CheckContext("to", ctx); err != nil {
		return nil, err
	}
	s := t.session("to")
	if t.Device() == d {
		return t, nil
	}
	out := new(executor.Tensor)
	if err := s.Copy(ctx, out, t.ex(), d); err != nil {
		return nil, err
	}
	return (*Tensor)(out), nil
}
