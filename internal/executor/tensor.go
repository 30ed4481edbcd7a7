package executor

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// Tensor is a lazy tensor: pending IR, or data. Handles of packages on top embed it by value, so
// that recording an op allocates one object. The session's lock guards all fields but s, which never
// changes; who writes ir, data or bits of a tensor with bitValue holds core.mu, too.
type Tensor struct {
	s    *Session
	ir   *ir.Node // pending IR; nil once there is data
	data *Data
	step uint32 // the session's step when it was recorded, modulo 2³²
	out  uint16 // which output of the node it is
	bits uint8
	gen  uint8 // the session's gen when it was recorded, modulo 2⁸
}

// node returns the pending IR, or a nil Value once there is data; the session is locked.
func (t *Tensor) node() ir.Value { return ir.Value{Node: t.ir, Index: int(t.out)} }

// setNode makes the value t's pending IR; the session is locked.
func (t *Tensor) setNode(v ir.Value) { t.ir, t.out = v.Node, uint16(v.Index) }

const (
	bitKeep      uint8 = 1 << iota // sync at the next MarkStep whatever consumes it
	bitDiscarded                   // do not sync at MarkStep
	bitScoped                      // recorded inside Step: dies with the step
	bitTraced                      // recorded while a function is traced
	bitUnlisted                    // not in the session's pending list any more
	bitOfStep                      // recorded inside Step, and outlives it if that succeeds
	bitInitial                     // the initial value of a variable, for which it is computed
	bitValue                       // a variable's value: who holds core.mu alone may look at it
)

// dead reports whether t was released, or recorded inside a Step that has ended or failed; the session is
// locked, or core.mu held.
func (t *Tensor) dead() bool {
	return t.bits&bitScoped != 0 && (t.step != t.s.step || t.gen != t.s.gen)
}

// Session returns the session that the tensor belongs to.
func (t *Tensor) Session() *Session { return t.s }

// Shape returns the dtype and dimensions; it never waits. It panics for a
// tensor that died at the end of its Step.
func (t *Tensor) Shape() ir.Shape {
	if t.s == nil {
		panic(fmt.Errorf("loris: use of a zero Tensor: make one with FromSlice, Zeros or an op"))
	}
	t.s.lock()
	defer t.s.unlock()
	if t.dead() {
		panic(ir.NewOpError("shape", t.death(), nil, "nothing is left of it"))
	}
	return t.shape()
}

func (t *Tensor) shape() ir.Shape {
	if t.data != nil {
		return t.data.shape
	}
	return t.node().Shape()
}

// Device returns the tensor's device.
func (t *Tensor) Device() ir.Device {
	t.s.lock()
	defer t.s.unlock()
	return t.device()
}

func (t *Tensor) device() ir.Device {
	d := t.s.device
	switch {
	case t.data != nil:
		d = t.data.device
	case t.ir == nil: // dead
	case !t.ir.Device().IsAny():
		d = t.ir.Device()
	}
	return d
}

// Pending reports whether the tensor is still IR.
func (t *Tensor) Pending() bool {
	t.s.lock()
	defer t.s.unlock()
	return t.data == nil
}

// Op returns the op whose result a pending tensor is, or 0 for data and numbers.
func (t *Tensor) Op() ir.Op {
	t.s.lock()
	defer t.s.unlock()
	if t.ir == nil || t.data != nil {
		return 0
	}
	return t.ir.Op()
}

// Data returns the tensor's device data, or nil while it is IR.
func (t *Tensor) Data() *Data {
	t.s.lock()
	defer t.s.unlock()
	return t.data
}

// init makes t the handle of a value just recorded; the session is locked.
func (t *Tensor) init(s *Session, v ir.Value) {
	t.s, t.step, t.bits, t.gen = s, s.step, s.scopes(), s.gen
	t.setNode(v)
	s.lasting = s.lasting || t.bits&bitScoped == 0
	s.pending = append(s.pending, t)
}

// usable panics if ops of session s cannot take t; the session is locked. A tensor that another session
// takes is never donated by its own.
func (t *Tensor) usable(s *Session, op string) {
	var err error
	switch {
	case t.s == nil:
		err = fmt.Errorf("%w: a zero Tensor", ir.ErrArg)
	case t.s.core != s.core:
		err = ErrSession
	case s.core.closed.Load():
		err = ErrClosed
	case t.dead():
		err = t.death()
	default:
		if t.s != s {
			s.escape(t)
		}
		return
	}
	panic(ir.NewOpError(op, err, nil, "the operand cannot be used"))
}

// stale reports whether t is IR of an earlier step; the session is locked.
func (t *Tensor) stale() bool { return t.data == nil && t.step != t.s.step }

// unconsumed reports whether MarkStep syncs t, which is IR, for itself: it is marked Keep, or no op
// consumes it, and it is not the initial value of a variable, for which it is synced; the session is locked.
func (t *Tensor) unconsumed() bool {
	return t.bits&bitKeep != 0 || t.bits&bitInitial == 0 && t.ir.Used>>min(t.out, 31)&1 == 0
}

// value returns the value of t in the graph; the session is locked and t is not stale. A tensor that was
// synced without SyncData has both IR and data; ops take its IR until the step ends. A handle of a
// variable's value has both too, and its IR is the variable's leaf.
func (t *Tensor) value() ir.Value {
	if t.data == nil {
		return t.node()
	}
	if t.ir != nil && !t.ir.IsLeaf() && t.step == t.s.step {
		return t.node()
	}
	if t.bits&bitScoped == 0 {
		t.data.escape()
	}
	if t.ir != nil && t.ir.IsLeaf() {
		return t.node()
	}
	return ir.Value{Node: t.data.node(t.s)}
}

// escape keeps the data that t, of the same group, is or depends on from being donated; the session is
// locked.
func (s *Session) escape(t *Tensor) {
	if t.data != nil {
		t.data.escape()
		return
	}
	if (t.bits|t.s.scopes())&bitScoped == 0 {
		return // it depends on nothing that can be donated
	}
	for _, n := range s.walker.Walk([]ir.Value{t.node()}).Nodes {
		if d := dataOf(n.Leaf()); d != nil {
			d.escape()
		}
	}
	s.walker.Release()
}
