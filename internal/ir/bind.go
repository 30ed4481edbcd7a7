package ir

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Named is an argument given by its ATen name.
type Named struct {
	Name  string
	Value any
}

// A returns a Named.
func A(name string, value any) Named { return Named{name, value} }

// bind matches arguments with an op's schema: positional ones first, then
// those by name; defaults fill the rest. Operands are Values ([]Value for
// Tensor[]; int, int64, float64 and bool make scalars), attributes int, []int,
// float64, bool, string or DType, and nil stands for an optional one left out.
// It appends the encoded attributes and the operands in order to the given slices; a mistake is
// an *OpError wrapping ErrArg.
func (b *Builder) bind(attr []byte, in []Value, sp *Spec, pos []any, named []Named) ([]byte, []Value, error) {
	params := sp.Schema.Params
	fail := func(format string, args ...any) ([]byte, []Value, error) {
		return nil, nil, NewOpError(sp.Name, ErrArg, in, format, args...)
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
			return fail("argument %q wants %s, got %s", p.Name, p.Type, b.describe(v))
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
	return attr, in, nil
}

func isOptional(k ParamKind) bool {
	return k == KindOptInt || k == KindOptInts || k == KindOptFloat || k == KindOptDType
}

func (b *Builder) describe(v any) string {
	if b.Operands != nil {
		switch vals, ok := b.Operands(nil, v); {
		case ok && len(vals) == 0:
			v = nil
		case ok && len(vals) == 1:
			v = vals[0]
		}
	}
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
	at := len(in)
	in, ok := b.operands(in, v)
	n := len(in) - at
	_, one := v.(Value)
	_, list := v.([]Value)
	switch kind {
	case KindTensors:
		return binary.AppendUvarint(attr, uint64(n)), in, ok && !one
	case KindOptTensor, KindOptScalar:
		if n == 0 {
			return append(attr, 0), in, v == nil || ok
		}
		attr = append(attr, 1)
	}
	return attr, in, ok && n == 1 && !list
}

// operands appends the values of an argument for operands; an absent Value
// appends none.
func (b *Builder) operands(in []Value, v any) ([]Value, bool) {
	switch v := v.(type) {
	case Value:
		if v.IsNil() {
			return in, true
		}
		return append(in, v), true
	case []Value:
		return append(in, v...), true
	}
	if n, ok := b.number(v); ok {
		return append(in, n), true
	}
	if b.Operands != nil {
		return b.Operands(in, v)
	}
	return in, false
}

// Call makes one use of an op with arguments by position and name. Operands are Values ([]Value for
// Tensor[]; int, int64, float64 and bool make scalars), attributes int, []int, float64, bool, string
// or DType, and nil stands for an optional one left out. A mistake panics with an *OpError that wraps
// ErrArg.
func (b *Builder) Call(op Op, pos []any, named ...Named) []Value {
	return outs(b.call(op, pos, named))
}

// Call1 is Call for an op with one output.
func (b *Builder) Call1(op Op, pos []any, named ...Named) Value {
	return first(b.call(op, pos, named))
}

func (b *Builder) call(op Op, pos []any, named []Named) (*Node, []Value) {
	sp := specs[op]
	attr, in := b.attr[:0], b.in[:0]
	b.attr, b.in = nil, nil // the casts that promotion needs are calls, too
	attr, in, err := b.bind(attr, in, sp, pos, named)
	if err != nil {
		panic(err)
	}
	if sp.numbers != nil {
		b.fitNumbers(sp, attr, in)
	}
	if (sp.Known != nil || sp.KnownFirst != nil) && len(in) == 2 {
		if z, ok := b.known(sp, in[0], in[1]); ok {
			clear(in)
			b.attr, b.in = attr, in
			return nil, []Value{z}
		}
	}
	vals := in
	if sp.Promote != PromoteNone {
		vals = b.promoteAll(sp, in)
	}
	var n *Node
	var rewritten []Value
	if b.records() {
		// The trie compares the string but does not keep it.
		if e := b.trie.find(op, unsafe.String(unsafe.SliceData(attr), len(attr)), vals); e != nil {
			n = b.use(e, b.device(sp, vals), vals)
		}
	}
	if n == nil {
		n, rewritten = b.emit(sp, string(attr), vals, nil)
	}
	if rewritten == nil { // what a rewrite returns may be the operands
		clear(in)
		b.attr, b.in = attr, in
	}
	return n, rewritten
}

// known is Spec.Known of operands the second of which may be a plain number, or Spec.KnownFirst where the first is.
func (b *Builder) known(sp *Spec, x, y Value) (Value, bool) {
	if x.wrapped() == y.wrapped() {
		return Value{}, false
	}
	use, other, number := sp.Known, x, y
	if x.wrapped() {
		use, other, number = sp.KnownFirst, y, x
	}
	if use == nil {
		return Value{}, false
	}
	n, ok := numberOf(number)
	if !ok {
		return Value{}, false
	}
	return use(b, other, n)
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
