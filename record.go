package loris

import (
	"github.com/loris-ml/loris/executor"
	"github.com/loris-ml/loris/ir"
)

// Opt is an optional argument of an op, by ATen's name, or a setting of
// Session.With. The constructors bear the arguments' names. An op that has no
// such argument panics with an *OpError that names it.
type Opt struct {
	name  string
	value any
}

// As sets the dtype of a result (ATen's argument dtype).
func As(d DType) Opt { return Opt{"dtype", d} }

// intsArg is the value of an option that is an int for some ops and a list of
// them for others.
func intsArg(v []int) any {
	if len(v) == 1 {
		return v[0]
	}
	if v == nil {
		v = []int{}
	}
	return v
}

// lookup returns the op of a generated function. The generator's test sees to it
// that there is one.
func lookup(name string) ir.Op {
	op, _ := ir.Lookup(name)
	return op
}

// owner is session without looking up the op's name.
func (t *Tensor) owner(op ir.Op) *executor.Session {
	if t != nil {
		if s := t.ex().Session(); s != nil {
			return s
		}
	}
	return t.session(op.String())
}

// unary records an op of one tensor and no attributes.
func (t *Tensor) unary(op ir.Op) *Tensor {
	s := t.owner(op)
	out := new(executor.Tensor)
	s.Unary(op, out, t.ex())
	return (*Tensor)(out)
}

// binary records an op of two operands and no attributes; other is a *Tensor or
// a number.
func (t *Tensor) binary(op ir.Op, other any) *Tensor {
	s := t.owner(op)
	out := new(executor.Tensor)
	if y, ok := other.(*Tensor); ok {
		if y == nil {
			y.owner(op)
		}
		s.Binary(op, out, t.ex(), y.ex())
	} else {
		s.BinaryNumber(op, out, t.ex(), other, false)
	}
	return (*Tensor)(out)
}

// binaryOp is binary where either operand may be a number.
func binaryOp(op ir.Op, x, y any) *Tensor {
	if t, ok := x.(*Tensor); ok {
		return t.binary(op, y)
	}
	t, ok := y.(*Tensor)
	if !ok {
		panic(ir.NewOpError(op.String(), ErrArg, nil, "neither %v (%T) nor %v (%T) is a *Tensor", x, x, y, y))
	}
	out := new(executor.Tensor)
	t.session(op.String()).BinaryNumber(op, out, t.ex(), x, true)
	return (*Tensor)(out)
}

// call records an op with arguments by position and options.
func call(op ir.Op, pos []any, opts []Opt) []*executor.Tensor {
	named := toNamed(pos, opts)
	return sessionOfArgs(op, pos, named).Call(op, newTensor, pos, named)
}

// call1 is call for ops with one output.
func call1(op ir.Op, pos []any, opts []Opt) *Tensor { return (*Tensor)(call(op, pos, opts)[0]) }

// toNamed turns the tensors among pos into the executor's, in place, and the
// options into named arguments.
func toNamed(pos []any, opts []Opt) []ir.Named {
	for i, v := range pos {
		pos[i] = arg(v)
	}
	if len(opts) == 0 {
		return nil
	}
	named := make([]ir.Named, len(opts))
	for i, o := range opts {
		named[i] = ir.Named{Name: o.name, Value: arg(o.value)}
	}
	return named
}

// arg returns the executor's form of an argument.
func arg(v any) any {
	switch v := v.(type) {
	case *Tensor:
		if v == nil {
			return nil
		}
		return v.ex()
	case []*Tensor:
		return handles(v)
	}
	return v
}

// sessionOfArgs returns the session of the first tensor among the arguments.
func sessionOfArgs(op ir.Op, pos []any, named []ir.Named) *executor.Session {
	for _, v := range pos {
		if s := sessionOfArg(v); s != nil {
			return s
		}
	}
	for _, n := range named {
		if s := sessionOfArg(n.Value); s != nil {
			return s
		}
	}
	panic(ir.NewOpError(op.String(), ErrArg, nil, "no argument is a usable tensor: make one with FromSlice, Zeros or an op"))
}

func sessionOfArg(v any) *executor.Session {
	switch v := v.(type) {
	case *executor.Tensor:
		return v.Session()
	case []*executor.Tensor:
		for _, t := range v {
			if t != nil && t.Session() != nil {
				return t.Session()
			}
		}
	}
	return nil
}
