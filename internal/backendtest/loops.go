package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/ref"
)

// loopBody is a body of the op scan. carried and sequences are the numbers of its first
// parameters; the others are constants.
type loopBody struct {
	name               string
	carried, sequences int
	text               string
}

// loopBodies differ in what is carried, in dtypes and in what is returned.
var loopBodies = []loopBody{
	{"recurrent", 1, 1, `program @body {
  %h = parameter "h" : f32[2,3]
  %x = parameter "x" : f32[2,3]
  %w = parameter "w" : f32[3,3]
  %0 = tanh(add(%x, matmul(%h, %w)))
  return %0, mul(%0, 2.0)
}`},
	{"products", 2, 1, `program @body {
  %h = parameter "h" : f64[2,9]
  %g = parameter "g" : f64[2,9]
  %x = parameter "x" : f64[2,9]
  %w = parameter "w" : f64[9,9]
  %v = parameter "v" : f64[9,9]
  %0 = tanh(add(%x, matmul(%h, permute(%w, dims=[1,0]))))
  %1 = sigmoid(matmul(%g, %v))
  return mul(%0, %1), %0, add(%0, %g)
}`},
	{"counter", 2, 0, `program @body {
  %i = parameter "i" : i64[1]
  %s = parameter "s" : f32[]
  %t = parameter "t" : f32[9]
  %0 = add(%s, sum(index_select(%t, dim=0, index=fmod(%i, 7))))
  return add(fmod(%i, 7), 1), %0, %0, %i
}`},
	{"narrow", 1, 2, `program @body {
  %h = parameter "h" : f16[3]
  %x = parameter "x" : u8[3]
  %y = parameter "y" : bool[]
  %0 = mul(add(%h, cast(%x, dtype=f16)), 0.25)
  return %0, gt(%0, 0.5), %x, logical_not(%y)
}`},
	{"passes", 2, 1, `program @body {
  %h = parameter "h" : f32[5]
  %g = parameter "g" : f32[5]
  %x = parameter "x" : f32[5]
  %c = parameter "c" : f32[]
  return %x, %h, %g, %g, %c, full(size=[2], fill_value=3.0, dtype=f32)
}`},
	{"nothing carried", 0, 2, `program @body {
  %x = parameter "x" : f32[4]
  %y = parameter "y" : bf16[4]
  return softmax(mul(%x, cast(%y, dtype=f32)), dim=0)
}`},
	{"no results", 1, 1, `program @body {
  %h = parameter "h" : f32[]
  %x = parameter "x" : f32[]
  return add(mul(%h, 0.5), %x)
}`},
}

// loopUse is a scan with its options.
type loopUse struct {
	length, every int
	reverse       bool
}

func loopUses() (uses []loopUse) {
	if !longtest.Enabled() {
		return []loopUse{{0, 3, false}, {1, 0, false}, {2, 1, false}, {3, 1, true}, {7, 3, false}}
	}
	for _, n := range []int{0, 1, 2, 7} {
		for _, every := range []int{0, 1, 3} {
			uses = append(uses, loopUse{n, every, false})
		}
		uses = append(uses, loopUse{n, 1, true})
	}
	return uses
}

// program returns a Program of one loop and its inputs.
func (lb *loopBody) program(t *testing.T, u loopUse) (*graph.Program, [][]byte) {
	body, err := graph.Parse(lb.text)
	if err != nil {
		t.Fatalf("%s: %v", lb.name, err)
	}
	rng := rand.New(rand.NewPCG(uint64(u.length), 5))
	var params []graph.Param
	var inputs [][]byte
	for i, q := range body.Params {
		dims := q.Shape.Dims()
		if k := i - lb.carried; k >= 0 && k < lb.sequences {
			dims = append([]int{u.length}, dims...)
		}
		x := random(rng, q.Shape.DType(), dims...)
		if q.Shape.DType() == ir.I64 { // places
			x = indices(rng, ir.I64, 7, dims...)
		}
		params, inputs = append(params, graph.Param{Name: fmt.Sprintf("p%d", i), Shape: x.shape}), append(inputs, x.data)
	}
	b := ir.Builder{Lines: ir.LinesOff}
	vals := graph.NewParams(params)
	k, x := lb.carried, lb.carried+lb.sequences
	l := graph.Loop{Init: vals[:k], Xs: vals[k:x], Consts: vals[x:], Body: body, Length: u.length, Reverse: u.reverse, Every: u.every}
	return graph.FromValues("loop", vals, l.Record(&b)), inputs
}

// unrolled is a Program without loops.
func unrolled(p *graph.Program) *graph.Program {
	out, _ := graph.Optimize(p, graph.Options{NoRules: true, Supports: func(op ir.Op) bool { return op != aten.Scan && !op.Spec().Composite() }})
	return out
}

// gradientsOf adds to a Program the gradients of its floating results, weighted by them, with respect
// to its floating parameters.
func gradientsOf(p *graph.Program) *graph.Program {
	b := ir.Builder{Lines: ir.LinesOff}
	params := graph.NewParams(p.Params)
	all := p.Build(&b, params)
	var outs, wrt []ir.Value
	for _, v := range all {
		if v.DType().IsFloat() {
			outs = append(outs, v)
		}
	}
	for _, v := range params {
		if v.DType().IsFloat() {
			wrt = append(wrt, v)
		}
	}
	var w graph.Walker
	return graph.FromValues("gradients", params, append(all, graph.Grad(&b, &w, outs, outs, wrt)...))
}

// loops holds loops, their gradients and the gradients of those against the same without loops.
func (s *suite) loops(t *testing.T) {
	for i := range loopBodies {
		lb := &loopBodies[i]
		t.Run(lb.name, func(t *testing.T) {
			for _, u := range loopUses() {
				p, inputs := lb.program(t, u)
				plain := unrolled(p)
				s.sameAs(t, u, "loop", p, plain, inputs)
				first, firstPlain := gradientsOf(p), gradientsOf(plain)
				s.sameAs(t, u, "gradient", first, firstPlain, inputs)
				if u.length == 2 || u.length == 7 && u.every == 3 && longtest.Enabled() {
					s.sameAs(t, u, "second gradient", gradientsOf(first), gradientsOf(firstPlain), inputs)
				}
			}
		})
	}
}

// sameAs runs a Program on the backend and one that means the same on ref.
func (s *suite) sameAs(t *testing.T, u loopUse, what string, p, same *graph.Program, inputs [][]byte) {
	t.Helper()
	lowered, _ := graph.Optimize(p, graph.Options{Supports: s.b.Supports})
	same, _ = graph.Optimize(same, graph.Options{NoRules: true})
	want, err := ref.Eval(same, inputs)
	if err != nil {
		t.Fatalf("%+v: %s: ref: %v\n%s", u, what, err, same)
	}
	got, err := s.run(context.Background(), lowered, inputs)
	if err != nil {
		t.Fatalf("%+v: %s: %v\n%s", u, what, err, lowered)
	}
	c := comparison{rtol: 2e-3, atol: 2e-3}
	if msg := c.diff(lowered, got, want); msg != "" {
		t.Fatalf("%+v: %s: %s\n%s", u, what, msg, lowered)
	}
}
