package graph_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// TestGradientsOfAttentionCostNothingMore checks that a backend without kernels for
// attention computes what it would if there were no such op, only what it is made
// of: the gradients meet the forward pass and each other.
func TestGradientsOfAttentionCostNothingMore(t *testing.T) {
	for name, mask := range map[string]ir.Shape{
		"none": {}, "causal": {}, "bool": ir.MakeShape(ir.Bool, 5, 7), "added": ir.MakeShape(ir.F32, 2, 1, 5, 7),
	} {
		for _, d := range []ir.DType{ir.F32, ir.BF16} {
			// trained returns the Program of a loss and all gradients.
			trained := func(b *ir.Builder) *graph.Program {
				params := []graph.Param{
					{Name: "q", Shape: ir.MakeShape(d, 2, 4, 5, 6)}, {Name: "k", Shape: ir.MakeShape(d, 2, 2, 7, 6)}, {Name: "v", Shape: ir.MakeShape(d, 2, 2, 7, 3)},
				}
				pos := []any{nil, nil, nil, nil, name == "causal"}
				if mask.DType() != ir.Invalid {
					params = append(params, graph.Param{Name: "mask", Shape: mask})
				}
				vals := graph.NewParams(params)
				for i, v := range vals {
					pos[i] = v
				}
				loss := b.Sum(b.Call1(aten.Attention, pos, ir.A("enable_gqa", true)), nil, false)
				wrt := vals
				if name == "bool" {
					wrt = vals[:3]
				}
				var w graph.Walker
				return graph.FromValues("step", vals, append(graph.Grad(b, &w, []ir.Value{loss}, nil, wrt), loss))
			}
			inline := &ir.Builder{Rewrite: func(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
				if op != aten.Attention {
					return nil, false
				}
				return op.Spec().Decompose(b, ir.Args{Spec: op.Spec(), Attr: attr, In: in}), true
			}}
			p, q := trained(&ir.Builder{}), trained(inline)
			one, _ := graph.Optimize(p, graph.Options{})
			two, _ := graph.Optimize(q, graph.Options{})
			if len(one.Instrs) != len(two.Instrs) || one.Hash() != two.Hash() {
				t.Errorf("%s %v: %d instructions, want the %d of attention that is written out", name, d, len(one.Instrs), len(two.Instrs))
			}
			if len(p.Instrs) > 8 {
				t.Errorf("%s %v: %d instructions are recorded:\n%v", name, d, len(p.Instrs), p)
			}
			fused, _ := graph.Optimize(p, graph.Options{Supports: func(op ir.Op) bool { return op == aten.Attention || op == aten.AttentionBackward }})
			if got := len(fused.Instrs); got > 8 && name != "added" {
				t.Errorf("%s %v: %d instructions with kernels", name, d, got)
			}
		}
	}
}
