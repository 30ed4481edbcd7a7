package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// wideProducts compute products of 16-bit floats whose results are f32.
var wideProducts = byType[lowerFunc]{ir.BF16: multiplyFloats[float32, gemm.BF16], ir.F16: multiplyFloats[float32, gemm.F16]}

// narrowFactors returns a Program whose products in f32 of factors that were widened from a 16-bit
// float, as those of addmm are, have the narrow factors: the kernel widens them itself or multiplies
// them as they are, and sums in f32 either way. Casts that nothing else uses are left out. It returns
// the Program itself if it has no such products.
func narrowFactors(p *graph.Program) *graph.Program {
	if !slices.ContainsFunc(p.Instrs, func(in graph.Instr) bool { return in.Op == aten.MatMul && p.Shape(in.Out).DType() == ir.F32 }) {
		return p
	}
	narrow := map[graph.ID]graph.ID{} // by what they are widened to
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if in.Op == aten.Cast && p.Shape(in.Out).DType() == ir.F32 && wideProducts[p.Shape(in.Args[0]).DType()] != nil {
			narrow[in.Out] = in.Args[0]
		}
	}
	q := *p
	q.Instrs = nil
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if in.Op != aten.MatMul || p.Shape(in.Out).DType() != ir.F32 {
			continue
		}
		x, okX := narrow[in.Args[0]]
		y, okY := narrow[in.Args[1]]
		if !okX || !okY || p.Shape(x).DType() != p.Shape(y).DType() {
			continue
		}
		if q.Instrs == nil {
			q.Instrs = slices.Clone(p.Instrs)
		}
		q.Instrs[i].Args = []graph.ID{x, y}
	}
	if q.Instrs == nil {
		return p
	}
	used := map[graph.ID]bool{}
	for _, id := range q.Returns {
		used[id] = true
	}
	for i := range q.Instrs {
		for _, id := range q.Instrs[i].Args {
			used[id] = true
		}
	}
	q.Instrs = slices.DeleteFunc(q.Instrs, func(in graph.Instr) bool {
		_, widened := narrow[in.Out]
		return widened && !used[in.Out]
	})
	return &q
}
