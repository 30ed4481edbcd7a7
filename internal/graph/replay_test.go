package graph_test

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// gradientCase is a graph and what is differentiated in it.
type gradientCase struct {
	name string
	make func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value)
}

func named(op string) ir.Op {
	o, ok := ir.Lookup(op)
	if !ok {
		panic(op)
	}
	return o
}

// gradientCases begin alike, so that a recorder records their gradients at few places.
var gradientCases = []gradientCase{
	{"of two leaves", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, y))}, nil, []ir.Value{x, y}
	}},
	{"in another order", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, y))}, nil, []ir.Value{y, x}
	}},
	{"of the same leaf twice", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, x))}, nil, []ir.Value{x, x}
	}},
	{"of a leaf that is not used", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, y))}, nil, []ir.Value{w, y}
	}},
	{"with a cotangent", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, y))}, []ir.Value{c}, []ir.Value{x, y}
	}},
	{"with a cotangent that is a leaf of the graph", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		return []ir.Value{b.Exp(b.Mul(x, y))}, []ir.Value{y}, []ir.Value{x, y}
	}},
	{"of two results", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		v := b.Exp(b.Mul(x, y))
		return []ir.Value{v, v}, []ir.Value{{}, c}, []ir.Value{x, v}
	}},
	{"of two results with one cotangent twice", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		v := b.Exp(b.Mul(x, y))
		return []ir.Value{v, v}, []ir.Value{c, c}, []ir.Value{x}
	}},
	{"of two results with two cotangents", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		v := b.Exp(b.Mul(x, y))
		return []ir.Value{v, v}, []ir.Value{c, w}, []ir.Value{x}
	}},
	{"through composites", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		h := b.Call1(named("relu"), []any{b.MatMul(x, y)})
		h = b.Call1(named("layer_norm"), []any{h, []int{4}})
		return []ir.Value{b.Call1(named("log_softmax"), []any{h, 1})}, nil, []ir.Value{x, y}
	}},
	{"of several outputs of one op", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		v := b.Call(aten.Sort, []any{b.Mul(x, y)})
		return []ir.Value{v[0]}, nil, []ir.Value{x}
	}},
	{"of gradients", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		var walker graph.Walker
		return graph.Grad(b, &walker, []ir.Value{b.Exp(b.Mul(x, y))}, nil, []ir.Value{x}), nil, []ir.Value{x, y}
	}},
	{"with a number", func(b *ir.Builder, x, y, w, c ir.Value) (outs, cotangents, wrt []ir.Value) {
		v, _ := b.BinaryNumber(aten.Mul, x, 3.0, false)
		return []ir.Value{b.Exp(b.Mul(v, y))}, nil, []ir.Value{x}
	}},
}

// gradientResult is what differentiating a case recorded.
type gradientResult struct {
	text   string
	params []int    // which leaves the parameters are
	used   []uint32 // marks of the leaves and of the results
}

func (l *gradientCase) run(b *ir.Builder) gradientResult {
	leaves := []ir.Value{leaf(ir.F32, 4, 4), leaf(ir.F32, 4, 4), leaf(ir.F32, 4, 4), leaf(ir.F32, 4, 4)}
	outs, cotangents, wrt := l.make(b, leaves[0], leaves[1], leaves[2], leaves[3])
	var w graph.Walker
	grads := graph.Grad(b, &w, outs, cotangents, wrt)
	// What comes after is recorded from the right place on.
	grads = append(grads, b.Mul(grads[0], outs[0]))
	po := w.Walk(grads)
	p, nodes := graph.FromPostOrder("p", &po)
	r := gradientResult{text: p.String()}
	for _, n := range nodes {
		r.params = append(r.params, slices.IndexFunc(leaves, func(v ir.Value) bool { return v.Node == n }))
	}
	for _, v := range append(append(leaves, outs...), grads...) {
		r.used = append(r.used, v.Node.Used)
	}
	return r
}

// TestGradientsReplay compares the gradients that a recorder takes in step after step, of one case and
// of several in turn, with those that a Builder without a trie takes.
func TestGradientsReplay(t *testing.T) {
	check := func(t *testing.T, b *ir.Builder, l *gradientCase) {
		t.Helper()
		got, want := l.run(b), l.run(&ir.Builder{})
		b.NextStep()
		if got.text != want.text || !slices.Equal(got.params, want.params) || !slices.Equal(got.used, want.used) {
			t.Fatalf("%s: recorded\n%s%v %v, want\n%s%v %v", l.name, got.text, got.params, got.used, want.text, want.params, want.used)
		}
	}
	for i := range gradientCases {
		t.Run(gradientCases[i].name, func(t *testing.T) {
			b := ir.NewRecorder()
			for range 5 {
				check(t, b, &gradientCases[i])
			}
			for k := range gradientCases {
				check(t, b, &gradientCases[k])
				check(t, b, &gradientCases[i])
			}
		})
	}
}
