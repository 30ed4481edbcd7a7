package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/randprog"
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
		ts, kept, seen := graph.NewTemplates(), ir.NewDecompositions(), map[*graph.Template]bool{}
		for k := range 8 {
			p := randprog.Sized(src, rng, k)
			if p == nil {
				continue
			}
			want, wantStats := graph.Optimize(p, graph.Options{Supports: supports})
			got, gotStats := graph.Optimize(p, graph.Options{Supports: supports, Templates: ts, Decompositions: kept})
			if g, w := described(got, gotStats), described(want, wantStats); g != w {
				t.Fatalf("seed %d, sizes %d: %s\nby a template:\n%s\nrewritten:\n%s", seed, k, p, g, w)
			}
			tried++
			if t := got.Template(); t != nil {
				if seen[t] {
					resized++
				}
				seen[t] = true
			}
		}
	}
	t.Logf("%d of %d Programs were written down by templates", resized, tried)
	if resized < tried/20 {
		t.Errorf("only %d of %d Programs were written down by templates", resized, tried)
	}
}
