package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// Alpha is the factor of RMSprop's moving average of squares. The default is 0.99.
func Alpha(v float64) Option { return Option{"Alpha", func(c *config) { c.alpha = v }} }

// Centered has RMSprop divide by the deviation of the gradient instead of its size.
func Centered() Option { return Option{"Centered", func(c *config) { c.centered = true }} }

// NewRMSprop returns RMSprop with the rate lr, as torch.optim.RMSprop:
//
//	g += decay·p
//	v = α·v + (1-α)·g²
//	g /= √v + eps, if centered √(v - m²) + eps with the moving average m of g
//	p -= lr·g, with momentum lr·buf, buf = momentum·buf + g
//
// Options: Alpha, Eps, Momentum, Centered, WeightDecay, DecayOnly, Maximize, Captured, Group,
// MasterWeights.
func NewRMSprop(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	c := newConfig("RMSprop", config{alpha: 0.99, eps: 1e-8}, opts, "Alpha", "Eps", "Momentum", "Centered")
	check("RMSprop", c.alpha >= 0 && c.momentum >= 0 && c.eps >= 0, "alpha %v, momentum %v and eps %v must not be negative", c.alpha, c.momentum, c.eps)
	return newOptimizer("RMSprop", func(c config) rule { return &rmsprop{c} }, params, lr, c)
}

type rmsprop struct{ config }

// The numbers that rmsprop.update uses.
const (
	rmsLR = iota
	rmsDecay
	rmsAlpha
	rmsGain // 1-α
	rmsEps
	rmsMomentum
	rmsFactors
)

func (r *rmsprop) slots(dims []int) []slot {
	names := []string{"square_avg"}
	if r.momentum > 0 {
		names = append(names, "momentum_buffer")
	}
	if r.centered {
		names = append(names, "grad_avg")
	}
	return likeParam(dims, names...)
}

func (r *rmsprop) factors(lr float64, _ int64) []any {
	f := make([]any, rmsFactors)
	f[rmsLR], f[rmsDecay], f[rmsAlpha], f[rmsGain], f[rmsEps], f[rmsMomentum] = lr, r.decay, r.alpha, 1-r.alpha, r.eps, r.momentum
	return f
}

func (r *rmsprop) captured(lr, _ *loris.Tensor) []any {
	f := r.factors(0, 0)
	f[rmsLR] = lr
	return f
}

func (r *rmsprop) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	if decay {
		g = g.Add(p.Mul(f[rmsDecay]))
	}
	v := state[0].Mul(f[rmsAlpha]).Add(g.Mul(g).Mul(f[rmsGain]))
	next := []*loris.Tensor{v}
	var mean *loris.Tensor
	if r.centered {
		old := state[len(state)-1]
		mean = old.Add(g.Sub(old).Mul(f[rmsGain]))
		v = v.Sub(mean.Mul(mean))
	}
	step := g.Div(v.Sqrt().Add(f[rmsEps]))
	if r.momentum > 0 {
		step = state[1].Mul(f[rmsMomentum]).Add(step)
		next = append(next, step)
	}
	if r.centered {
		next = append(next, mean)
	}
	return p.Sub(step.Mul(f[rmsLR])), next
}
