package executor

import (
	"github.com/loris-ml/loris/ir"
)

// Variable is a value that lives across steps. Assign gives it a pending value, which the next
// MarkStep computes. core.mu guards its fields.
type Variable struct {
	s     *Session
	data  *Data    // the value as of the last step
	pend  *Tensor  // the value assigned since, if any
	leaf  *ir.Node // the leaf of data; made when it is first read
	until *history // if not nil, leaf is valid until this ends
	alias *history // the view that stands for pend, or stood for data while that was pending
	from  *history // the leaf of the tensor that was assigned, if that had data
	// shape never changes.
	shape ir.Shape
	kind  ir.LeafKind // of leaf: the shape, and the device of data
}

// NewVariable returns a variable that holds t's value. If t is pending, the next MarkStep or read
// computes it.
func (s *Session) NewVariable(t *Tensor) *Variable {
	if err := s.tracedMisuse("variable", "a variable is made"); err != nil {
		panic(err)
	}
	s.lockTensors("variable", t)
	defer s.core.mu.Unlock()
	v := &Variable{s: s, shape: t.shape()}
	v.assign(t)
	v.kind = ir.NewLeafKind(v.shape, v.device())
	return v
}

// Shape returns the dtype and dimensions, which never change.
func (v *Variable) Shape() ir.Shape { return v.shape }

// Session returns the session that the variable belongs to.
func (v *Variable) Session() *Session { return v.s }

// Value makes dst a handle of the present value, in session s (the variable's own or a fork). For
// gradients all handles of one value are the same, except that handles taken in the step of the
// assignment differ from later ones after that step has ended.
func (v *Variable) Value(s *Session, dst *Tensor) {
	c := v.s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.core != c {
		panic(ir.NewOpError("value", ErrSession, nil, "the variable cannot be used here"))
	}
	switch {
	case c.closed:
		panic(ir.NewOpError("value", ErrClosed, nil, "the variable cannot be used"))
	case v.data == nil && (v.pend == nil || v.pend.dead()):
		panic(ir.NewOpError("value", ErrDead, nil, "the variable was made in a Step that failed"))
	}
	dst.s, dst.step, dst.bits, dst.gen = s, s.step, s.scope, s.gen
	if s.tracing != nil {
		dst.setNode(s.tracing.value(s.b, v))
		return
	}
	if v.pend != nil && v.pend.data == nil {
		p := v.pend
		dst.s, dst.step, dst.gen = p.s, p.step, p.gen
		dst.setNode(v.pending())
		// It dies no later than the pending tensor.
		dst.bits = p.bits&bitScoped | bitUnlisted
		if p.step == p.s.step {
			dst.bits |= p.s.scope & bitScoped
		}
		return
	}
	dst.data = v.current()
	dst.setNode(v.node().Out(0))
	if s.scope&bitScoped == 0 || s != v.s {
		dst.data.escaped = true
	}
}

// node returns the leaf of the variable's data; core.mu is held. A leaf that is made in the step of
// the assignment is valid until that step ends, as a view in its place would be.
func (v *Variable) node() *ir.Node {
	if v.leaf != nil && !v.until.ended() {
		return v.leaf
	}
	if v.kind.Device() != v.data.device {
		v.kind = ir.NewLeafKind(v.shape, v.data.device)
	}
	v.leaf, v.until = v.kind.Leaf(&variableLeaf{v.data, v.alias, v.from}), nil
	if o := historyOf(v.leaf); !o.ended() {
		v.until = o
	}
	return v.leaf
}

// pending returns the view of the pending value in this step; core.mu is held.
func (v *Variable) pending() ir.Value {
	p := v.pend
	if p.step != p.s.step {
		return p.node() // whoever records with it syncs it first
	}
	if v.alias.value().IsNil() {
		v.alias = p.s.newHistory(view(p.s.b, p.node()))
	}
	return v.alias.val
}

// view records a node with the same value as v.
func view(b *ir.Builder, v ir.Value) ir.Value {
	return b.Call1(ir.OpReshape, []any{v, v.Shape().Dims()})
}

// device returns the device of the value; core.mu is held.
func (v *Variable) device() ir.Device {
	if v.pend != nil {
		return v.pend.device()
	}
	return v.data.device
}

// current returns the variable's data; core.mu is held. A pending value that has been synced since
// its assignment becomes the data.
func (v *Variable) current() *Data {
	if v.pend != nil && v.pend.data != nil {
		alias := v.alias
		v.set(v.pend.data, nil)
		v.alias = alias // the value is the same
	}
	return v.data
}

// set gives the variable a value; core.mu is held. Data that two variables hold is never donated.
func (v *Variable) set(d *Data, pend *Tensor) {
	if d != nil {
		if d.holder != nil && d.holder != v {
			d.escaped = true
		}
		d.holder = v
	}
	v.data, v.pend, v.leaf, v.until, v.alias, v.from = d, pend, nil, nil, nil, nil
}

// Assign sets the variable to t's value, which the next MarkStep computes if t is pending. Another
// shape or dtype panics with an *ir.OpError.
func (v *Variable) Assign(t *Tensor) {
	v.s.lockTensors("assign", t)
	defer v.s.core.mu.Unlock()
	if t.shape() != v.shape {
		panic(&ir.OpError{Op: "assign", Shapes: []ir.Shape{v.shape, t.shape()}, Err: ir.ErrShape,
			Line: ir.FormatLine(ir.UserPC()), Msg: "a variable keeps its shape and dtype"})
	}
	v.assign(t)
}

func (v *Variable) assign(t *Tensor) {
	for _, s := range []*Session{t.s, v.s} {
		if s.tracing != nil {
			s.tracing.assign(v, t)
			return
		}
	}
	if err := v.s.tracedMisuse("assign", "a variable of an unrelated session is assigned"); err != nil {
		return // the Call fails with the error
	}
	for _, s := range []*Session{v.s, t.s} {
		if s.scope&bitScoped != 0 && (v.data != nil || v.pend != nil) {
			s.undo = append(s.undo, assignment{v, v.data, v.pend})
			break
		}
	}
	if t.data != nil {
		// The user still has the handle t, so the data is never donated.
		t.data.escaped = true
		v.set(t.data, nil)
		v.from = v.s.newHistory(t.value())
		return
	}
	t.s.assigned = append(t.s.assigned, v)
	v.set(v.data, t)
}
