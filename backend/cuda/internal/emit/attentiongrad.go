package emit

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// AttentionGradient computes the gradients of an Attention, which left its sums.
// Probabilities are computed again, twice: for the queries and for the keys, so that
// blocks need not add to what others add to.
//
// Its operands are the gradients of query, key and value, the gradient of out, out,
// sums, query, key, value, and the mask if there is one.
type AttentionGradient struct {
	Attention
	Grad, DQuery, DKey, DValue Lie
	// Shared says how many heads of query there are to one of key and value. They are
	// the last dimension of the batch if they are several.
	Shared int
}

// Takes reports whether there is a kernel on a device.
func (g *AttentionGradient) Takes(dev Limits) bool {
	most := 128
	if g.DType == ir.F32 {
		most = 64
	}
	return g.Attention.Takes(dev) && max(g.Dim, g.ValueDim) <= most && g.ValueDim > 0
}

// Plan returns how it is launched.
func (g *AttentionGradient) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	batch := numel(g.Batch)
	if batch == 0 {
		return &r.Plan
	}
	delta := r.alloc(4 * batch * g.Queries)
	frame := func() *slots {
		s := g.sizes(g.operands(&slots{}, 4, 5, 6).num(0, 0)).num(1, 0)
		s.at(3, 0).lie(g.Grad)
		for i, l := range []Lie{g.DQuery, g.DKey, g.DValue} {
			s.at(i, 0).lie(l)
		}
		s.at(Work, delta).num(g.Shared)
		s.words = append(s.words, math.Float64bits(g.Scale))
		return s
	}
	const rows = 64 // GradShape's
	launch := func(f string, blocks int) {
		if blocks > 0 {
			r.launch(f, "AttentionGradFrame", frame(), [3]int{dev.blocks(blocks), 1, 1}, [3]int{attentionThreads, 1, 1})
		}
	}
	kernel := fmt.Sprintf("<%s, %s, %d, %d, %v>", g.products(), g.masks(), width(g.Dim), width(g.ValueDim), g.Packed)
	launch(fmt.Sprintf("attention_delta<%s>", cxx.Stored(g.DType)), ceil(batch*g.Queries, attentionThreads/32))
	launch("attention_grad_query"+kernel, batch*ceil(g.Queries, rows))
	launch("attention_grad_key"+kernel, batch/g.Shared*ceil(g.Keys, rows))
	return &r.Plan
}
