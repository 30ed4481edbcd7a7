package ir

import (
	"cmp"
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
	CustomCall // what another runtime computes
	Complex    // makes complex numbers or takes them apart
	Fourier
	Collective // moves elements between processes
)

var categoryNames = [...]string{"", "pointwise", "reduction", "scan", "view", "creation", "indexing", "linalg", "neural", "random", "custom call", "complex", "fourier", "collective"}

// String returns the category in lower case.
func (c Category) String() string { return categoryNames[c] }

// Promotion says to which dtypes the operands are cast before the op. The casts are ordinary nodes.
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

// Cost tells what a pointwise op costs beside others. Backends choose by it what to compute again
// rather than to keep, and how far to unroll.
type Cost uint8

// The costs. A row that gives none has CostFunction.
const (
	CostFunction   Cost = iota // an elementary or special function: tens of instructions
	CostArithmetic             // an instruction or two
	CostRounding               // an instruction of long latency
	CostDivision               // a division or a square root
)

// nanos are what the costs are in machine code on vectors, in nanoseconds for an element.
var nanos = [...]float64{CostFunction: 0.5, CostArithmetic: 0.03, CostRounding: 0.1, CostDivision: 0.1}

// Nanos returns what an element costs in machine code on vectors, in nanoseconds, roughly.
func (c Cost) Nanos() float64 { return nanos[c] }

// NeutralSide says which operand of an op may be its neutral element.
type NeutralSide uint8

// The sides.
const (
	NoOperand     NeutralSide = iota
	SecondOperand             // x op n is x
	EitherOperand             // n op x is, too
	EitherInteger             // so it is for integers only: -0 + 0 is 0
)

// Neutral is the constant that an op of two operands returns the other operand for. A zero is +0.
type Neutral struct {
	Of    NeutralSide
	Value float64
}

// Spec is one row of the op table. It holds every fact about an op but for the code of the backends'
// kernels. Its meaning is given by exactly one of (Infer and kernels) or Decompose.
type Spec struct {
	Name string
	// GoName is the name in Go where it is not the CamelCase of Name.
	GoName   string
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
	// Complex writes a use with complex operands, or with a complex dtype, in terms of
	// ops on real ones; it takes the place of Infer, Decompose and VJP. Nil: the use is
	// what these say, which for a primitive with arithmetic is an error.
	Complex func(b *Builder, a Args) []Value
	// VJP returns for each operand the vector-Jacobian product, or an absent
	// Value where there is none. out are the node's outputs, grad their
	// cotangents (absent where none flows). A composite without a VJP is
	// differentiated through its decomposition; another op without one has
	// no gradient and stops it.
	VJP func(b *Builder, a Args, out, grad []Value) []Value
	// Impure marks ops of which equal uses must not be merged.
	Impure bool
	// Ordered marks ops of which every use runs exactly once, in the order of the Program: rewrites and
	// plans keep that order, also for results that nobody uses.
	Ordered bool
	// NoGrad says why an op without VJP has none, for the listing.
	NoGrad string
	// GradFails marks ops whose gradient exists and is unknown: differentiating through one fails,
	// where another op without a gradient contributes none.
	GradFails bool
	// Unlisted marks ops that packages and gradients call, not users: Ops leaves them out.
	Unlisted bool

	// HostOnly marks ops that backends of accelerators need not compute: factorisations and transforms.
	HostOnly bool
	// ComplexKernels marks composites whose VJP, and the kernels of backends that compute them whole,
	// take complex operands, too. The complex uses of others are decomposed.
	ComplexKernels bool
	// Cost is what a pointwise primitive costs.
	Cost Cost
	// Exact marks pointwise ops whose float results are among the operands but for the sign, or are
	// -1, 0 or 1: on narrow floats they need no rounding.
	Exact bool
	// Divides marks ops whose integer meaning panics with ErrZeroDivision for a second operand of 0.
	Divides bool
	// Neutral is the operand that changes nothing, if there is one.
	Neutral Neutral
	// Involution marks ops of one operand that are their own inverse on operands of the result's dtype.
	Involution bool
	// SameOnIntegers marks predicates of one operand that have one answer, Scalar.I1(0), for every integer
	// and bool.
	SameOnIntegers bool
	// ULPs bounds the error of any backend's float results, in units in the last place of f32 (narrower
	// floats are computed in f32 and rounded); 0 asks for the correctly rounded result. Constants are
	// not folded through an op that has a bound, so that a constant gives what data would.
	ULPs float64
	// ULPs64 is the bound of f64, with the error that package math makes in Scalar; ULPs+2 if it is 0.
	ULPs64 float64
	// Accumulates marks sums and products of many elements, which backends take in any order: the error
	// is bounded relative to the same computation on absolute values.
	Accumulates bool
	// Domain has for each operand the range in which samples for gradients are drawn, where the op is
	// not defined, or not smooth, on all of [-2, 2]. Ranges keep apart operands that bound each other.
	Domain [][2]float64
	// Numbers says of operands by name what becomes of plain numbers that integers of the op's dtype
	// cannot hold. The others wrap if they are Tensors and must fit if they are Scalars.
	Numbers map[string]NumberUse
	// Known, where set, may record other ops for one with a plain number as its second operand.
	Known func(b *Builder, x Value, n ScalarLeaf) (Value, bool)
	// KnownFirst is Known for a plain number as the first operand.
	KnownFirst func(b *Builder, x Value, n ScalarLeaf) (Value, bool)
	// Aliases are names that the text form takes for arguments beside ATen's.
	Aliases map[string]string

	// Op is this row's number.
	Op Op
	// pure: no attribute string is ever needed.
	pure bool
	// numbers is what the operands of each parameter are used for; nil if plain numbers wrap.
	numbers []NumberUse
	// scalars has bit i set when operand i is a Scalar; it is kept for
	// PromoteTensors, which treats those apart.
	scalars uint32
}

// Tolerance returns by how many units in the last place float results of dtype d may be off: see ULPs.
func (s *Spec) Tolerance(d DType) float64 {
	switch {
	case d != F64 || s.ULPs == 0:
		return s.ULPs
	case s.ULPs64 != 0:
		return s.ULPs64
	}
	return s.ULPs + 2
}

// Composite reports whether the op is defined by other ops.
func (s *Spec) Composite() bool { return s.Decompose != nil }

// Reduces reports whether the op is a reduction that is not defined by other ops, of which ReduceDims says what it
// reduces.
func (s *Spec) Reduces() bool { return s.Category == Reduction && !s.Composite() }

// GoIdent returns the op's name in Go: GoName or the CamelCase of Name.
func (s *Spec) GoIdent() string {
	if s.GoName != "" {
		return s.GoName
	}
	if rest, ok := strings.CutPrefix(s.Name, "fft_"); ok { // fft_irfft2 is IRFFT2
		kind, suffix, _ := strings.Cut(rest, "fft")
		return strings.ToUpper(kind) + "FFT" + capitalize(suffix)
	}
	var b strings.Builder
	for _, w := range strings.Split(s.Name, "_") {
		b.WriteString(cmp.Or(initialisms[w], capitalize(w)))
	}
	return b.String()
}

// initialisms are the words of ops' names that Go writes in capitals.
var initialisms = map[string]string{"lu": "LU", "qr": "QR", "svd": "SVD", "svdvals": "SVDVals"}

func capitalize(w string) string {
	if w == "" {
		return ""
	}
	return strings.ToUpper(w[:1]) + w[1:]
}

// Differentiable reports whether a gradient flows through the op.
func (s *Spec) Differentiable() bool { return s.VJP != nil || (s.Decompose != nil && s.NoGrad == "") }

var (
	specs  = []*Spec{nil} // by Op; row 0 is "no op"
	byName = map[string]Op{}
)

// declare gives an op its number before its row is registered, so that variables are set when the
// rows, whose gradients use them, are made.
func declare(name string) Op {
	if _, twice := byName[name]; twice {
		panic(fmt.Sprintf("ir: op %s is declared twice", name))
	}
	op := Op(len(specs))
	specs, byName[name] = append(specs, nil), op
	return op
}

// register adds a row; it is called from init functions only.
func register(schema string, s Spec) {
	sc, err := parseSchema(schema)
	if err != nil {
		panic(err)
	}
	op, declared := byName[sc.Name]
	if !declared {
		op = declare(sc.Name)
	}
	if specs[op] != nil {
		panic(fmt.Sprintf("ir: op %s is registered twice", sc.Name))
	}
	s.Schema, s.Name, s.Op, s.pure = sc, sc.Name, op, sc.pureTensors()
	s.numbers = s.numberUses()
	if s.Promote == PromoteTensors {
		s.scalars = scalarMask(sc)
	}
	if s.Infer == nil && s.Decompose == nil && s.Category == Pointwise {
		s.Infer = inferPointwise
	}
	if (s.Infer == nil) == (s.Decompose == nil) {
		panic(fmt.Sprintf("ir: op %s needs either Infer or Decompose", s.Name))
	}
	specs[op] = &s
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
	if int(o) < len(specs) && specs[o] != nil {
		return specs[o].Name
	}
	return fmt.Sprintf("op(%d)", uint16(o))
}

// Lookup returns the op with ATen's name.
func Lookup(name string) (Op, bool) {
	op, ok := byName[name]
	return op, ok
}

// Ops returns the rows of the table, sorted by category and name, but for call_model,
// which has no meaning of its own, and unlisted ones.
func Ops() []*Spec {
	out := slices.DeleteFunc(slices.Clone(specs[1:]), func(sp *Spec) bool {
		return sp == nil || sp.Category == CustomCall || sp.Unlisted
	})
	sort.Slice(out, func(i, j int) bool {
		if out[i].Category != out[j].Category {
			return out[i].Category < out[j].Category
		}
		return out[i].Name < out[j].Name
	})
	return out
}
