package workloads

import (
	"context"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

// llamaSize is the size of a model as LLaMA's, of its cache, and of the groups of its weights.
type llamaSize struct{ layers, dim, heads, hidden, vocab, context, group int }

// llamaLayer is one layer: its norms, weights of 4 bits, and its cache, [heads, context, size].
type llamaLayer struct {
	norm1, norm2                 *loris.Tensor
	q, k, v, out, gate, up, down *nn.QuantizedLinear
	keys, values                 *loris.Variable
}

// llamaDecode makes one token with a model as LLaMA's of random weights of 4 bits. As in gpt2-decode
// tokens are given.
func llamaDecode(z llamaSize) *Workload {
	weights := float64(z.layers*(4*z.dim*z.dim+3*z.dim*z.hidden) + z.vocab*z.dim)
	return &Workload{
		Name: "llama-decode-i4", Must: 1.1, Aim: 0.9, FLOP: 2 * weights, Bytes: weights * (0.5 + 8/float64(z.group)), Ops: 1, Runs: 2, Tolerance: 2e-3,
		Heavy: true, Large: true, Memory: true, Peers: []string{"eager"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) { return z.open(ctx, s) },
	}
}

func (z llamaSize) open(ctx context.Context, s *loris.Session) (*Instance, error) {
	m := s.With()
	d := NewData(m)
	size := z.dim / z.heads
	var failed error
	linear := func(in, out int) *nn.QuantizedLinear {
		init := func(loris.Maker, ...int) *loris.Tensor { return d.Tensor(float32(1/math.Sqrt(float64(in))), out, in) }
		l := nn.QuantizeLinear(nn.NewLinear(in, out, nn.With(m), nn.NoBias(), nn.InitWeight(init)), 4, z.group)
		if failed == nil {
			failed = s.MarkStep(ctx) // the weights in f32 can go
		}
		return l
	}
	words := d.Tensor(1, z.vocab, z.dim)
	var layers []*llamaLayer
	for range z.layers {
		layers = append(layers, &llamaLayer{
			norm1: d.norm(z.dim).w, q: linear(z.dim, z.dim), k: linear(z.dim, z.dim), v: linear(z.dim, z.dim), out: linear(z.dim, z.dim),
			norm2: d.norm(z.dim).w, gate: linear(z.dim, z.hidden), up: linear(z.dim, z.hidden), down: linear(z.hidden, z.dim),
			keys: d.Variable(1, z.heads, z.context, size), values: d.Variable(1, z.heads, z.context, size),
		})
	}
	last, head := d.norm(z.dim).w, linear(z.dim, z.vocab)
	all := m.With(loris.As(loris.I64)).Arange(0, z.context, 1)
	angles := all.Cast(loris.F32).Unsqueeze(1).Mul(m.Arange(0, size/2, 1).Mul(-2 * math.Log(10000) / float64(size)).Exp())
	cos, sin := angles.Cos(), angles.Sin()
	logits := loris.NewVariable(m.Zeros(1, z.vocab))
	if failed == nil {
		failed = s.Sync(ctx, all, cos, sin)
	}
	if failed != nil {
		return nil, failed
	}
	rms := func(x, w *loris.Tensor) *loris.Tensor {
		return x.RmsNorm([]int{z.dim}, loris.Weight(w), loris.Eps(1e-5))
	}
	forward := func(place, token *loris.Tensor) *loris.Tensor {
		c, n := cos.IndexSelect(0, place), sin.IndexSelect(0, place)
		rotated := func(x *loris.Tensor) *loris.Tensor { // [1, dim] as [heads, 1, size]
			h := x.Reshape(z.heads, 1, size).Chunk(2, loris.Dim(-1))
			return loris.Cat([]*loris.Tensor{h[0].Mul(c).Sub(h[1].Mul(n)), h[1].Mul(c).Add(h[0].Mul(n))}, loris.Dim(-1))
		}
		x := loris.Embedding(words, token)
		mask := all.Le(place).Unsqueeze(0)
		for _, l := range layers {
			y := rms(x, l.norm1)
			k := l.keys.Value().IndexCopy(1, place, rotated(l.k.Forward(y)))
			v := l.values.Value().IndexCopy(1, place, l.v.Forward(y).Reshape(z.heads, 1, size))
			l.keys.Assign(k)
			l.values.Assign(v)
			a := loris.ScaledDotProductAttention(rotated(l.q.Forward(y)), k, v, loris.AttnMask(mask))
			x = x.Add(l.out.Forward(a.Reshape(1, z.dim)))
			y = rms(x, l.norm2)
			x = x.Add(l.down.Forward(l.gate.Forward(y).Silu().Mul(l.up.Forward(y))))
		}
		return head.Forward(rms(x, last))
	}
	return decoding(ctx, s, logits, forward, func(run int) (place, token int64) {
		return int64(z.context/4 + run%(z.context-z.context/4)), int64(run * 7919 % z.vocab)
	})
}
