package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Attributes are held as one immutable byte string, written and read by the
// op's schema: parameters in schema order, each in a fixed encoding. That makes
// them comparable with ==, cheap to hash, and free of reflection.
//
//	Tensor, Scalar    nothing
//	Tensor?, Scalar?  1 byte: given or not
//	Tensor[]          uvarint count
//	int, float        8 bytes little endian (float as bits)
//	bool, ScalarType  1 byte
//	int[]             uvarint count, then 8 bytes each
//	str               uvarint length, then the bytes
//	number            1 byte 'i' or 'f', then 8 bytes
//	X?                1 byte given or not, then X

func appendInts(b []byte, v []int) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func appendNumber(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case int:
		return binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v)), true
	case int64:
		return binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v)), true
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v)), true
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return binary.LittleEndian.AppendUint64(append(b, 'i'), n), true
	}
	return b, false
}

// appendAttr encodes one attribute value; false if its Go type does not fit.
func appendAttr(b []byte, kind ParamKind, v any) ([]byte, bool) {
	switch kind {
	case KindOptInt, KindOptInts, KindOptFloat, KindOptDType:
		if v == nil {
			return append(b, 0), true
		}
		b = append(b, 1)
		kind-- // each optional kind follows its plain kind
	}
	switch kind {
	case KindInt:
		if n, ok := v.(int); ok {
			return binary.LittleEndian.AppendUint64(b, uint64(n)), true
		}
	case KindInts:
		switch v := v.(type) {
		case []int:
			return appendInts(b, v), true
		case int:
			return appendInts(b, []int{v}), true
		}
	case KindFloat:
		switch v := v.(type) {
		case float64:
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(v)), true
		case int:
			return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v))), true
		}
	case KindBool:
		if t, ok := v.(bool); ok {
			if t {
				return append(b, 1), true
			}
			return append(b, 0), true
		}
	case KindStr:
		if s, ok := v.(string); ok {
			return append(binary.AppendUvarint(b, uint64(len(s))), s...), true
		}
	case KindDType:
		if d, ok := v.(DType); ok && d.Valid() {
			return append(b, byte(d)), true
		}
	case KindNumber:
		return appendNumber(b, v)
	}
	return b, false
}

// attrReader walks an attribute string; the string was made by appendAttr for
// the same schema, so it cannot run short.
type attrReader struct {
	s   string
	pos int
}

func (r *attrReader) byte() byte {
	r.pos++
	return r.s[r.pos-1]
}

func (r *attrReader) u64() uint64 {
	b := r.s[r.pos : r.pos+8]
	r.pos += 8
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func (r *attrReader) uvarint() int {
	var x, shift uint64
	for {
		c := r.byte()
		x |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int(x)
		}
		shift += 7
	}
}

// operands reads how many inputs a parameter that takes operands has.
func (r *attrReader) operands(kind ParamKind) int {
	switch kind {
	case KindOptTensor, KindOptScalar:
		return int(r.byte())
	case KindTensors:
		return r.uvarint()
	}
	return 1
}

// given reads whether an attribute has a value, as all but optional ones have, and returns the kind of
// that value.
func (r *attrReader) given(kind ParamKind) (ParamKind, bool) {
	if isOptional(kind) {
		return kind - 1, r.byte() != 0
	}
	return kind, true
}

// next decodes the value of one parameter: int, float64, bool, string, []int,
// DType, int64/float64 for a number, nil when absent; for operands the number
// of inputs they take, as an int.
func (r *attrReader) next(kind ParamKind) any {
	if kind.Operand() {
		return r.operands(kind)
	}
	kind, given := r.given(kind)
	if !given {
		return nil
	}
	switch kind {
	case KindInt:
		return int(r.u64())
	case KindInts:
		v := make([]int, r.uvarint())
		for i := range v {
			v[i] = int(r.u64())
		}
		return v
	case KindFloat:
		return math.Float64frombits(r.u64())
	case KindBool:
		return r.byte() != 0
	case KindStr:
		n := r.uvarint()
		r.pos += n
		return r.s[r.pos-n : r.pos]
	case KindDType:
		return DType(r.byte())
	case KindNumber:
		if r.byte() == 'i' {
			return int64(r.u64())
		}
		return math.Float64frombits(r.u64())
	}
	panic(fmt.Sprintf("ir: parameter kind %d has no encoding", kind))
}

// skip is next without the value. It returns how many operands the parameter takes.
func (r *attrReader) skip(kind ParamKind) (operands int) {
	if kind.Operand() {
		return r.operands(kind)
	}
	kind, given := r.given(kind)
	if !given {
		return 0
	}
	switch kind {
	case KindInt, KindFloat:
		r.pos += 8
	case KindInts:
		r.pos += 8 * r.uvarint()
	case KindBool, KindDType:
		r.pos++
	case KindStr:
		r.pos += r.uvarint()
	case KindNumber:
		r.pos += 9
	}
	return 0
}

// Args is one use of an op: its operands and attributes, read by the names of
// the op's schema. A name that the schema lacks is a bug and panics.
type Args struct {
	Spec *Spec
	Attr string
	In   []Value
}

// Get returns the value of an attribute: int, float64, bool, string, []int,
// DType, int64 or float64 for a number; nil for an optional one not given.
// For an operand it returns the number of inputs that it takes.
func (a Args) Get(name string) any {
	v, _ := a.find(name)
	return v
}

func (a Args) find(name string) (v any, input int) {
	r := attrReader{s: a.Attr}
	for i := range a.Spec.Schema.Params {
		p := &a.Spec.Schema.Params[i]
		if p.Name == name {
			return r.next(p.Kind), input
		}
		input += r.skip(p.Kind)
	}
	panic(fmt.Sprintf("ir: op %s has no parameter %q", a.Spec.Name, name))
}

// Int returns an int attribute.
func (a Args) Int(name string) int { return a.Get(name).(int) }

// OptInt returns an int? attribute and whether it was given.
func (a Args) OptInt(name string) (int, bool) {
	v, ok := a.Get(name).(int)
	return v, ok
}

// Ints returns an int[] or int[]? attribute; nil if not given.
func (a Args) Ints(name string) []int {
	v, _ := a.Get(name).([]int)
	return v
}

// float returns a float attribute.
func (a Args) float(name string) float64 { return a.Get(name).(float64) }

// OptFloat returns a float? attribute and whether it was given.
func (a Args) OptFloat(name string) (float64, bool) {
	v, ok := a.Get(name).(float64)
	return v, ok
}

// Number returns an attribute that is a number as float64 and, truncated, as int64.
func (a Args) Number(name string) (float64, int64) {
	switch v := a.Get(name).(type) {
	case int64:
		return float64(v), v
	case float64:
		return v, int64(v)
	}
	panic("a number is an int64 or a float64")
}

// Bool returns a bool attribute.
func (a Args) Bool(name string) bool { return a.Get(name).(bool) }

// Str returns a str attribute.
func (a Args) Str(name string) string { return a.Get(name).(string) }

// DType returns a ScalarType or ScalarType? attribute; Invalid if not given.
func (a Args) DType(name string) DType {
	v, _ := a.Get(name).(DType)
	return v
}

// Tensor returns the operand of that name; it is absent (Node nil) for an
// optional one that was not given.
func (a Args) Tensor(name string) Value {
	n, i := a.find(name)
	if n.(int) == 0 {
		return Value{}
	}
	return a.In[i]
}

// Tensors returns the operands of a Tensor[] parameter.
func (a Args) Tensors(name string) []Value {
	n, i := a.find(name)
	return a.In[i : i+n.(int)]
}

// InputIndex returns where in In the operand of that name begins.
func (a Args) InputIndex(name string) int {
	_, i := a.find(name)
	return i
}

// Fail panics with an OpError for this use of the op.
func (a Args) Fail(kind error, format string, args ...any) {
	panic(NewOpError(a.Spec.Name, kind, a.In, format, args...))
}

// Dim returns the int attribute normalised to 0..rank-1 (ATen: a scalar takes
// dim 0 or -1), or fails with ErrIndex.
func (a Args) Dim(name string, rank int) int { return a.NormDim(a.Int(name), rank) }

// NormDim normalises one dimension number against a rank, or fails.
func (a Args) NormDim(d, rank int) int {
	n := max(rank, 1)
	if d < -n || d >= n {
		a.Fail(ErrIndex, "dimension %d is out of range for rank %d: expected %d to %d", d, rank, -n, n-1)
	}
	if d < 0 {
		d += n
	}
	return d
}

// dims returns an int[] attribute as a set of normalised dimensions: a mask by
// dimension, all of them if the attribute is absent or empty.
func (a Args) dims(name string, rank int) (mask [MaxRank]bool) {
	dims := a.Ints(name)
	for _, d := range dims {
		d = a.NormDim(d, rank)
		if mask[d] {
			a.Fail(ErrIndex, "dimension %d appears twice in %s", d, name)
		}
		mask[d] = true
	}
	if len(dims) == 0 {
		for i := range rank {
			mask[i] = true
		}
	}
	return mask
}

// AppendStructure appends those attributes of a use that are no sizes: numbers are left out unless
// they name dimensions.
func (s *Spec) AppendStructure(b []byte, attr string) []byte {
	if attr == "" {
		return b
	}
	r := attrReader{s: attr}
	for i := range s.Schema.Params {
		p := &s.Schema.Params[i]
		from := r.pos
		r.skip(p.Kind)
		switch p.Kind {
		case KindOptInt, KindOptInts, KindOptFloat:
			b = append(b, r.s[from])
		case KindInt, KindFloat, KindNumber, KindInts:
		default:
			b = append(b, r.s[from:r.pos]...)
			continue
		}
		if strings.Contains(p.Name, "dim") {
			b = append(b, r.s[from:r.pos]...)
		}
	}
	return b
}

// Resized reports whether attributes y of a use may be x with other sizes: they differ in numbers that
// name no dimensions, and each of these is of the same kind as before, as -1, 0 and 1 are alone.
func (s *Spec) Resized(x, y string) bool {
	if x == y {
		return true
	}
	a, b := attrReader{s: x}, attrReader{s: y}
	for i := range s.Schema.Params {
		p := &s.Schema.Params[i]
		from, at := a.pos, b.pos
		if x[from:] == "" || y[at:] == "" {
			return x[from:] == y[at:]
		}
		if p.Kind.Operand() || p.Kind == KindStr || p.Kind == KindBool || p.Kind == KindDType || p.Kind == KindOptDType || strings.Contains(p.Name, "dim") {
			if a.skip(p.Kind) != b.skip(p.Kind) || x[from:a.pos] != y[at:b.pos] {
				return false
			}
			continue
		}
		if !sameKind(a.next(p.Kind), b.next(p.Kind)) {
			return false
		}
	}
	return true
}

// sameKind reports whether two numbers, or lists of them, are of the same kinds.
func sameKind(x, y any) bool {
	switch x := x.(type) {
	case int:
		y, ok := y.(int)
		return ok && sameNumberKind(float64(x), float64(y))
	case int64:
		y, ok := y.(int64)
		return ok && sameNumberKind(float64(x), float64(y))
	case float64:
		y, ok := y.(float64)
		return ok && sameNumberKind(x, y)
	case []int:
		y, ok := y.([]int)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameNumberKind(float64(x[i]), float64(y[i])) {
				return false
			}
		}
		return true
	}
	return x == nil && y == nil
}

// sameNumberKind reports whether two numbers are equal, or both finite, of one sign and none of -1, 0
// and 1.
func sameNumberKind(x, y float64) bool {
	ordinary := func(v float64) bool { return v != 0 && math.Abs(v) != 1 && !math.IsNaN(v) && !math.IsInf(v, 0) }
	return math.Float64bits(x) == math.Float64bits(y) || ordinary(x) && ordinary(y) && (x < 0) == (y < 0)
}
