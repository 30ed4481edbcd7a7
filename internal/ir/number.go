package ir

import (
	"math"
	"unsafe"
)

// ScalarLeaf is a number that the user passed. It becomes a rank-0 parameter
// of the graph, so its value is not part of the hash.
type ScalarLeaf struct {
	Float float64
	Int   int64
	// IsFloat says which of the two the user gave.
	IsFloat bool
}

// AsFloat returns the number as a float.
func (l *ScalarLeaf) AsFloat() float64 {
	if l.IsFloat {
		return l.Float
	}
	return float64(l.Int)
}

// LeafName returns "scalar".
func (*ScalarLeaf) LeafName() string { return "scalar" }

// number is the leaf of a Go number together with the number, so that both are one allocation. The
// Node must be the first field: a *Node with flagNumber is converted to a *number.
type number struct {
	Node
	leaf ScalarLeaf
}

func (n *Node) scalar() *ScalarLeaf { return &(*number)(unsafe.Pointer(n)).leaf }

// numberEntries has the entry of numbers on no device, by dtype.
var numberEntries = func() (es [numDTypes]*entry) {
	for _, d := range DTypes() {
		es[d] = leafEntry(MakeShape(d), Device{})
	}
	return es
}()

func (n *number) init(l ScalarLeaf, t DType, d Device, wrapped bool) Value {
	n.leaf, n.device, n.flags = l, d, flagNumber
	if wrapped {
		n.flags |= flagWrapped
	}
	if n.e = numberEntries[t]; !d.IsAny() {
		n.e = leafEntry(MakeShape(t), d)
	}
	return Value{Node: &n.Node}
}

// NewScalar returns the rank-0 leaf of a number on a device. wrapped says that
// it is a plain number and not a tensor of rank 0.
func NewScalar(l *ScalarLeaf, t DType, d Device, wrapped bool) *Node {
	return new(number).init(*l, t, d, wrapped).Node
}

func (b *Builder) newNumber(l ScalarLeaf, t DType, d Device, wrapped bool) Value {
	if len(b.numbers) == 0 {
		b.numbers = make([]number, b.slabSize()/4)
	}
	n := &b.numbers[0]
	b.numbers = b.numbers[1:]
	return n.init(l, t, d, wrapped)
}

// number returns the wrapped rank-0 leaf of a Go number or bool; a Value is
// returned itself.
func (b *Builder) number(v any) (Value, bool) {
	if v, ok := v.(Value); ok {
		return v, true
	}
	l, d, ok := scalarOf(v)
	if !ok {
		return Value{}, false
	}
	return b.newNumber(l, d, Device{}, true), true
}

// ScalarValue is Builder.Number without a Builder.
func ScalarValue(v any) (Value, bool) {
	if v, ok := v.(Value); ok {
		return v, true
	}
	l, d, ok := scalarOf(v)
	if !ok {
		return Value{}, false
	}
	return NewScalar(&l, d, Device{}, true).Out(0), true
}

// scalarOf returns a Go number and the dtype that it has where no tensor
// decides. A number that an i64 cannot hold is none.
func scalarOf(v any) (l ScalarLeaf, d DType, ok bool) {
	switch v := v.(type) {
	case float64:
		return ScalarLeaf{Float: v, IsFloat: true}, DefaultDType, true
	case float32:
		return ScalarLeaf{Float: float64(v), IsFloat: true}, DefaultDType, true
	case bool:
		return ScalarLeaf{Int: b2i(v)}, Bool, true
	case int:
		l.Int = int64(v)
	case int64:
		l.Int = v
	case int32:
		l.Int = int64(v)
	case int16:
		l.Int = int64(v)
	case int8:
		l.Int = int64(v)
	case uint8:
		l.Int = int64(v)
	case uint16:
		l.Int = int64(v)
	case uint32:
		l.Int = int64(v)
	case uint:
		l.Int = int64(v)
		return l, I64, v <= math.MaxInt64
	case uint64:
		l.Int = int64(v)
		return l, I64, v <= math.MaxInt64
	default:
		return l, Invalid, false
	}
	return l, I64, true
}
