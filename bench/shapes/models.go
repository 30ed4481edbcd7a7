package main

import (
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// The sizes of the models.
const (
	gptLayers, gptDim, gptHeads, gptVocab, gptPlaces = 3, 128, 4, 256, 1024
	gruSteps, gruDim                                 = 100, 32
)

// tokens makes the input of a GPT: more tokens for each i.
func tokens(m loris.Maker, i int) *loris.Tensor {
	return m.FromSlice(workloads.NewData(m).Ints(33+i, gptVocab))
}

// batches makes the input of a GRU, [batch, steps, gruDim]: a larger batch for each i.
func batches(m loris.Maker, i int) *loris.Tensor {
	return workloads.NewData(m).Tensor(1, 3+i, gruSteps, gruDim)
}

// gpt is a GPT of random weights.
type gpt struct {
	words, places *loris.Variable
	layers        []layer
	last          affine
}

type affine struct{ w, b *loris.Variable }

type layer struct{ norm1, qkv, out, norm2, up, down affine }

func newGPT(m loris.Maker) *gpt {
	d := workloads.NewData(m)
	linear := func(in, out int) affine {
		scale := float32(1 / math.Sqrt(float64(in)))
		return affine{d.Variable(scale, out, in), d.Variable(scale, out)}
	}
	norm := func() affine { return affine{d.Variable(1, gptDim), d.Variable(0.1, gptDim)} }
	g := &gpt{words: d.Variable(0.05, gptVocab, gptDim), places: d.Variable(0.05, gptPlaces, gptDim), last: norm()}
	for range gptLayers {
		g.layers = append(g.layers, layer{norm(), linear(gptDim, 3*gptDim), linear(gptDim, gptDim), norm(), linear(gptDim, 4*gptDim), linear(4*gptDim, gptDim)})
	}
	return g
}

// variables lists the parameters with their names.
func (g *gpt) variables() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		all := []affine{{g.words, g.places}, g.last}
		for _, l := range g.layers {
			all = append(all, l.norm1, l.qkv, l.out, l.norm2, l.up, l.down)
		}
		for i, a := range all {
			if !yield(fmt.Sprintf("%d.w", i), a.w) || !yield(fmt.Sprintf("%d.b", i), a.b) {
				return
			}
		}
	}
}

func (a affine) linear(x *loris.Tensor) *loris.Tensor {
	return x.Linear(a.w.Value(), loris.Bias(a.b.Value()))
}

func (a affine) norm(x *loris.Tensor) *loris.Tensor {
	return x.LayerNorm([]int{gptDim}, loris.Weight(a.w.Value()), loris.Bias(a.b.Value()))
}

// forward returns the logits, [tokens, gptVocab].
func (g *gpt) forward(tokens *loris.Tensor) *loris.Tensor {
	n := tokens.Dim(0)
	x := loris.Embedding(g.words.Value(), tokens).Add(g.places.Value().Narrow(0, 0, n))
	return g.body(x, func(_ int, q, k, v *loris.Tensor) *loris.Tensor {
		return loris.ScaledDotProductAttention(q, k, v, loris.IsCausal(true))
	})
}

// body computes the layers, whose attention is given.
func (g *gpt) body(x *loris.Tensor, attend func(layer int, q, k, v *loris.Tensor) *loris.Tensor) *loris.Tensor {
	n := x.Dim(0)
	for i, l := range g.layers {
		parts := l.qkv.linear(l.norm1.norm(x)).Reshape(n, 3, gptHeads, gptDim/gptHeads).Permute(1, 2, 0, 3).Unbind()
		a := attend(i, parts[0], parts[1], parts[2])
		x = x.Add(l.out.linear(a.Transpose(0, 1).Reshape(n, gptDim)))
		x = x.Add(l.down.linear(l.up.linear(l.norm2.norm(x)).Gelu()))
	}
	return g.last.norm(x).Linear(g.words.Value())
}

// gru is an unrolled recurrent layer of random weights.
type gru struct{ input, hidden affine }

func newGRU(m loris.Maker) *gru {
	d := workloads.NewData(m)
	a := func() affine { return affine{d.Variable(0.1, 3*gruDim, gruDim), d.Variable(0.1, 3*gruDim)} }
	return &gru{a(), a()}
}

// forward returns the last state, [batch, gruDim].
func (g *gru) forward(x *loris.Tensor) *loris.Tensor {
	h := x.Select(1, 0)
	for t := range gruSteps {
		in, state := g.input.linear(x.Select(1, t)).Chunk(3, loris.Dim(1)), g.hidden.linear(h).Chunk(3, loris.Dim(1))
		r, z := in[0].Add(state[0]).Sigmoid(), in[1].Add(state[1]).Sigmoid()
		n := in[2].Add(r.Mul(state[2])).Tanh()
		h = n.Add(z.Mul(h.Sub(n)))
	}
	return h
}
