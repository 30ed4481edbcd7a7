package ir

import (
	"fmt"
	"math"
	"strconv"
	"testing"
)

// A tiny evaluator for graphs of single elements: pointwise ops by their Scalar
// functions, and the few others that pointwise gradients use, which on
// them are the identity.

// scalar is a value of a dtype: F for floats, I for integers and bool.
type scalar struct {
	d DType
	F float64
	I int64
}

func (s scalar) String() string {
	if s.d.IsFloat() {
		return strconv.FormatFloat(s.F, 'g', -1, 64)
	}
	return strconv.FormatInt(s.I, 10)
}

// toDType is cast.
func (s scalar) toDType(d DType) scalar {
	switch {
	case s.d.IsFloat() && d.IsFloat():
		return scalar{d: d, F: RoundFloat(d, s.F)}
	case s.d.IsFloat():
		return scalar{d: d, I: FloatToInt(d, s.F)}
	case d.IsFloat():
		return scalar{d: d, F: IntToFloat(d, s.I)}
	}
	return scalar{d: d, I: WrapInt(d, s.I)}
}

type testLeaf struct{ v scalar }

func (testLeaf) LeafName() string { return "test" }

// leafOf returns a graph input with a value; its dimensions, if any, are of size 1.
func leafOf(v scalar, dims ...int) Value {
	return NewLeaf(testLeaf{v}, MakeShape(v.d, dims...), Device{}).Out(0)
}

func parseScalar(t testing.TB, d DType, text string) scalar {
	t.Helper()
	var err error
	s := scalar{d: d}
	if d.IsFloat() {
		s.F, err = strconv.ParseFloat(text, 64)
	} else {
		s.I, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type evaluator map[*Node]scalar

// eval computes a value; an integer division by zero panics.
func (e evaluator) eval(v Value) scalar {
	if s, ok := e[v.Node]; ok {
		return s
	}
	s := e.compute(v.Node)
	e[v.Node] = s
	return s
}

func (e evaluator) compute(n *Node) scalar {
	switch l := n.Leaf().(type) {
	case testLeaf:
		return l.v
	case *ScalarLeaf:
		d := n.Shapes()[0].DType()
		if l.IsFloat {
			return scalar{d: F64, F: l.Float}.toDType(d)
		}
		return scalar{d: I64, I: l.Int}.toDType(d)
	}
	sp, a := n.spec(), n.Args()
	if sp.Composite() {
		return e.eval(sp.Decompose(&Builder{}, a)[0])
	}
	in := make([]scalar, len(a.In))
	for i, v := range a.In {
		in[i] = e.eval(v)
	}
	d := n.Shapes()[0].DType()
	switch sp.Op {
	case opFull:
		switch c := a.Get("fill_value").(type) {
		case int64:
			return scalar{d: I64, I: c}.toDType(d)
		case float64:
			return scalar{d: F64, F: c}.toDType(d)
		}
	case opCast:
		return in[0].toDType(d)
	case opSum, opReshape, opExpand:
		return in[0]
	}
	return evalPointwise(sp, d, in)
}

func evalPointwise(sp *Spec, d DType, in []scalar) scalar {
	sc, last := sp.Scalar, in[len(in)-1]
	if last.d.IsFloat() {
		var y float64
		switch len(in) {
		case 1:
			y = sc.F1(last.F)
		case 2:
			y = sc.F2(in[0].F, last.F)
		case 3:
			y = sc.F3(float64(in[0].I), in[1].F, last.F)
		}
		if d == Bool {
			return scalar{d: d, I: int64(y)}
		}
		return scalar{d: d, F: RoundFloat(d, y)}
	}
	if sc.B1 != nil && last.d == Bool {
		return scalar{d: d, I: b2i(sc.B1(last.I != 0))}
	}
	var y int64
	switch len(in) {
	case 1:
		y = sc.I1(last.I)
	case 2:
		y = sc.I2(in[0].I, last.I)
	case 3:
		y = sc.I3(in[0].I, in[1].I, last.I)
	}
	return scalar{d: d, I: WrapInt(d, y)}
}

// expanding returns a Builder that writes composites without a gradient of their
// own as their decomposition, so that every node left has a VJP or stops.
func expanding() *Builder {
	return &Builder{Rewrite: func(b *Builder, op Op, attr string, in []Value) ([]Value, bool) {
		sp := op.Spec()
		if !sp.Composite() || sp.VJP != nil {
			return nil, false
		}
		return sp.Decompose(b, Args{Spec: sp, Attr: attr, In: in}), true
	}}
}

// gradients returns the gradients of y with respect to the leaves xs, by reverse
// accumulation; absent where y does not depend on x.
func gradients(b *Builder, y Value, xs []Value) []Value {
	var order []*Node
	seen := map[*Node]bool{}
	var visit func(n *Node)
	visit = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, v := range n.Inputs() {
			visit(v.Node)
		}
		order = append(order, n)
	}
	visit(y.Node)
	grad := map[*Node]Value{y.Node: b.fullLike(y, 1)}
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		g, ok := grad[n]
		if !ok || n.IsLeaf() || n.spec().VJP == nil {
			continue
		}
		for k, gx := range n.spec().VJP(b, n.Args(), n.outs(), []Value{g}) {
			if gx.IsNil() {
				continue
			}
			x := n.Inputs()[k]
			if gx.Shape() != x.Shape() {
				panic(fmt.Sprintf("gradient %d of %s is %v, want %v", k, n.Op(), gx.Shape(), x.Shape()))
			}
			if old, ok := grad[x.Node]; ok {
				gx = b.Add(old, gx)
			}
			grad[x.Node] = gx
		}
	}
	out := make([]Value, len(xs))
	for i, x := range xs {
		out[i] = grad[x.Node]
	}
	return out
}

// near reports whether two floats agree to a relative error, or an absolute one
// where terms of size 1 cancel, and in their kind where they are infinite or NaN.
func near(got, want, rel, abs float64) bool {
	switch {
	case math.IsNaN(got) || math.IsNaN(want):
		return math.IsNaN(got) && math.IsNaN(want)
	case got == want:
		return true
	}
	return math.Abs(got-want) <= math.Max(rel*math.Abs(want), abs)
}
