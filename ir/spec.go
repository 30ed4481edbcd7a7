package ir

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Op identifies a row of the op table.
type Op uint16

// Category groups the ops in listings and tells backends which kernel family
// an op belongs to.
type Category uint8

// The categories.
const (
	Pointwise Category = iota + 1
	Reduction
	Scan
	View
	Creation
	Indexing
	Linalg
	Neural
	Random
	Foreign // what another runtime computes
)

var categoryNames = [...]string{"", "pointwise", "reduction", "scan", "view", "creation", "indexing", "linalg", "neural", "random", "foreign"}

// String returns the category in lower case.
func (c Category) String() string { return categoryNames[c] }

// Promotion says how the operands' dtypes meet before the op; the casts that
// it needs are ordinary nodes in front of it.
type Promotion uint8

// The promotions.
const (
	PromoteNone       Promotion = iota // operands stay as they are
	PromoteDefault                     // to their ResultType
	PromoteIntToFloat                  // to their ResultType, integers to DefaultDType
	PromoteTail                        // like PromoteDefault but for the first operand (where)
	PromoteFirst                       // to the dtype of the first operand (constant_pad_nd)
	PromoteScalars                     // plain numbers to the dtype that the first operand computes in, tensors stay (addmm)
	PromoteTensors                     // Tensor operands to their ResultType, Scalar operands to the dtype that composites compute in on it (lerp)
)

// Scalar is the meaning of a pointwise op on single elements. F works on
// floats (f16, bf16 and f32 are widened, computed and rounded once), I on
// integers (int64, wrapped to the width afterwards; bool is 0 or 1). A
// predicate returns 0 or 1 and its result dtype is bool. Nil means that the
// op is not defined on such operands. B1, where it is set, takes the place of
// I1 for bool (bitwise_not, whose integer meaning never gives 0 for 0 or 1).
type Scalar struct {
	F1 func(x float64) float64
	F2 func(x, y float64) float64
	F3 func(x, y, z float64) float64
	I1 func(x int64) int64
	I2 func(x, y int64) int64
	I3 func(x, y, z int64) int64
	B1 func(x bool) bool
}

// Spec is one row of the op table: the whole meaning of an op, but for the
// kernels of the backends. Exactly one of (Infer and kernels) or Decompose
// gives it: a composite is written once over other ops.
type Spec struct {
	Name     string
	Doc      string
	Schema   *Schema
	Category Category
	Promote  Promotion
	Scalar   Scalar
	// Infer returns the shapes of the outputs, or fails by a.Fail. Nil for a
	// composite (the decomposition tells) and for pointwise ops (broadcast).
	Infer func(a Args) []Shape
	// Predicate marks pointwise ops whose result is bool.
	Predicate bool
	// Decompose writes a composite in terms of other ops.
	Decompose func(b *Builder, a Args) []Value
	// VJP returns for each operand the vector-Jacobian product, or an absent
	// Value where there is none. out are the node's outputs, grad their
	// cotangents (absent where none flows). A composite without a VJP is
	// differentiated through its decomposition; another op without one has
	// no gradient and stops it.
	VJP func(b *Builder, a Args, out, grad []Value) []Value
	// Impure marks ops whose uses are not made one, however equal they are.
	Impure bool
	// NoGrad says why an op without VJP has none, for the listing.
	NoGrad string
	// GradFails makes a gradient that would flow through the op an error, for ops
	// that have one which is not known.
	GradFails bool
	// Op is this row's number.
	Op Op
	// pure: no attribute string is ever needed.
	pure bool
	// scalars has bit i set when operand i is a Scalar; it is kept for
	// PromoteTensors, which treats those apart.
	scalars uint32
}

// Composite reports whether the op is defined by other ops.
func (s *Spec) Composite() bool { return s.Decompose != nil }

// Differentiable reports whether a gradient flows through the op.
func (s *Spec) Differentiable() bool { return s.VJP != nil || (s.Decompose != nil && s.NoGrad == "") }

var (
	specs  = []*Spec{nil} // by Op; row 0 is "no op"
	byName = map[string]Op{}
)

// register adds a row; it is called from init functions only.
func register(schema string, s Spec) Op {
	sc, err := ParseSchema(schema)
	if err != nil {
		panic(err)
	}
	s.Schema, s.Name, s.Op, s.pure = sc, sc.Name, Op(len(specs)), sc.pureTensors()
	if _, dup := byName[s.Name]; dup {
		panic(fmt.Sprintf("ir: op %s is registered twice", s.Name))
	}
	if s.Promote == PromoteTensors {
		s.scalars = scalarMask(sc)
	}
	if s.Infer == nil && s.Decompose == nil && s.Category == Pointwise {
		s.Infer = inferPointwise
	}
	if (s.Infer == nil) == (s.Decompose == nil) {
		panic(fmt.Sprintf("ir: op %s needs either Infer or Decompose", s.Name))
	}
	specs = append(specs, &s)
	byName[s.Name] = s.Op
	return s.Op
}

// scalarMask tells which operands are Scalars. Operands that may be left out or
// be many would make their places uncertain.
func scalarMask(sc *Schema) (mask uint32) {
	i := 0
	for _, p := range sc.Params {
		switch {
		case p.Kind == KindScalar:
			mask |= 1 << i
			i++
		case p.Kind == KindTensor:
			i++
		case p.Kind.Operand():
			panic(fmt.Sprintf("ir: the promotion of op %s needs fixed operands, %s is %s", sc.Name, p.Name, p.Type))
		}
	}
	return mask
}

// Spec returns the row of an op.
func (o Op) Spec() *Spec { return specs[o] }

// String returns ATen's name of the op.
func (o Op) String() string {
	if int(o) < len(specs) && o > 0 {
		return specs[o].Name
	}
	return fmt.Sprintf("op(%d)", uint16(o))
}

// Lookup returns the op with ATen's name.
func Lookup(name string) (Op, bool) {
	op, ok := byName[name]
	return op, ok
}

// Ops returns the rows of the table, sorted by category and name, but for
// call_model, which has no meaning of its own, and ops that only gradients record,
// whose names begin with a low line and end with "_backward".
func Ops() []*Spec {
	out := slices.DeleteFunc(slices.Clone(specs[1:]), func(sp *Spec) bool {
		return sp.Category == Foreign || sp.Name[0] == '_' && strings.HasSuffix(sp.Name, "_backward")
	})
	sort.Slice(out, func(i, j int) bool {
		if out[i].Category != out[j].Category {
			return out[i].Category < out[j].Category
		}
		return out[i].Name < out[j].Name
	})
	return out
}

// inferPointwise broadcasts the operands; the result has the dtype of the last
// one (operands are promoted before) or bool for a predicate.
func inferPointwise(a Args) []Shape {
	s := a.In[0].Shape()
	for _, v := range a.In[1:] {
		var ok bool
		if s, ok = BroadcastDims(s, v.Shape()); !ok {
			a.Fail(ErrShape, "the operands do not broadcast together")
		}
	}
	d := a.In[len(a.In)-1].DType()
	if d.IsStorage() {
		a.Fail(ErrDType, "no arithmetic is defined on %v", d)
	}
	sc := &a.Spec.Scalar
	isF := sc.F1 != nil || sc.F2 != nil || sc.F3 != nil
	isI := sc.I1 != nil || sc.I2 != nil || sc.I3 != nil
	if (d.IsFloat() && !isF) || (!d.IsFloat() && !isI) {
		a.Fail(ErrDType, "not defined for %v operands", d)
	}
	if a.Spec.Predicate {
		d = Bool
	}
	return []Shape{s.WithDType(d)}
}
