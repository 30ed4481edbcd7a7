package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// NewSGD returns stochastic gradient descent with the rate lr, as
// torch.optim.SGD:
//
//	g += decay·p
//	buf = momentum·buf + (1-dampening)·g, at first g
//	p -= lr·buf, with Nesterov lr·(g + momentum·buf), without momentum lr·g
//
// Options: Momentum, Dampening, Nesterov, WeightDecay, DecayOnly, Maximize,
// Captured.
func NewSGD(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	c := newConfig("SGD", config{}, opts, "Momentum", "Dampening", "Nesterov")
	check("SGD", c.momentum >= 0, "the momentum is %v, must not be negative", c.momentum)
	check("SGD", !c.nesterov || c.momentum > 0 && c.dampening == 0, "Nesterov needs a momentum and no dampening")
	return newOptimizer("SGD", func(c config) rule { return &sgd{c} }, params, lr, c)
}

type sgd struct{ config }

// The numbers that sgd.update uses.
const (
	sgdLR = iota
	sgdDecay
	sgdMomentum
	sgdGain // of a gradient in the moving sum
	sgdFactors
)

func (r *sgd) slots(dims []int) []slot {
	if r.momentum == 0 {
		return nil
	}
	return likeParam(dims, "momentum_buffer")
}

func (r *sgd) factors(lr float64, step int64) []any {
	f := r.constants()
	f[sgdLR] = lr
	f[sgdGain] = 1 - r.dampening
	if step == 1 {
		f[sgdGain] = 1.0
	}
	return f
}

func (r *sgd) captured(lr, step *loris.Tensor) []any {
	f := r.constants()
	f[sgdLR] = lr
	f[sgdGain] = 1.0
	if r.dampening != 0 {
		f[sgdGain] = step.Gt(1).Mul(-r.dampening).Add(1)
	}
	return f
}

func (r *sgd) constants() []any {
	f := make([]any, sgdFactors)
	f[sgdDecay], f[sgdMomentum] = r.decay, r.momentum
	return f
}

func (r *sgd) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	if decay {
		g = g.Add(p.Mul(f[sgdDecay]))
	}
	if r.momentum != 0 {
		// The sum is zero at first, so that the first step is recorded like the others.
		buf := state[0].Mul(f[sgdMomentum]).Add(g.Mul(f[sgdGain]))
		state = []*loris.Tensor{buf}
		if r.nesterov {
			g = g.Add(buf.Mul(f[sgdMomentum]))
		} else {
			g = buf
		}
	}
	return p.Sub(g.Mul(f[sgdLR])), state
}
