package graph_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// TestGradientsOfPieces checks that the gradient of a tensor whose pieces are used is its pieces one behind the other,
// with zeros around them where some are not used, and a sum where pieces are not apart.
func TestGradientsOfPieces(t *testing.T) {
	type piece struct{ from, to int }
	for _, c := range []struct {
		name   string
		pieces []piece
		count  map[ir.Op]int
	}{
		{"all", []piece{{0, 2}, {2, 5}, {5, 9}}, map[ir.Op]int{aten.Cat: 2}},
		{"in another order", []piece{{2, 5}, {0, 2}, {5, 9}}, map[ir.Op]int{aten.Cat: 2}},
		{"some", []piece{{1, 2}, {2, 5}}, map[ir.Op]int{aten.Cat: 1, aten.ConstantPadNd: 1}},
		{"a gap", []piece{{0, 2}, {3, 9}}, map[ir.Op]int{aten.Add: 1, aten.ConstantPadNd: 2}},
		{"one on another", []piece{{0, 5}, {4, 9}}, map[ir.Op]int{aten.Add: 1, aten.ConstantPadNd: 2}},
	} {
		b := &ir.Builder{}
		x := graph.NewParams([]graph.Param{{Name: "x", Shape: ir.MakeShape(ir.F32, 3, 9, 2)}})
		var outs []ir.Value
		for _, p := range c.pieces {
			outs = append(outs, b.Sum(b.Call1(aten.Exp, []any{b.Slice(x[0], 1, p.from, p.to, 1)}), nil, false))
		}
		var w graph.Walker
		p := graph.FromValues("g", x, graph.Grad(b, &w, outs, nil, x))
		for _, op := range []ir.Op{aten.Cat, aten.Add, aten.ConstantPadNd} {
			n := 0
			for i := range p.Instrs {
				if p.Instrs[i].Op == op {
					n++
				}
			}
			if n != c.count[op] {
				t.Errorf("%s: %d of %v, want %d\n%v", c.name, n, op, c.count[op], p)
			}
		}
	}
}
