package executor

import (
	"context"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// Unary records an op of one operand and no attributes into dst. Mistakes panic
// with an *ir.OpError.
func (s *Session) Unary(op ir.Op, dst, x *Tensor) {
	s.lock()
	if x == nil || x.s != s || x.stale() || x.dead() || s.core.closed.Load() {
		s.unlock()
		s.recordSlow(op, dst, x)
		return
	}
	defer s.unlock()
	dst.init(s, s.b.Unary(op, x.value()))
	s.trimCheck()
}

// Binary records an op of two operands and no attributes into dst.
func (s *Session) Binary(op ir.Op, dst, x, y *Tensor) {
	s.lock()
	if x == nil || y == nil || x.s != s || y.s != s || x.stale() || y.stale() || x.dead() || y.dead() || s.core.closed.Load() {
		s.unlock()
		s.recordSlow(op, dst, x, y)
		return
	}
	defer s.unlock()
	dst.init(s, s.b.Binary(op, x.value(), y.value()))
	s.trimCheck()
}

// recordSlow checks the operands one by one, syncs those of an earlier step and records the op.
func (s *Session) recordSlow(op ir.Op, dst *Tensor, in ...*Tensor) {
	in = s.localAll(in)
	s.lockTensors(op.String(), in...)
	defer s.unlock()
	vals := make([]ir.Value, len(in))
	for i, t := range in {
		vals[i] = t.value()
	}
	dst.init(s, s.b.Emit(op, "", vals...)[0])
	s.trimCheck()
}

// lockTensors checks operands, syncs those that are IR of an earlier step, and returns with the session
// locked. IR never crosses a step. Sessions of tensors with other locks join. A mistake panics with an
// *ir.OpError, and the lock is not held.
func (s *Session) lockTensors(op string, ts ...*Tensor) {
	c := s.core
	synced := 0
	for {
		s.lockWith(ts)
		t := s.unready(op, ts)
		if t == nil || synced == len(ts) { // the latter if a hook refuses to sync a tensor
			return
		}
		line := t.ir.Line()
		s.unlock()
		synced++
		c.stats.carried(line)
		if _, err := t.s.SyncTensors(context.Background(), []*Tensor{t}, stepConfig); err != nil {
			panic(ir.NewOpError("sync", err, nil, "a tensor of an earlier step could not be synced"))
		}
	}
}

// unready returns the first operand that is IR of an earlier step, or nil. The session is locked. If an
// operand cannot be used, unready unlocks it and panics.
func (s *Session) unready(op string, ts []*Tensor) (stale *Tensor) {
	ok := false
	defer func() {
		if !ok {
			s.unlock()
		}
	}()
	if s.core.closed.Load() {
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
	pos, named = s.lockArgs(op, pos, named)
	defer s.unlock()
	return s.handles(newTensor, s.b.Call(op, pos, named...))
}

// Call1 is Call for an op with one output, whose handle is dst.
func (s *Session) Call1(op ir.Op, dst *Tensor, pos []any, named []ir.Named) {
	pos, named = s.lockArgs(op, pos, named)
	defer s.unlock()
	dst.init(s, s.b.Call1(op, pos, named...))
	s.trimCheck()
}

// CallOn is Call1 for an op whose operands may have no device. The op is then placed on d, or, if d
// is the zero Device, where its result is used.
func (s *Session) CallOn(d ir.Device, op ir.Op, dst *Tensor, pos []any) {
	pos, _ = s.lockArgs(op, pos, nil)
	defer s.unlock()
	defer s.place(d)()
	dst.init(s, s.b.Call1(op, pos))
	s.trimCheck()
}

// place makes d the device of nodes without one, until the returned function is called; the
// session is locked.
func (s *Session) place(d ir.Device) func() {
	s.b.DefaultDevice = d
	return func() { s.b.DefaultDevice = ir.Device{} }
}

// handles makes the handles of values just recorded; the session is locked.
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
// which succeeds unless a tensor is of another session, dead, or IR of an earlier step. It returns the
// arguments with handles of the session's own for tensors of sessions with other locks.
func (s *Session) lockArgs(op ir.Op, pos []any, named []ir.Named) ([]any, []ir.Named) {
	s.lock()
	ok := !s.core.closed.Load()
	for _, v := range pos {
		ok = ok && s.current(v)
	}
	for i := range named {
		ok = ok && s.current(named[i].Value)
	}
	if !ok {
		s.unlock()
		if ts := tensorsOf(pos, named); s.apart(ts) != nil {
			pos, named = s.localArgs(pos, named)
		}
		s.lockTensors(op.String(), tensorsOf(pos, named)...)
	}
	return pos, named
}

// localArgs is local for the tensors among arguments.
func (s *Session) localArgs(pos []any, named []ir.Named) ([]any, []ir.Named) {
	local := func(v any) any {
		switch v := v.(type) {
		case *Tensor:
			return s.local(v)
		case []*Tensor:
			ts := make([]*Tensor, len(v))
			for i, t := range v {
				ts[i] = s.local(t)
			}
			return ts
		}
		return v
	}
	pos, named = slices.Clone(pos), slices.Clone(named)
	for i, v := range pos {
		pos[i] = local(v)
	}
	for i, v := range named {
		named[i].Value = local(v.Value)
	}
	return pos, named
}

// current reports whether an argument can be used as it is; the session is locked.
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

// operands is ir.Builder.Operands for *Tensor and []*Tensor; the session is locked.
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
	defer s.unlock()
	n := ir.NewScalar(number, d, ir.Device{}, false)
	dst.init(s, n.Out(0))
	n.Used = 1 // a bare number is not a result of the step
}

// BinaryNumber records an op of a tensor and a plain Go number, which takes part
// in type promotion last; reverse puts the number first. The number is a
// parameter of the graph and not part of its hash.
func (s *Session) BinaryNumber(op ir.Op, dst, x *Tensor, v any, reverse bool) {
	s.lock()
	if s.core.closed.Load() || x == nil || !s.current(x) {
		s.unlock()
		x = s.local(x)
		s.lockTensors(op.String(), x)
	}
	defer s.unlock()
	out, ok := s.b.BinaryNumber(op, x.value(), v, reverse)
	if !ok {
		panic(ir.NewOpError(op.String(), ir.ErrArg, []ir.Value{x.value()}, "operand %v (%T) is not a number or a *Tensor", v, v))
	}
	dst.init(s, out)
	s.trimCheck()
}
