package ir_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// complexCase is a function of two complex vectors, and what it is on their elements.
type complexCase struct {
	name  string
	build func(b *ir.Builder, x, y ir.Value) ir.Value
	want  func(x, y complex128) complex128
}

func namedOp(name string) func(b *ir.Builder, x, y ir.Value) ir.Value {
	return func(b *ir.Builder, x, y ir.Value) ir.Value {
		op, _ := ir.Lookup(name)
		in := []any{x, y}
		return b.Call1(op, in[:len(op.Spec().Schema.Params)])
	}
}

func unaryCase(name string, f func(complex128) complex128) complexCase {
	return complexCase{name, namedOp(name), func(x, _ complex128) complex128 { return f(x) }}
}

var complexCases = []complexCase{
	{"add", namedOp("add"), func(x, y complex128) complex128 { return x + y }},
	{"sub", namedOp("sub"), func(x, y complex128) complex128 { return x - y }},
	{"mul", namedOp("mul"), func(x, y complex128) complex128 { return x * y }},
	{"div", namedOp("div"), func(x, y complex128) complex128 { return x / y }},
	unaryCase("neg", func(x complex128) complex128 { return -x }),
	unaryCase("reciprocal", func(x complex128) complex128 { return 1 / x }),
	unaryCase("abs", func(x complex128) complex128 { return complex(cmplx.Abs(x), 0) }),
	unaryCase("angle", func(x complex128) complex128 { return complex(cmplx.Phase(x), 0) }),
	unaryCase("conj", cmplx.Conj),
	unaryCase("real", func(x complex128) complex128 { return complex(real(x), 0) }),
	unaryCase("imag", func(x complex128) complex128 { return complex(imag(x), 0) }),
	unaryCase("exp", cmplx.Exp), unaryCase("log", cmplx.Log), unaryCase("sqrt", cmplx.Sqrt),
	unaryCase("sin", cmplx.Sin), unaryCase("cos", cmplx.Cos),
	unaryCase("square", func(x complex128) complex128 { return x * x }),
	{"a number", func(b *ir.Builder, x, _ ir.Value) ir.Value {
		return b.Mul(x, b.WrappedConst(2.5))
	}, func(x, _ complex128) complex128 { return 2.5 * x }},
	{"a real", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.Call1(aten.Mul, []any{x, b.Call1(aten.Cast, []any{y, ir.F64})})
	}, func(x, y complex128) complex128 { return x * complex(real(y), 0) }},
	{"where", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.Where(b.Binary(aten.Eq, x, x), y, x)
	}, func(_, y complex128) complex128 { return y }},
	{"ne", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.Where(b.Binary(aten.Ne, x, y), x, y)
	}, func(x, _ complex128) complex128 { return x }},
	{"cumsum of one", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.Add(b.Cumsum(b.Unsqueeze(x, 0), 0), b.Sum(b.Unsqueeze(y, 0), []int{0}, true))
	}, func(x, y complex128) complex128 { return x + y }},
	{"polar", func(b *ir.Builder, x, y ir.Value) ir.Value {
		op, _ := ir.Lookup("polar")
		return b.Call1(op, []any{b.Unary(aten.Abs, x), b.Call1(mustOp("angle"), []any{y})})
	}, func(x, y complex128) complex128 { return cmplx.Rect(cmplx.Abs(x), cmplx.Phase(y)) }},
	{"complex", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.Call1(mustOp("complex"), []any{b.Call1(mustOp("real"), []any{x}), b.Call1(mustOp("imag"), []any{y})})
	}, func(x, y complex128) complex128 { return complex(real(x), imag(y)) }},
	{"pad and slice", func(b *ir.Builder, x, _ ir.Value) ir.Value {
		p := b.PadConst(x, []int{1, 2}, b.Const(3.0, ir.C128))
		return b.Slice(p, 0, 1, 1+x.Dim(0), 1)
	}, func(x, _ complex128) complex128 { return x }},
	{"index_add", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.IndexAdd(x, 0, b.Iota(x.Dim(0), ir.I64), y)
	}, func(x, y complex128) complex128 { return x + y }},
	{"scatter_reduce", func(b *ir.Builder, x, y ir.Value) ir.Value {
		return b.ScatterReduce(x, 0, b.Iota(x.Dim(0), ir.I64), y, "sum")
	}, func(x, y complex128) complex128 { return x + y }},
	{"products of matrices", func(b *ir.Builder, x, y ir.Value) ir.Value {
		n := x.Dim(0)
		return b.Reshape(b.MatMul(b.Reshape(x, n, 1, 1), b.Reshape(y, n, 1, 1)), n)
	}, func(x, y complex128) complex128 { return x * y }},
}

func mustOp(name string) ir.Op {
	op, ok := ir.Lookup(name)
	if !ok {
		panic("no op " + name)
	}
	return op
}

// onPairs makes a case a call on pairs of reals that gives pairs.
func (c complexCase) onPairs(x, y data) opCall {
	return opCall{op: c.name, args: []any{x, y}, build: func(b *ir.Builder, v []ir.Value) []ir.Value {
		out := c.build(b, b.Unary(aten.ViewAsComplex, v[0]), b.Unary(aten.ViewAsComplex, v[1]))
		if out.DType().IsComplex() {
			out = b.Unary(aten.ViewAsReal, out)
		}
		return []ir.Value{out}
	}}
}

// TestComplexArithmetic holds each op to Go's complex numbers.
func TestComplexArithmetic(t *testing.T) {
	var x, y data
	x.dtype, y.dtype = ir.F64, ir.F64
	for _, p := range [][4]float64{
		{1, 2, 3, -4}, {-1.5, 0.5, 0.25, 2}, {0, -2, 1, 0}, {-3, 0, 0, 1}, {1e200, -1e200, 2e200, 1e200}, {1e-200, 1e-200, 3e-200, 0}, {-0.5, -0.25, -2, -1},
	} {
		x.vals, y.vals = append(x.vals, p[0], p[1]), append(y.vals, p[2], p[3])
	}
	n := len(x.vals) / 2
	x.dims, y.dims = []int{n, 2}, []int{n, 2}
	for _, c := range complexCases {
		call := c.onPairs(x, y)
		vals := graph.NewParams(params(call.operands()))
		var b ir.Builder
		got := eval(t, lowered(graph.FromValues(c.name, vals, call.record(&b, vals))), call.operands())[0]
		for i := range n {
			want := c.want(complex(x.vals[2*i], x.vals[2*i+1]), complex(y.vals[2*i], y.vals[2*i+1]))
			parts := []float64{real(want), imag(want)}
			mine := got[i:][:1]
			if len(got) == 2*n {
				mine = got[2*i:][:2]
			}
			for k, g := range mine {
				if w := parts[k]; g != w && !(math.Abs(g-w) <= 1e-14*cmplx.Abs(want)) && !(math.IsNaN(w) || math.IsInf(w, 0)) {
					t.Errorf("%s of element %d: part %d is %v, want %v", c.name, i, k, g, w)
				}
			}
		}
	}
}

// TestComplexGradients holds gradients to differences of the parts, which is PyTorch's
// convention.
func TestComplexGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	x, y := rnd(rng, 3, 2), rnd(rng, 3, 2)
	var calls []opCall
	for _, c := range complexCases {
		calls = append(calls, c.onPairs(x, y))
	}
	checkGradients(t, rng, 1, calls)
}

// TestGradientOfAbsAtZero pins what PyTorch gives where abs has no derivative.
func TestGradientOfAbsAtZero(t *testing.T) {
	d := fs([]int{2, 2}, 0, 0, 3, 4)
	vals := graph.NewParams(params([]data{d}))
	var b ir.Builder
	var w graph.Walker
	w.Walk(nil)
	out := b.Sum(b.Unary(aten.Abs, b.Unary(aten.ViewAsComplex, vals[0])), nil, false)
	g := graph.Grad(&b, &w, []ir.Value{out}, nil, vals)
	if got := eval(t, lowered(graph.FromValues("abs", vals, g)), []data{d})[0]; !sameFloats(got, []float64{0, 0, 0.6, 0.8}) {
		t.Errorf("gradient %v", got)
	}
}
