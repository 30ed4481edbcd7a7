package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/randprog"
	"github.com/loris-ml/loris/ir"
)

// supports has some composites computed whole, as backends do.
func supports(op ir.Op) bool { return op == aten.Attention || op == aten.Scan }

// described is all that Programs may differ in.
func described(p *graph.Program, st graph.Stats) string {
	s := p.String() + fmt.Sprintln(p.Inferred(), st.Before, st.After)
	for _, k := range slices.Sorted(maps.Keys(st.Applied)) {
		s += fmt.Sprintln(k, st.Applied[k])
	}
	for i := range p.Instrs {
		s += fmt.Sprintln(p.Instrs[i].Line, p.Instrs[i].Called(), p.Instrs[i].Out, p.Instrs[i].NOut)
	}
	return s
}

// A Program that is written down by a template is the one that rewriting makes.
func TestTemplatesGiveWhatRewritingGives(t *testing.T) {
	programs := 300
	if longtest.Enabled() {
		programs = 4_000
	}
	resized, tried := 0, 0
	for seed := range uint64(programs) {
		rng := rand.New(rand.NewPCG(seed, 7))
		src := randprog.New(seed, randprog.Options{Stmts: 4 + int(seed%40), NoRandom: true, NoCarry: true})
		ts, kept := graph.NewTemplates(), ir.NewDecompositions()
		for k := range 8 {
			p := withSizes(src, rng, k)
			if p == nil {
				continue
			}
			want, wantStats := graph.Optimize(p, graph.Options{Supports: supports})
			got, gotStats := graph.Optimize(p, graph.Options{Supports: supports, Templates: ts, Decompositions: kept})
			if g, w := described(got, gotStats), described(want, wantStats); g != w {
				t.Fatalf("seed %d, sizes %d: %s\nby a template:\n%s\nrewritten:\n%s", seed, k, p, g, w)
			}
			tried++
			if got.Template() != nil && got.Template() != ownTemplate(got) {
				resized++
			}
		}
	}
	t.Logf("%d of %d Programs were written down by templates", resized, tried)
	if resized < tried/20 {
		t.Errorf("only %d of %d Programs were written down by templates", resized, tried)
	}
}

// ownTemplate returns the template that was made of the rewriting of a Program itself.
func ownTemplate(p *graph.Program) *graph.Template {
	if t := p.Template(); t != nil && t.Of(p) {
		return t
	}
	return nil
}

// withSizes returns the statements of a random program that can be recorded with other sizes, as a
// Program; nil if none can. Sizes 0 have those of the random program.
func withSizes(src *randprog.Program, rng *rand.Rand, k int) *graph.Program {
	others := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 34, 35, 64}
	sizes := map[int]int{}
	size := func(n int) int {
		if k == 0 || n < 0 {
			return n
		}
		if _, ok := sizes[n]; !ok {
			sizes[n] = n
			switch {
			case n > 1 && k < 5: // mostly under a renaming
				sizes[n] = n + k*(1+rng.IntN(3))
			case k >= 5 && rng.IntN(2) == 0:
				sizes[n] = others[rng.IntN(len(others))]
			}
		}
		return sizes[n]
	}
	b := &ir.Builder{Lines: ir.LinesOff}
	vals := make([]ir.Value, len(src.Shapes))
	var params []ir.Value
	for i, in := range src.Inputs {
		dims := in.Shape.Dims()
		for d := range dims {
			dims[d] = size(dims[d])
		}
		vals[i] = ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: fmt.Sprint("x", i)}, ir.MakeShape(in.Shape.DType(), dims...), ir.Device{}).Out(0)
		params = append(params, vals[i])
	}
	var last []ir.Value
	for i := range src.Stmts {
		b.Line = uintptr(1000*(k+1) + i)
		if outs := record(b, &src.Stmts[i], vals, size); outs != nil {
			last = outs
		}
	}
	var roots []ir.Value
	for _, r := range src.Outputs {
		if !vals[r].IsNil() {
			roots = append(roots, vals[r])
		}
	}
	if roots = append(roots, last...); len(roots) == 0 {
		return nil
	}
	return graph.FromValues("p", params, roots)
}

// record makes the nodes of a statement, with sizes among its attributes changed; nil if it can't.
func record(b *ir.Builder, st *randprog.Stmt, vals []ir.Value, size func(int) int) (outs []ir.Value) {
	for _, r := range st.Regs() {
		if vals[r].IsNil() {
			return nil
		}
	}
	if st.Kind != randprog.Op {
		return nil
	}
	defer func() {
		if recover() != nil {
			outs = nil
		}
	}()
	args := randprog.Bind(st.Args, 0, func(r randprog.Reg) any { return vals[r] }, func(rs []randprog.Reg) any {
		var in []ir.Value
		for _, r := range rs {
			in = append(in, vals[r])
		}
		return in
	})
	for i, p := range st.Op.Spec().Schema.Params {
		if sizes, ok := args[min(i, len(args)-1)].([]int); ok && i < len(args) && (p.Name == "shape" || p.Name == "size") {
			sizes = slices.Clone(sizes)
			for d := range sizes {
				sizes[d] = size(sizes[d])
			}
			args[i] = sizes
		}
	}
	outs = b.Call(st.Op, args)
	for i, r := range st.Out {
		vals[r] = outs[i]
	}
	return outs
}
