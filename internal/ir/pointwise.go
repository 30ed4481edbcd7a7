package ir

import "strings"

// Helpers that the rows of pointwise ops share. The rows are in arithmetic.go, elementary.go,
// compare.go, select.go, clamp.go and activation.go, each with its gradient beside it.

// Reasons why pointwise ops have no gradient.
const (
	noGradBool = "the result is bool"
	noGradBits = "the operands and the result are integers"
)

// unaryRow registers a pointwise primitive of one operand. A row with Scalar.I1 keeps integers; one
// without computes them in DefaultDType.
func unaryRow(name, doc string, s Spec) {
	s.Category, s.Doc = Pointwise, doc+" ATen's "+name+"."
	if s.Scalar.I1 == nil {
		s.Promote = PromoteIntToFloat
	}
	register(name+"(Tensor self) -> Tensor", s)
}

// floatUnary registers a function of floats; integers and bool compute in DefaultDType.
func floatUnary(name, formula string, s Spec) {
	unaryRow(name, formula+", elementwise; integers and bool give f32.", s)
}

// binaryRow registers a pointwise primitive of two operands, self and other, which broadcast and are
// promoted to one dtype.
func binaryRow(name, doc string, s Spec) { binaryRowOf(name, "other", doc, s) }

// binaryRowOf is binaryRow with ATen's name of the second operand.
func binaryRowOf(name, second, doc string, s Spec) {
	s.Category = Pointwise
	if s.Doc = doc; !strings.Contains(doc, "ATen's") {
		s.Doc += " ATen's " + name + "."
	}
	if s.Promote == PromoteNone {
		s.Promote = PromoteDefault
	}
	register(name+"(Tensor self, Tensor "+second+") -> Tensor", s)
}

// vjpFunc is the type of Spec.VJP.
type vjpFunc = func(b *Builder, a Args, out, grad []Value) []Value

// vjp1 is the gradient of y = op(x): f returns the cotangent of x from g, that of y.
func vjp1(f func(b *Builder, x, y, g Value) Value) vjpFunc {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		return []Value{f(b, a.In[0], out[0], grad[0])}
	}
}

// vjp2 is the gradient of z = op(x, y): f returns the cotangents of x and y from g, that of z, all
// with z's dimensions. They are summed over the dimensions along which each operand was broadcast.
func vjp2(f func(b *Builder, x, y, z, g Value) (gx, gy Value)) vjpFunc {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		x, y := a.In[0], a.In[1]
		gx, gy := f(b, x, y, out[0], grad[0])
		return []Value{b.sumTo(gx, x.Shape()), b.sumTo(gy, y.Shape())}
	}
}

// vjpZero is the gradient of functions that are flat wherever they are continuous.
func vjpZero(b *Builder, a Args, out, grad []Value) []Value {
	gs := make([]Value, len(a.In))
	for i, v := range a.In {
		gs[i] = b.fullLike(v, 0)
	}
	return gs
}

// floatComposite returns the decomposition of an op on floats: f gets operands that are widened
// already (see accDType), and its result is rounded to self's dtype. Another dtype of self fails with
// ErrDType.
func floatComposite(f func(b *Builder, a Args, in []Value) Value) func(b *Builder, a Args) []Value {
	return func(b *Builder, a Args) []Value {
		d := a.In[0].DType()
		if !d.IsFloat() {
			a.Fail(ErrDType, "not defined for %v operands", d)
		}
		return []Value{b.Cast(f(b, a, b.widenAll(a.In)), d)}
	}
}

// compositeVJP is the gradient of such an op: f gets the operands, the result and its cotangent, all
// widened, and returns the cotangents of the first operands with the result's dimensions; absent ones
// stay so.
func compositeVJP(f func(b *Builder, a Args, in []Value, out, g Value) []Value) vjpFunc {
	return func(b *Builder, a Args, out, grad []Value) []Value {
		gs := make([]Value, len(a.In))
		for i, g := range f(b, a, b.widenAll(a.In), b.widen(out[0]), b.widen(grad[0])) {
			if !g.IsNil() {
				gs[i] = b.Cast(b.sumTo(g, a.In[i].Shape()), a.In[i].DType())
			}
		}
		return gs
	}
}

func (b *Builder) widenAll(in []Value) []Value {
	out := make([]Value, len(in))
	for i, v := range in {
		out[i] = b.widen(v)
	}
	return out
}

// zeroOf is the scalar 0 of x's dtype.
func (b *Builder) zeroOf(x Value) Value { return b.Const(0, x.DType()) }

// scale multiplies by a constant.
func (b *Builder) scale(x Value, c float64) Value { return b.Mul(x, b.Const(c, x.DType())) }

// shift adds a constant.
func (b *Builder) shift(x Value, c float64) Value { return b.Add(x, b.Const(c, x.DType())) }

// oneMinus is 1 - x.
func (b *Builder) oneMinus(x Value) Value { return b.Sub(b.Const(1, x.DType()), x) }

// inferPointwise broadcasts the operands; the result has the dtype of the last one (operands are
// promoted before) or bool for a predicate.
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
		a.Fail(ErrDType, "not defined for %v operands", d)
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

// noBool returns the Infer of pointwise ops that ATen does not define on bool. hint, added to the
// error, names the op to use on masks instead.
func noBool(hint string) func(Args) []Shape {
	return func(a Args) []Shape {
		if a.In[len(a.In)-1].DType() == Bool {
			a.Fail(ErrDType, "not defined for bool operands%s", hint)
		}
		return inferPointwise(a)
	}
}
