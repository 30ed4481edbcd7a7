package optim

import (
	"iter"
	"math"
	"slices"

	"github.com/loris-ml/loris"
)

// Beta2Decay is the power of the step by which Adafactor's average of squares slows down. The
// default is -0.8.
func Beta2Decay(v float64) Option { return Option{"Beta2Decay", func(c *config) { c.beta2Decay = v }} }

// ClipUpdate bounds the root of the mean square of Adafactor's updates. The default is 1.
func ClipUpdate(v float64) Option { return Option{"ClipUpdate", func(c *config) { c.clip = v }} }

// Eps2 bounds Adafactor's two denominators: of squares of gradients, 0 for the epsilon of the
// parameter's dtype, which is the default, and of the parameter's size, by default 1e-3.
func Eps2(squares, size float64) Option {
	return Option{"Eps2", func(c *config) { c.eps1, c.eps2 = squares, size }}
}

// NewAdafactor returns Adafactor with the rate lr, as torch.optim.Adafactor. Of matrices it keeps
// the mean squares of rows and columns only. Updates are relative to the size of the parameter:
// at step t the rate is max(eps2, √mean(p²))·min(lr, 1/√t).
//
// Options: Beta2Decay, ClipUpdate, Eps2, WeightDecay, DecayOnly, Maximize, Captured, Group,
// MasterWeights.
func NewAdafactor(params iter.Seq2[string, *loris.Variable], lr float64, opts ...Option) *Optimizer {
	c := newConfig("Adafactor", config{beta2Decay: -0.8, clip: 1, eps2: 1e-3}, opts, "Beta2Decay", "ClipUpdate", "Eps2")
	check("Adafactor", c.beta2Decay <= 0, "Beta2Decay is %v, must not be positive", c.beta2Decay)
	check("Adafactor", c.clip >= 1, "ClipUpdate is %v, must be at least 1", c.clip)
	check("Adafactor", c.eps1 >= 0 && c.eps2 >= 0, "eps %v and %v must not be negative", c.eps1, c.eps2)
	return newOptimizer("Adafactor", func(c config) rule { return &adafactor{c} }, params, lr, c)
}

type adafactor struct{ config }

func (r *adafactor) slots(dims []int) []slot {
	if len(dims) < 2 {
		return likeParam(dims, "variance")
	}
	row, col := slices.Clone(dims), slices.Clone(dims)
	row[len(dims)-1], col[len(dims)-2] = 1, 1
	return []slot{{"row_var", row}, {"col_var", col}}
}

// The numbers are the rate before the parameter's size, the factor of weight decay, and the weight
// of the newest squares.
func (r *adafactor) factors(lr float64, step int64) []any {
	t := float64(step)
	return []any{min(lr, 1/math.Sqrt(t)), 1 - lr*r.decay, math.Pow(t, r.beta2Decay)}
}

func (r *adafactor) captured(lr, step *loris.Tensor) []any {
	return []any{lr.Minimum(step.Rsqrt()), loris.Sub(1, lr.Mul(r.decay)), step.Pow(r.beta2Decay)}
}

// epsilon is the distance from 1 to the next number of the dtype in which updates are computed.
func epsilon(d loris.DType) float64 {
	if d == loris.F64 {
		return 0x1p-52
	}
	return 0x1p-23
}

func (r *adafactor) update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor) {
	eps := r.eps1
	if eps == 0 {
		eps = epsilon(p.DType())
	}
	root := func(x *loris.Tensor) *loris.Tensor { return x.Square().Mean().Sqrt() }
	rate := root(p).Maximum(r.eps2).Mul(f[0])
	if decay {
		p = p.Mul(f[1])
	}
	newest := func(old, square *loris.Tensor) *loris.Tensor { return old.Lerp(square, f[2]) }
	var next []*loris.Tensor
	var variance *loris.Tensor
	if square := g.Square(); g.Rank() < 2 {
		variance = newest(state[0], square)
		next = []*loris.Tensor{variance}
	} else {
		row := newest(state[0], square.Mean(loris.Dim(-1), loris.Keepdim(true)))
		col := newest(state[1], square.Mean(loris.Dim(-2), loris.Keepdim(true)))
		variance = row.MatMul(col).Div(row.Mean(loris.Dim(-2), loris.Keepdim(true)).Maximum(eps))
		next = []*loris.Tensor{row, col}
	}
	step := variance.Maximum(eps * eps).Rsqrt().Mul(g)
	scale := root(step).Div(r.clip).Maximum(1.0)
	return p.Sub(step.Mul(rate.Div(scale))), next
}
