package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// NewLion returns Lion with the rate lr, of Chen et al., "Symbolic Discovery of Optimization
// Algorithms":
//
//	p *= 1 - lr·decay
//	p -= lr·sign(β₁·m + (1-β₁)·g)
//	m = β₂·m + (1-β₂)·g
//
// Options: Betas, by default 0.9 and 0.99, WeightDecay, DecayOnly, Maximize, Captured, Group,
// MasterWeights.
func NewLion(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	c := newConfig("Lion", config{beta1: 0.9, beta2: 0.99}, opts, "Betas")
	for _, b := range []float64{c.beta1, c.beta2} {
		check("Lion", b >= 0 && b < 1, "a beta is %v, must be in [0, 1)", b)
	}
	return newOptimizer("Lion", func(c config) rule { return &lion{c} }, params, lr, c)
}

type lion struct{ config }

func (r *lion) slots(dims []int) []slot { return likeParam(dims, "exp_avg") }

func (r *lion) factors(lr float64, _ int64) []any {
	return []any{lr, 1 - lr*r.decay, r.beta1, 1 - r.beta1, r.beta2, 1 - r.beta2}
}

func (r *lion) captured(lr, _ *loris.Tensor) []any {
	f := r.factors(0, 0)
	f[0], f[1] = lr, loris.Sub(1, lr.Mul(r.decay))
	return f
}

func (r *lion) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	if decay {
		p = p.Mul(f[1])
	}
	direction := state[0].Mul(f[2]).Add(g.Mul(f[3])).Sign()
	m := state[0].Mul(f[4]).Add(g.Mul(f[5]))
	return p.Sub(direction.Mul(f[0])), []*loris.Tensor{m}
}
