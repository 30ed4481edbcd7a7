package loris

import (
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// intsArg is the argument of an option that is an int for some ops and a list of
// them for others. It copies the list so that the caller's may stay on the stack.
func intsArg(v []int) any {
	if len(v) == 1 {
		return v[0]
	}
	return append(make([]int, 0, len(v)), v...)
}

// lookup returns the op of a generated function. The generator's test checks that every
// function has one.
func lookup(name string) ir.Op {
	op, _ := ir.Lookup(name)
	return op
}

// owner is session that looks up the op's name only for an error.
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

// call records an op with several outputs; the tensors among the arguments are
// the executor's.
func call(op ir.Op, pos []any, named []ir.Named) []*executor.Tensor {
	return sessionOfArgs(op, pos, named).Call(op, newTensor, pos, named)
}

// call1 is call for ops with one output.
func call1(op ir.Op, pos []any, named []ir.Named) *Tensor {
	out := new(executor.Tensor)
	sessionOfArgs(op, pos, named).Call1(op, out, pos, named)
	return (*Tensor)(out)
}

// maxNamed is how many optional arguments are bound without an allocation; no op
// has more.
const maxNamed = 8

// callWith is call with options, which O is the op's interface of.
func callWith[O any](op ir.Op, pos []any, opts []O) []*executor.Tensor {
	var named [maxNamed]ir.Named
	return call(op, pos, appendOptions(named[:0], op, opts))
}

// call1With is call1 with options.
func call1With[O any](op ir.Op, pos []any, opts []O) *Tensor {
	var named [maxNamed]ir.Named
	return call1(op, pos, appendOptions(named[:0], op, opts))
}

// appendOptions appends the arguments that options give. It looks at the types of
// options instead of calling a method, so that they may stay on the stack.
func appendOptions[O any](dst []ir.Named, op ir.Op, opts []O) []ir.Named {
	for _, o := range opts {
		dst = appendOption(dst, op, o)
	}
	return dst
}

// arg returns the executor's form of an argument that may be a *Tensor or a
// number.
func arg(v any) any {
	if t, ok := v.(*Tensor); ok {
		return t.ex()
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
		if v != nil {
			return v.Session()
		}
	case []*executor.Tensor:
		for _, t := range v {
			if t != nil && t.Session() != nil {
				return t.Session()
			}
		}
	}
	return nil
}
