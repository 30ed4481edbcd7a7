package onnx

import (
	"math"
	"math/rand/v2"

	"github.com/loris-ml/loris"
)

// randomRows are the ops that draw numbers: from the session's generator, or, where the node has a
// seed, from one of its own that begins there in every call.
var randomRows = map[string]*row{
	"RandomNormal":      one(0, 0, func(c *call, _ []*value) *value { return c.random(c.list("shape"), tFloat, c.normal) }),
	"RandomUniform":     one(0, 0, func(c *call, _ []*value) *value { return c.random(c.list("shape"), tFloat, c.uniform) }),
	"RandomNormalLike":  one(1, 1, func(c *call, in []*value) *value { return c.random(in[0].dims, in[0].elem, c.normal) }),
	"RandomUniformLike": one(1, 1, func(c *call, in []*value) *value { return c.random(in[0].dims, in[0].elem, c.uniform) }),
	"Bernoulli": one(1, 1, func(c *call, in []*value) *value {
		u := c.drawn(in[0].dims, false)
		e := in[0].elem
		if c.has("dtype") {
			e = c.elemAttr("dtype", 0)
		}
		return out(e, u.Lt(c.tensor(in[0]).Cast(loris.F32)).Cast(e.dtype()))
	}),
	"Multinomial": one(1, 1, multinomial),
}

func (c *call) random(dims []int, e elemType, f func(dims []int) *loris.Tensor) *value {
	c.checkShape(dims)
	e = c.elemAttr("dtype", e)
	if !e.float() {
		c.unsupported("random numbers of %v", e)
	}
	return out(e, f(dims).Cast(e.dtype()))
}

func (c *call) normal(dims []int) *loris.Tensor {
	return c.drawn(dims, true).Mul(c.float("scale", 1)).Add(c.float("mean", 0))
}

func (c *call) uniform(dims []int) *loris.Tensor {
	low, high := c.float("low", 0), c.float("high", 1)
	return c.drawn(dims, false).Mul(high - low).Add(low)
}

// drawn returns f32 numbers, uniform in [0, 1) or normal.
func (c *call) drawn(dims []int, normal bool) *loris.Tensor {
	if !c.has("seed") {
		if normal {
			return c.run.make.Randn(dims...)
		}
		return c.run.make.Rand(dims...)
	}
	c.table(dims...)
	r := rand.New(rand.NewPCG(math.Float64bits(c.float("seed", 0)), uint64(c.node.index)))
	v := make([]float32, product(dims))
	for i := range v {
		if normal {
			v[i] = float32(r.NormFloat64())
		} else {
			v[i] = r.Float32()
		}
	}
	return c.run.make.FromSlice(v, dims...)
}

// multinomial draws classes by their logarithmic scores: the largest after Gumbel noise.
func multinomial(c *call, in []*value) *value {
	x := c.tensor(in[0])
	n := c.int("sample_size", 1)
	if x.Rank() != 2 || n < 0 {
		c.fail("%d samples of %v", n, in[0])
	}
	e := c.elemAttr("dtype", tInt32)
	u := c.drawn([]int{x.Dim(0), n, x.Dim(1)}, false).Clamp(1e-30, nil)
	noise := u.Log().Neg().Log().Neg()
	return out(e, x.Cast(loris.F32).Unsqueeze(1).Add(noise).Argmax(loris.Dim(2)).Cast(e.dtype()))
}
