package ir

import (
	"fmt"
	"math"
	"unsafe"
)

// NumberUse says what becomes of a plain number of the user's beside integers whose dtype cannot hold
// it.
type NumberUse uint8

// The uses, which are ATen's. A number in the place of a tensor is a tensor of rank 0 and wraps; one
// for a Scalar parameter must fit. Fitting an unsigned dtype, a negative integer counts by its absolute
// value and then wraps.
const (
	NumberWraps    NumberUse = iota // its low bits are kept
	NumberFits                      // must fit: the default for Scalar parameters
	NumberLower                     // a lower bound: none at all below the dtype's range, an error above it
	NumberUpper                     // an upper bound: none at all above the dtype's range, an error below it
	NumberExponent                  // must fit, and not be negative
	NumberInRange                   // must fit, and not be negative where the dtype is unsigned
)

// numberUses returns what the operands of each parameter are used for, nil if all wrap.
func (s *Spec) numberUses() []NumberUse {
	uses := make([]NumberUse, len(s.Schema.Params))
	some := false
	for i, p := range s.Schema.Params {
		u, given := s.Numbers[p.Name]
		if !given && (p.Kind == KindScalar || p.Kind == KindOptScalar) {
			u = NumberFits
		}
		uses[i] = u
		some = some || u != NumberWraps
	}
	for name := range s.Numbers {
		if s.Schema.Param(name) < 0 {
			panic(fmt.Sprintf("ir: op %s has no parameter %q", s.Name, name))
		}
	}
	if !some {
		return nil
	}
	return uses
}

// fitNumbers checks the plain numbers among the operands of an op against the integer dtype that they
// will have. It replaces bounds beyond the range of the dtype in the slice, and panics with an *OpError
// for numbers that do not fit.
func (b *Builder) fitNumbers(sp *Spec, attr []byte, in []Value) {
	if len(in) == 0 || in[0].DType().IsFloat() && sp.Promote != PromoteTail {
		return // the rule, and quick
	}
	a := Args{Spec: sp, Attr: unsafe.String(unsafe.SliceData(attr), len(attr)), In: in}
	r := attrReader{s: a.Attr}
	var d DType
	k := 0
	for i := range sp.Schema.Params {
		p := &sp.Schema.Params[i]
		v := r.next(p.Kind)
		if !p.Kind.Operand() {
			continue
		}
		n := v.(int)
		if n == 1 && sp.numbers[i] != NumberWraps && in[k].wrapped() {
			if d == Invalid {
				if d = a.numberDType(); !d.IsInt() {
					return
				}
			}
			in[k] = b.fit(a, p.Name, sp.numbers[i], in[k], d)
		}
		k += n
	}
}

// numberDType returns the dtype that plain numbers among the operands will have.
func (a Args) numberDType() DType {
	switch a.Spec.Promote {
	case PromoteDefault, PromoteTail, PromoteTensors:
		return promotedType(a.Spec, a.In)
	case PromoteIntToFloat:
		return DefaultDType
	}
	if a.Spec.Schema.Param("dtype") >= 0 {
		return likeDType(a)
	}
	return a.In[0].DType()
}

// fit returns the number v for integers of dtype d, as use says.
func (b *Builder) fit(a Args, name string, use NumberUse, v Value, d DType) Value {
	n, ok := numberOf(v)
	if !ok {
		return v
	}
	if use == NumberInRange && d == U8 && !n.IsFloat && n.Int < 0 {
		a.failRange(name, n, d)
	}
	if use == NumberExponent && !n.IsFloat && n.Int < 0 {
		a.Fail(ErrArg, "integers to the negative power %d are not defined; cast to a float first", n.Int)
	}
	side := n.beside(d)
	lo, hi := intRange(d)
	if (use == NumberLower || use == NumberUpper) && !n.IsFloat && n.Int < lo {
		side = -1 // a negative integer does not wrap here
	}
	switch {
	case side == 0:
		return v
	case use == NumberLower && side < 0:
		return b.bound(v, lo)
	case use == NumberUpper && side > 0:
		return b.bound(v, hi)
	}
	a.failRange(name, n, d)
	return v
}

// bound returns n in the place of the number v: a leaf for a leaf, a constant for a constant.
func (b *Builder) bound(v Value, n int64) Value {
	if v.Node.flags&flagNumber != 0 {
		return b.newNumber(ScalarLeaf{Int: n}, I64, v.Node.device, true)
	}
	return b.WrappedConst(n)
}

// failRange fails for a number that integers of dtype d cannot hold.
func (a Args) failRange(name string, n ScalarLeaf, d DType) {
	a.Fail(ErrArg, "%s is %s", name, n.beyond(d))
}

// numberOf returns the number that a wrapped value is.
func numberOf(v Value) (ScalarLeaf, bool) {
	if v.Node.flags&flagNumber != 0 {
		return *v.Node.scalar(), true
	}
	if v.Node.e.op != opFull {
		return ScalarLeaf{}, false
	}
	return attrNumber(v.Node.Args().Get("fill_value")), true
}

// attrNumber returns an attribute that is a number as a leaf.
func attrNumber(v any) ScalarLeaf {
	if f, ok := v.(float64); ok {
		return ScalarLeaf{Float: f, IsFloat: true}
	}
	return ScalarLeaf{Int: v.(int64)}
}

// String returns the number as Go writes it.
func (l ScalarLeaf) String() string {
	if l.IsFloat {
		return fmt.Sprint(l.Float)
	}
	return fmt.Sprint(l.Int)
}

// beside returns 0 if an integer dtype can hold the number, as ATen's Scalar.to tells; -1 if the number
// is below its range, 1 if it is above or NaN.
func (l ScalarLeaf) beside(d DType) int {
	lo, hi := intRange(d)
	if l.IsFloat {
		switch {
		case l.Float < float64(lo):
			return -1
		case l.Float < 2*float64(hi/2+1): // hi+1, which a float64 holds
			return 0
		}
		return 1
	}
	if lo == 0 {
		lo = -hi // which wraps
	}
	switch {
	case l.Int < lo:
		return -1
	case l.Int > hi:
		return 1
	}
	return 0
}

// intRange returns the least and the largest number of an integer dtype.
func intRange(d DType) (lo, hi int64) {
	if d == U8 {
		return 0, math.MaxUint8
	}
	bits := 8 * d.Size()
	return -1 << (bits - 1), 1<<(bits-1) - 1
}

// requireFits fails for a number attribute that integers of dtype d cannot hold.
func requireFits(a Args, name string, d DType) {
	if !d.IsInt() {
		return
	}
	if n := attrNumber(a.Get(name)); n.beside(d) != 0 {
		a.failRange(name, n, d)
	}
}

// RangeError returns an *OpError of the op if elements of dtype d cannot hold the number, and nil
// otherwise. Integers hold what ATen's full lets them.
func (l *ScalarLeaf) RangeError(op string, d DType) error {
	if !d.IsInt() || l.beside(d) == 0 {
		return nil
	}
	return NewOpError(op, ErrArg, nil, "the number is %s", l.beyond(d))
}

// beyond says that the number is out of the range of an integer dtype.
func (l ScalarLeaf) beyond(d DType) string {
	lo, hi := intRange(d)
	return fmt.Sprintf("%v, which %v cannot hold: it has %d to %d", l, d, lo, hi)
}

// wrapped returns a number as an element of dtype d, as a tensor of rank 0 that is cast to it.
func (l ScalarLeaf) wrapped(d DType) any {
	switch {
	case !d.IsIntegral():
	case l.IsFloat:
		return FloatToInt(d, l.Float)
	default:
		return WrapInt(d, l.Int)
	}
	if l.IsFloat {
		return l.Float
	}
	return l.Int
}
