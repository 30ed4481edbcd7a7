package graph_test

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// A recurrent layer stays whole for a backend that computes it, but not where a Program has its
// gradient, too, which runs the layer's loop.
func TestLayersAreWholeWithoutGradients(t *testing.T) {
	leaf := func(dims ...int) ir.Value {
		return ir.NewLeaf(&graph.ParamLeaf{}, ir.MakeShape(ir.F32, dims...), ir.Device{}).Out(0)
	}
	supports := func(op ir.Op) bool { return op == aten.GRU || op == aten.Scan }
	for _, trained := range []bool{false, true} {
		b := &ir.Builder{}
		params := []ir.Value{leaf(9, 2, 3), leaf(1, 2, 4), leaf(12, 3), leaf(12, 4)}
		out := b.Call(aten.GRU, []any{params[0], params[1], params[2:], false, 1, 0.0, false, false, false})
		roots := out[:1:1]
		if trained {
			roots = append(roots, graph.Grad(b, new(graph.Walker), []ir.Value{b.Sum(out[0], nil, false)}, nil, params)...)
		}
		p := graph.FromValues("layer", params, roots)
		got, _ := graph.Optimize(p, graph.Options{Supports: supports})
		whole := slices.ContainsFunc(got.Instrs, func(in graph.Instr) bool { return in.Op == aten.GRU })
		if whole == trained {
			t.Errorf("trained %v: whole %v:\n%v", trained, whole, got)
		}
		if want, _ := graph.Optimize(p, graph.Options{Supports: func(op ir.Op) bool { return op == aten.Scan }}); trained && got.Hash() != want.Hash() {
			t.Errorf("not what a backend without the layer gets:\n%v\nwant:\n%v", got, want)
		}
	}
}
