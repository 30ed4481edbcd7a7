package optim

import (
	"iter"
	"math"

	"github.com/loris-ml/loris"
)

var adamDefaults = config{beta1: 0.9, beta2: 0.999, eps: 1e-8}

// NewAdam returns Adam with the rate lr, as torch.optim.Adam. At step t:
//
//	g += decay·p
//	m = β₁·m + (1-β₁)·g
//	v = β₂·v + (1-β₂)·g²
//	p -= lr/(1-β₁ᵗ)·m / (√v/√(1-β₂ᵗ) + eps), with AMSGrad the largest v so far
//
// Options: Betas, Eps, AMSGrad, WeightDecay, DecayOnly, Maximize, Captured.
func NewAdam(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	return newAdam("Adam", false, params, lr, newConfig("Adam", adamDefaults, opts, "Betas", "Eps", "AMSGrad"))
}

// NewAdamW returns Adam with decoupled weight decay, as torch.optim.AdamW: p is multiplied
// by 1-lr·decay, with decay 0.01 by default, and then updated as in Adam. Options are those
// of NewAdam.
func NewAdamW(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	def := adamDefaults
	def.decay = 0.01
	return newAdam("AdamW", true, params, lr, newConfig("AdamW", def, opts, "Betas", "Eps", "AMSGrad"))
}

func newAdam(algorithm string, decoupled bool, params iter.Seq2[string, *loris.Variable], lr float64, c *config) *Optimizer {
	for _, b := range []float64{c.beta1, c.beta2} {
		check(algorithm, b >= 0 && b < 1, "a beta is %v, must be in [0, 1)", b)
	}
	check(algorithm, c.eps >= 0, "eps is %v, must not be negative", c.eps)
	return newOptimizer(algorithm, func(c config) rule { return &adam{c, decoupled} }, params, lr, c)
}

type adam struct {
	config
	decoupled bool
}

// The numbers that adam.update uses.
const (
	adamRate  = iota // lr/(1-β₁ᵗ)
	adamRoot         // √(1-β₂ᵗ)
	adamDecay        // decay, or 1-lr·decay if decoupled
	adamBeta1
	adamGain1 // 1-β₁
	adamBeta2
	adamGain2 // 1-β₂
	adamEps
	adamFactors
)

func (r *adam) slots(dims []int) []slot {
	if r.amsgrad {
		return likeParam(dims, "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
	}
	return likeParam(dims, "exp_avg", "exp_avg_sq")
}

func (r *adam) factors(lr float64, step int64) []any {
	f := r.constants()
	f[adamRate] = lr / (1 - math.Pow(r.beta1, float64(step)))
	f[adamRoot] = math.Sqrt(1 - math.Pow(r.beta2, float64(step)))
	if r.decoupled {
		f[adamDecay] = 1 - lr*r.decay
	}
	return f
}

func (r *adam) captured(lr, step *loris.Tensor) []any {
	f := r.constants()
	f[adamRate] = lr.Div(loris.Sub(1, loris.Pow(r.beta1, step)))
	f[adamRoot] = loris.Sub(1, loris.Pow(r.beta2, step)).Sqrt()
	if r.decoupled {
		f[adamDecay] = loris.Sub(1, lr.Mul(r.decay))
	}
	return f
}

func (r *adam) constants() []any {
	f := make([]any, adamFactors)
	f[adamDecay], f[adamEps] = r.decay, r.eps
	f[adamBeta1], f[adamGain1] = r.beta1, 1-r.beta1
	f[adamBeta2], f[adamGain2] = r.beta2, 1-r.beta2
	return f
}

func (r *adam) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	switch {
	case decay && r.decoupled:
		p = p.Mul(f[adamDecay])
	case decay:
		g = g.Add(p.Mul(f[adamDecay]))
	}
	m := r.average(state[0], g, f)
	v := state[1].Mul(f[adamBeta2]).Add(g.Mul(f[adamGain2]).Mul(g))
	next := []*loris.Tensor{m, v}
	if r.amsgrad {
		v = state[2].Maximum(v)
		next = append(next, v)
	}
	denominator := v.Sqrt().Div(f[adamRoot]).Add(f[adamEps])
	return p.Sub(m.Mul(f[adamRate]).Div(denominator)), next
}

// average is m + (1-β₁)·(g-m), which rounds as PyTorch's lerp does.
func (r *adam) average(m, g *loris.Tensor, f []*loris.Tensor) *loris.Tensor {
	diff := g.Sub(m)
	if 1-r.beta1 < 0.5 {
		return m.Add(diff.Mul(f[adamGain1]))
	}
	return g.Sub(diff.Mul(f[adamBeta1]))
}
