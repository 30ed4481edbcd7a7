package executor

import (
	"context"

	"github.com/loris-ml/loris/internal/ir"
)

// Unary records an op of one operand and no attributes into dst. Mistakes panic
// with an *ir.OpError.
func (s *Session) Unary(op ir.Op, dst, x *Tensor) {
	c := s.core
	c.mu.Lock()
	if x == nil || x.s != s || x.stale() || x.dead() || c.closed {
		c.mu.Unlock()
		s.recordSlow(op, dst, x)
		return
	}
	defer c.mu.Unlock()
	dst.init(s, s.b.Unary(op, x.value()))
	s.trimCheck()
}

// Binary records an op of two operands and no attributes into dst.
func (s *Session) Binary(op ir.Op, dst, x, y *Tensor) {
	c := s.core
	c.mu.Lock()
	if x == nil || y == nil || x.s != s || y.s != s || x.stale() || y.stale() || x.dead() || y.dead() || c.closed {
		c.mu.Unlock()
		s.recordSlow(op, dst, x, y)
		return
	}
	defer c.mu.Unlock()
	dst.init(s, s.b.Binary(op, x.value(), y.value()))
	s.trimCheck()
}

// recordSlow checks the operands one by one, syncs those of an earlier step and records the op.
func (s *Session) recordSlow(op ir.Op, dst *Tensor, in ...*Tensor) {
	s.lockTensors(op.String(), in...)
	defer s.core.mu.Unlock()
	vals := make([]ir.Value, len(in))
	for i, t := range in {
		vals[i] = t.value()
	}
	dst.init(s, s.b.Emit(op, "", vals...)[0])
	s.trimCheck()
}

// lockTensors checks operands, syncs those that are IR of an earlier step, and returns with core.mu
// held. IR never crosses a step. A mistake panics with an *ir.OpError, and the lock is not held.
func (s *Session) lockTensors(op string, ts ...*Tensor) {
	c := s.core
	synced := 0
	for {
		c.mu.Lock()
		t := s.unready(op, ts)
		if t == nil || synced == len(ts) { // the latter if a hook refuses to sync a tensor
			return
		}
		line := t.ir.Line()
		c.mu.Unlock()
		synced++
		c.stats.carried(line)
		if _, err := t.s.SyncTensors(context.Background(), []*Tensor{t}, stepConfig); err != nil {
			panic(ir.NewOpError("sync", err, nil, "a tensor of an earlier step could not be synced"))
		}
	}
}

// unready returns the first operand that is IR of an earlier step, or nil. The caller holds
// core.mu. If an operand cannot be used, unready unlocks it and panics.
func (s *Session) unready(op string, ts []*Tensor) (stale *Tensor) {
	ok := false
	defer func() {
		if !ok {
			s.core.mu.Unlock()
		}
	}()
	if s.core.closed {
		panic(ir.NewOpError(op, ErrClosed, nil, "cannot record"))
	}
	for i, t := range ts {
		if t == nil {
			panic(ir.NewOpError(op, ir.ErrArg, nil, "tensor argument %d is nil", i))
		}
		t.usable(s, op)
		if stale == nil && t.stale() {
			stale = t
		}
	}
	ok = true
	return stale
}

// Call records an op with arguments by position and by ATen's name, as
// ir.Builder.Call, where tensors are *Tensor or []*Tensor. newTensor makes the
// handle of each output. Mistakes panic with an *ir.OpError.
func (s *Session) Call(op ir.Op, newTensor func() *Tensor, pos []any, named []ir.Named) []*Tensor {
	s.lockArgs(op, pos, named)
	defer s.core.mu.Unlock()
	return s.handles(newTensor, s.b.Call(op, pos, named...))
}

// Call1 is Call for an op with one output, whose handle is dst.
func (s *Session) Call1(op ir.Op, dst *Tensor, pos []any, named []ir.Named) {
	s.lockArgs(op, pos, named)
	defer s.core.mu.Unlock()
	dst.init(s, s.b.Call1(op, pos, named...))
	s.trimCheck()
}

// CallOn is Call1 for an op whose operands may have no device. The op is then placed on d, or, if d
// is the zero Device, where its result is used.
func (s *Session) CallOn(d ir.Device, op ir.Op, dst *Tensor, pos []any) {
	s.lockArgs(op, pos, nil)
	defer s.core.mu.Unlock()
	defer s.place(d)()
	dst.init(s, s.b.Call1(op, pos))
	s.trimCheck()
}

// place makes d the device of nodes without one, until the returned function is called; core.mu is
// held.
func (s *Session) place(d ir.Device) func() {
	s.b.DefaultDevice = d
	return func() { s.b.DefaultDevice = ir.Device{} }
}

// handles makes the handles of values just recorded; core.mu is held.
func (s *Session) handles(newTensor func() *Tensor, outs []ir.Value) []*Tensor {
	if len(outs) > ir.MaxOutputs {
		panic(ir.NewOpError("record", ir.ErrShape, nil, "%d results, at most %d are supported", len(outs), ir.MaxOutputs))
	}
	ts := make([]*Tensor, len(outs))
	for i, v := range outs {
		ts[i] = newTensor()
		ts[i].init(s, v)
	}
	s.trimCheck()
	return ts
}

// lockArgs is lockTensors for the arguments of Call. It checks all under one taking of the lock,
// which succeeds unless a tensor is of another session, dead, or IR of an earlier step.
func (s *Session) lockArgs(op ir.Op, pos []any, named []ir.Named) {
	s.core.mu.Lock()
	ok := !s.core.closed
	for _, v := range pos {
		ok = ok && s.current(v)
	}
	for i := range named {
		ok = ok && s.current(named[i].Value)
	}
	if !ok {
		s.core.mu.Unlock()
		s.lockTensors(op.String(), tensorsOf(pos, named)...)
	}
}

// current reports whether an argument can be used as it is; core.mu is held.
func (s *Session) current(v any) bool {
	switch v := v.(type) {
	case *Tensor:
		return v == nil || (v.s == s && !v.stale() && !v.dead())
	case []*Tensor:
		for _, t := range v {
			if t == nil || !s.current(t) {
				return false
			}
		}
	}
	return true
}

// tensorsOf returns the tensors among arguments, leaving out optional ones that are nil.
func tensorsOf(pos []any, named []ir.Named) []*Tensor {
	var ts []*Tensor
	collect := func(v any) {
		switch v := v.(type) {
		case *Tensor:
			if v != nil {
				ts = append(ts, v)
			}
		case []*Tensor:
			ts = append(ts, v...)
		}
	}
	for _, v := range pos {
		collect(v)
	}
	for _, n := range named {
		collect(n.Value)
	}
	return ts
}

// operands is ir.Builder.Operands for *Tensor and []*Tensor; core.mu is held.
func operands(dst []ir.Value, v any) ([]ir.Value, bool) {
	switch v := v.(type) {
	case *Tensor:
		if v == nil {
			return dst, true
		}
		return append(dst, v.value()), true
	case []*Tensor:
		for _, t := range v {
			dst = append(dst, t.value())
		}
		return dst, true
	}
	return dst, false
}

// Scalar makes dst the handle of a number as a rank-0 tensor of the dtype: a
// parameter of the graphs that use it, so changing it never recompiles. A mistake is one of op.
func (s *Session) Scalar(op string, dst *Tensor, v any, d ir.DType) {
	leaf, ok := ir.ScalarValue(v)
	if !ok {
		panic(ir.NewOpError(op, ir.ErrArg, nil, "%v (%T) is not a number", v, v))
	}
	number := leaf.Node.Leaf().(*ir.ScalarLeaf)
	if err := number.RangeError(op, d); err != nil {
		panic(err)
	}
	s.lockTensors(op)
	defer s.core.mu.Unlock()
	n := ir.NewScalar(number, d, ir.Device{}, false)
	dst.init(s, n.Out(0))
	n.Used = 1 // a bare number is not a result of the step
}

// BinaryNumber records an op of a tensor and a plain Go number, which takes part
// in type promotion last; reverse puts the number first. The number is a
// parameter of the graph and not part of its hash.
func (s *Session) BinaryNumber(op ir.Op, dst, x *Tensor, v any, reverse bool) {
	c := s.core
	c.mu.Lock()
	if c.closed || x == nil || !s.current(x) {
		c.mu.Unlock()
		s.lockTensors(op.String(), x)
	}
	defer c.mu.Unlock()
	out, ok := s.b.BinaryNumber(op, x.value(), v, reverse)
	if !ok {
		panic(ir.NewOpError(op.String(), ir.ErrArg, []ir.Value{x.value()}, "operand %v (%T) is not a number or a *Tensor", v, v))
	}
	dst.init(s, out)
	s.trimCheck()
}
