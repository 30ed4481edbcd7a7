package workloads

import (
	"context"

	"github.com/loris-ml/loris"
)

// The size of GPT-2's smallest model, and of the cache of keys and values.
const (
	gptLayers, gptDim, gptHeads = 12, 768, 12
	gptVocab, gptPositions      = 50257, 1024
	gptContext                  = 256
	gptStart                    = 64 // the tokens that are in the cache at first
)

// gptLayer is one layer: its weights and its cache, [heads, context, size].
type gptLayer struct {
	norm1, qkv, out, norm2, up, down affine
	keys, values                     *loris.Variable
}

// gpt2 makes one token with a GPT-2 of 124 M random weights: all systems have a
// cache of 256 places, of which those up to the token's are attended to. Tokens
// are given, so that a near tie between two changes nothing.
func gpt2() *Workload {
	const weights = gptLayers*12*gptDim*gptDim + gptVocab*gptDim
	return &Workload{
		Name: "gpt2-decode", Must: 1, Aim: 0.8, FLOP: 2 * weights, Bytes: 4 * weights, Ops: 1, Runs: 3, Tolerance: 1e-4, Heavy: true,
		open: openGPT2,
	}
}

// gptToken returns the place and the token of a run.
func gptToken(run int) (place, token int64) {
	return int64(gptStart + run%(gptContext-gptStart)), int64(run * 7919 % gptVocab)
}

func openGPT2(ctx context.Context, s *loris.Session) (*Instance, error) {
	m := s.With()
	d := NewData(m)
	const size = gptDim / gptHeads
	words, places := d.Tensor(0.05, gptVocab, gptDim), d.Tensor(0.05, gptPositions, gptDim)
	var layers []*gptLayer
	for range gptLayers {
		layers = append(layers, &gptLayer{
			norm1: d.norm(gptDim), qkv: d.linear(gptDim, 3*gptDim), out: d.linear(gptDim, gptDim),
			norm2: d.norm(gptDim), up: d.linear(gptDim, 4*gptDim), down: d.linear(4*gptDim, gptDim),
			keys: d.Variable(1, gptHeads, gptContext, size), values: d.Variable(1, gptHeads, gptContext, size),
		})
	}
	last := d.norm(gptDim)
	all := m.With(loris.As(loris.I64)).Arange(0, gptContext, 1)
	logits := loris.NewVariable(m.Zeros(1, gptVocab))
	if err := s.Sync(ctx, all, logits.Value()); err != nil {
		return nil, err
	}
	forward := func(place, token *loris.Tensor) *loris.Tensor {
		x := loris.Embedding(words, token).Add(loris.Embedding(places, place))
		mask := all.Le(place).Unsqueeze(0)
		for _, l := range layers {
			parts := l.qkv.linear(l.norm1.norm(x)).Reshape(3, gptHeads, 1, size).Unbind()
			k := l.keys.Value().IndexCopy(1, place, parts[1])
			v := l.values.Value().IndexCopy(1, place, parts[2])
			l.keys.Assign(k)
			l.values.Assign(v)
			a := loris.ScaledDotProductAttention(parts[0], k, v, loris.AttnMask(mask))
			x = x.Add(l.out.linear(a.Reshape(1, gptDim)))
			x = x.Add(l.down.linear(l.up.linear(l.norm2.norm(x)).Gelu(loris.Approximate("tanh"))))
		}
		return last.norm(x).Linear(words)
	}
	return decoding(ctx, s, logits, forward, gptToken)
}
