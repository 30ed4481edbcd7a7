package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// LRDecay lets the rate of Adagrad fall as 1/(1 + v·steps). The default is 0.
func LRDecay(v float64) Option { return Option{"LRDecay", func(c *config) { c.lrDecay = v }} }

// NewAdagrad returns Adagrad with the rate lr, as torch.optim.Adagrad. At step t:
//
//	g += decay·p
//	sum += g²
//	p -= lr/(1 + (t-1)·lrdecay)·g/(√sum + eps)
//
// Options: LRDecay, Eps, by default 1e-10, WeightDecay, DecayOnly, Maximize, Captured, Group,
// MasterWeights.
func NewAdagrad(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	c := newConfig("Adagrad", config{eps: 1e-10}, opts, "LRDecay", "Eps")
	check("Adagrad", c.lrDecay >= 0 && c.eps >= 0, "the decay of the rate %v and eps %v must not be negative", c.lrDecay, c.eps)
	return newOptimizer("Adagrad", func(c config) rule { return &adagrad{c} }, params, lr, c)
}

type adagrad struct{ config }

func (r *adagrad) slots(dims []int) []slot { return likeParam(dims, "sum") }

func (r *adagrad) factors(lr float64, step int64) []any {
	return []any{lr / (1 + float64(step-1)*r.lrDecay), r.decay, r.eps}
}

func (r *adagrad) captured(lr, step *loris.Tensor) []any {
	return []any{lr.Div(step.Sub(1).Mul(r.lrDecay).Add(1)), r.decay, r.eps}
}

func (r *adagrad) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	if decay {
		g = g.Add(p.Mul(f[1]))
	}
	sum := state[0].Add(g.Mul(g))
	return p.Sub(g.Div(sum.Sqrt().Add(f[2])).Mul(f[0])), []*loris.Tensor{sum}
}
