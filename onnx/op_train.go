package onnx

import (
	"math"

	"github.com/loris-ml/loris"
)

// trainRows are the optimisers of ai.onnx.preview.training: each updates any number of tensors.
var trainRows = map[string]*row{
	"ai.onnx.preview.training.Adagrad":  many(3, -1, func(c *call, in []*value) []*value { return c.update(in, 2, adagrad) }),
	"ai.onnx.preview.training.Momentum": many(3, -1, func(c *call, in []*value) []*value { return c.update(in, 2, momentum) }),
	"ai.onnx.preview.training.Adam":     many(3, -1, func(c *call, in []*value) []*value { return c.update(in, 3, adam) }),
}

// update calls a rule for each tensor. The inputs are the rate, the count of steps, and then one list
// of tensors after the other: the tensors, their gradients, and each state. The outputs are the tensors
// and the states.
func (c *call) update(in []*value, states int, rule func(c *call, rate *loris.Tensor, count *value, x, g *loris.Tensor, state []*loris.Tensor) []*loris.Tensor) []*value {
	lists := states + 1
	n := (len(in) - 2) / lists
	if n*lists+2 != len(in) || n < 1 {
		c.fail("%d inputs are no lists of the same length", len(in)-2)
	}
	outs := make([]*value, states*n)
	for i := range n {
		var state []*loris.Tensor
		for s := 2; s < lists; s++ {
			state = append(state, c.tensor(in[2+s*n+i]))
		}
		for k, t := range rule(c, c.tensor(in[0]), in[1], c.tensor(in[2+i]), c.tensor(in[2+n+i]), state) {
			outs[k*n+i] = out(in[2+i].elem, t)
		}
	}
	return outs
}

// decayed adds the gradient of the norm of x to a gradient.
func (c *call) decayed(x, g *loris.Tensor) *loris.Tensor {
	return x.Mul(c.float("norm_coefficient", 0)).Add(g)
}

func adagrad(c *call, rate *loris.Tensor, count *value, x, g *loris.Tensor, state []*loris.Tensor) []*loris.Tensor {
	r := rate.Div(c.tensor(count).Cast(rate.DType()).Mul(c.float("decay_factor", 0)).Add(1))
	g = c.decayed(x, g)
	h := state[0].Add(g.Mul(g))
	return []*loris.Tensor{x.Sub(r.Mul(g).Div(h.Sqrt().Add(c.float("epsilon", 1e-6)))), h}
}

func momentum(c *call, rate *loris.Tensor, count *value, x, g *loris.Tensor, state []*loris.Tensor) []*loris.Tensor {
	alpha, beta := c.float("alpha", 0), c.float("beta", 0)
	g = c.decayed(x, g)
	first := c.tensor(count).Le(0)
	v := state[0].Mul(alpha).Add(loris.Where(first, g, g.Mul(beta)))
	step := v
	if c.text("mode", "standard") == "nesterov" {
		step = g.Add(v.Mul(alpha))
	}
	return []*loris.Tensor{x.Sub(rate.Mul(step)), v}
}

func adam(c *call, rate *loris.Tensor, count *value, x, g *loris.Tensor, state []*loris.Tensor) []*loris.Tensor {
	alpha, beta := c.float("alpha", 0.9), c.float("beta", 0.999)
	g = c.decayed(x, g)
	v := state[0].Mul(alpha).Add(g.Mul(1 - alpha))
	h := state[1].Mul(beta).Add(g.Mul(g).Mul(1 - beta))
	t := c.tensor(count).Cast(rate.DType())
	power := func(b float64) *loris.Tensor { return t.Mul(math.Log(b)).Exp().Neg().Add(1) }
	corrected := loris.Where(t.Gt(0), rate.Mul(power(beta).Sqrt()).Div(power(alpha)), rate)
	next := x.Sub(corrected.Mul(v.Div(h.Sqrt().Add(c.float("epsilon", 1e-6)))))
	return []*loris.Tensor{next.Mul(1 - c.float("norm_coefficient_post", 0)), v, h}
}
