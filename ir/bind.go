package ir

import "fmt"

// Named is an argument given by its ATen name.
type Named struct {
	Name  string
	Value any
}

// A is a short way to write a Named.
func A(name string, value any) Named { return Named{name, value} }

// Bind matches arguments with an op's schema: positional ones first, then
// those by name; defaults fill the rest. Operands are Values ([]Value for
// Tensor[]; int, int64, float64 and bool make scalars), attributes int, []int,
// float64, bool, string or DType, and nil stands for an optional one left out.
// It returns the encoded attributes and the operands in order; a mistake is an
// *OpError wrapping ErrArg.
func (b *Builder) Bind(sp *Spec, pos []any, named []Named) (string, []Value, error) {
	params := sp.Schema.Params
	var buf [96]byte
	attr := buf[:0]
	in := make([]Value, 0, 4)
	fail := func(format string, args ...any) (string, []Value, error) {
		return "", nil, NewOpError(sp.Name, ErrArg, in, format, args...)
	}
	if len(pos) > len(params) {
		return fail("%d arguments, at most %d are taken", len(pos), len(params))
	}
	used := 0
	for i := range params {
		p := &params[i]
		var v any
		given := false
		if i < len(pos) {
			v, given = pos[i], true
		}
		for _, n := range named {
			if n.Name == p.Name {
				if given {
					return fail("argument %q is given twice", p.Name)
				}
				v, given = n.Value, true
				used++
			}
		}
		if !given {
			if !p.HasDef {
				return fail("argument %q (%s) is missing", p.Name, p.Type)
			}
			v = p.Default
		}
		var ok bool
		if p.Kind.Operand() {
			attr, in, ok = b.bindOperand(attr, in, p.Kind, v)
		} else if v == nil && !isOptional(p.Kind) {
			ok = false
		} else {
			attr, ok = appendAttr(attr, p.Kind, v)
		}
		if !ok {
			return fail("argument %q wants %s, got %s", p.Name, p.Type, describe(v))
		}
	}
	if used != len(named) {
		for _, n := range named {
			if sp.Schema.Param(n.Name) < 0 {
				return fail("there is no argument %q", n.Name)
			}
		}
		return fail("an argument is given twice")
	}
	return string(attr), in, nil
}

func isOptional(k ParamKind) bool {
	return k == KindOptInt || k == KindOptInts || k == KindOptFloat || k == KindOptDType
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case Value:
		return "a tensor " + v.Shape().String()
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%v (%T)", v, v)
}

func (b *Builder) bindOperand(attr []byte, in []Value, kind ParamKind, v any) ([]byte, []Value, bool) {
	switch kind {
	case KindTensors:
		vs, ok := v.([]Value)
		if !ok {
			return attr, in, false
		}
		n := uint64(len(vs))
		for ; n >= 0x80; n >>= 7 {
			attr = append(attr, byte(n)|0x80)
		}
		return append(attr, byte(n)), append(in, vs...), true
	case KindOptTensor, KindOptScalar:
		if v == nil {
			return append(attr, 0), in, true
		}
		if t, ok := v.(Value); ok && t.IsNil() {
			return append(attr, 0), in, true
		}
		attr = append(attr, 1)
	}
	t, ok := ScalarValue(v)
	if !ok || t.IsNil() {
		return attr, in, false
	}
	return attr, append(in, t), true
}

// ScalarValue returns the value itself for a Value, and a wrapped rank-0 leaf
// for a Go number or bool.
func ScalarValue(v any) (Value, bool) {
	switch v := v.(type) {
	case Value:
		return v, true
	case float64:
		return NewScalar(&ScalarLeaf{Float: v, IsFloat: true}, DefaultDType, Device{}, true).Out(0), true
	case float32:
		return NewScalar(&ScalarLeaf{Float: float64(v), IsFloat: true}, DefaultDType, Device{}, true).Out(0), true
	case int:
		return NewScalar(&ScalarLeaf{Int: int64(v)}, I64, Device{}, true).Out(0), true
	case int64:
		return NewScalar(&ScalarLeaf{Int: v}, I64, Device{}, true).Out(0), true
	case int32:
		return NewScalar(&ScalarLeaf{Int: int64(v)}, I64, Device{}, true).Out(0), true
	case bool:
		s := &ScalarLeaf{}
		if v {
			s.Int = 1
		}
		return NewScalar(s, Bool, Device{}, true).Out(0), true
	}
	return Value{}, false
}

// Call makes one use of an op with arguments by position and name, as Bind; a
// mistake panics with an *OpError.
func (b *Builder) Call(op Op, pos []any, named ...Named) []Value {
	sp := specs[op]
	attr, in, err := b.Bind(sp, pos, named)
	if err != nil {
		panic(err)
	}
	if sp.Promote != PromoteNone {
		in = b.promoteAll(sp, in)
	}
	return b.emit(sp, attr, in)
}

// Call1 is Call for an op with one output.
func (b *Builder) Call1(op Op, pos []any, named ...Named) Value {
	return b.Call(op, pos, named...)[0]
}

// CallNamed is Call for ops whose seed-like operands do not come first: the
// positional arguments fill, in order, the parameters that named leaves free.
func (b *Builder) CallNamed(op Op, pos []any, named []Named) []Value {
	sp := specs[op]
	all := append([]Named(nil), named...)
	next := 0
	for _, p := range sp.Schema.Params {
		if next == len(pos) {
			break
		}
		taken := false
		for _, n := range named {
			taken = taken || n.Name == p.Name
		}
		if !taken {
			all = append(all, Named{p.Name, pos[next]})
			next++
		}
	}
	return b.Call(op, nil, all...)
}
