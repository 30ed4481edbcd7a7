package executor

import (
	"github.com/loris-ml/loris/ir"
)

// Unary records an op of one operand and no attributes into dst. Mistakes panic
// with an *ir.OpError.
func (s *Session) Unary(op ir.Op, dst, x *Tensor) {
	c := s.core
	c.mu.Lock()
	if x.s != s || x.stale() || x.bits&bitDead != 0 || s.closed {
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
	if x.s != s || y.s != s || x.stale() || y.stale() || (x.bits|y.bits)&bitDead != 0 || s.closed {
		c.mu.Unlock()
		s.recordSlow(op, dst, x, y)
		return
	}
	defer c.mu.Unlock()
	dst.init(s, s.b.Binary(op, x.value(), y.value()))
	s.trimCheck()
}

// recordSlow checks the operands one by one, syncs what is left from an earlier
// step and records.
func (s *Session) recordSlow(op ir.Op, dst *Tensor, in ...*Tensor) {
	c := s.core
	s.check(op.String(), in)
	s.refresh(in...)
	c.mu.Lock()
	defer c.mu.Unlock()
	vals := make([]ir.Value, len(in))
	for i, t := range in {
		vals[i] = t.value()
	}
	dst.init(s, s.b.Emit(op, "", vals...)[0])
	s.trimCheck()
}

func (s *Session) check(op string, in []*Tensor) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.closed || s.core.closed {
		panic(ir.NewOpError(op, ErrClosed, nil, "cannot record"))
	}
	for _, t := range in {
		t.usable(s, op)
	}
}

// Call records an op with arguments by position and by ATen's name, as
// ir.Builder.Bind, where tensors are *Tensor or []*Tensor. newTensor makes the
// handle of each output. Mistakes panic with an *ir.OpError.
func (s *Session) Call(op ir.Op, newTensor func() *Tensor, pos []any, named []ir.Named) []*Tensor {
	return s.CallOn(ir.Device{}, op, newTensor, pos, named)
}

// CallOn is Call for an op whose operands may have no device yet, which is then
// placed on d; the zero Device leaves it to where it is used.
func (s *Session) CallOn(d ir.Device, op ir.Op, newTensor func() *Tensor, pos []any, named []ir.Named) []*Tensor {
	s.Prepare(op.String(), pos, named)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.b.Place = d
	defer func() { s.b.Place = ir.Device{} }()
	outs := s.b.Call(op, valuesOf(pos), namedValues(named)...)
	ts := make([]*Tensor, len(outs))
	for i, v := range outs {
		ts[i] = newTensor()
		ts[i].init(s, v)
	}
	s.trimCheck()
	return ts
}

// Prepare checks and refreshes the tensors among arguments.
func (s *Session) Prepare(op string, pos []any, named []ir.Named) {
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
	for i, t := range ts {
		if t == nil {
			panic(ir.NewOpError(op, ir.ErrArg, nil, "tensor argument %d is nil", i))
		}
	}
	s.check(op, ts)
	s.refresh(ts...)
}

func valuesOf(pos []any) []any {
	out := make([]any, len(pos))
	for i, v := range pos {
		out[i] = valueOf(v)
	}
	return out
}

func namedValues(named []ir.Named) []ir.Named {
	out := make([]ir.Named, len(named))
	for i, n := range named {
		out[i] = ir.Named{Name: n.Name, Value: valueOf(n.Value)}
	}
	return out
}

// valueOf turns tensors into values; everything else stays.
func valueOf(v any) any {
	switch v := v.(type) {
	case *Tensor:
		if v == nil {
			return nil
		}
		return v.value()
	case []*Tensor:
		vs := make([]ir.Value, len(v))
		for i, t := range v {
			vs[i] = t.value()
		}
		return vs
	}
	return v
}

// Build records whatever fn builds from the values of the tensors in, and makes
// handles for the values that fn returns. fn must only use b; it runs under the
// executor's lock.
func (s *Session) Build(name string, newTensor func() *Tensor, in []*Tensor, fn func(b *ir.Builder, in []ir.Value) []ir.Value) []*Tensor {
	s.check(name, in)
	s.refresh(in...)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	vals := make([]ir.Value, len(in))
	for i, t := range in {
		vals[i] = t.value()
	}
	outs := fn(s.b, vals)
	ts := make([]*Tensor, len(outs))
	for i, v := range outs {
		ts[i] = newTensor()
		ts[i].init(s, v)
	}
	s.trimCheck()
	return ts
}

// Grad records the gradients of outs with respect to wrt, weighted by the
// cotangents (nil or nil entries: ones), as graph.Grad.
func (s *Session) Grad(newTensor func() *Tensor, outs, cotangents, wrt []*Tensor) []*Tensor {
	all := append(append([]*Tensor(nil), outs...), wrt...)
	for _, t := range cotangents {
		if t != nil {
			all = append(all, t)
		}
	}
	return s.buildGrad(newTensor, all, outs, cotangents, wrt)
}

func (s *Session) buildGrad(newTensor func() *Tensor, all, outs, cotangents, wrt []*Tensor) []*Tensor {
	s.check("grad", all)
	s.refresh(all...)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	o, w, ct := make([]ir.Value, len(outs)), make([]ir.Value, len(wrt)), make([]ir.Value, len(cotangents))
	for i, t := range outs {
		o[i] = t.value()
	}
	for i, t := range wrt {
		w[i] = t.value()
	}
	for i, t := range cotangents {
		if t != nil {
			ct[i] = t.value()
		}
	}
	grads := s.grad(o, ct, w)
	ts := make([]*Tensor, len(grads))
	for i, v := range grads {
		ts[i] = newTensor()
		ts[i].init(s, v)
	}
	s.trimCheck()
	return ts
}

// Scalar makes dst the handle of a number as a rank-0 tensor of the dtype: a
// parameter of the graphs that use it, so changing it never recompiles.
func (s *Session) Scalar(dst *Tensor, v any, d ir.DType) {
	leaf, ok := ir.ScalarValue(v)
	if !ok {
		panic(ir.NewOpError("scalar", ir.ErrArg, nil, "%v (%T) is not a number", v, v))
	}
	s.check("scalar", nil)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	n := ir.NewScalar(leaf.Node.Leaf().(*ir.ScalarLeaf), d, ir.Device{}, false)
	dst.init(s, n.Out(0))
	n.Used = 1 // a bare number is not a result of the step
}

// BinaryNumber records an op of a tensor and a plain Go number, which takes part
// in type promotion last; reverse puts the number first. The number is a
// parameter of the graph and not part of its hash.
func (s *Session) BinaryNumber(op ir.Op, dst, x *Tensor, v any, reverse bool) {
	num, ok := ir.ScalarValue(v)
	if !ok {
		panic(ir.NewOpError(op.String(), ir.ErrArg, nil, "operand %v (%T) is not a number or a *Tensor", v, v))
	}
	s.check(op.String(), []*Tensor{x})
	s.refresh(x)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	a, b := x.value(), num
	if reverse {
		a, b = b, a
	}
	dst.init(s, s.b.Binary(op, a, b))
	s.trimCheck()
}
