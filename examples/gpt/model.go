package main

import (
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

// gpt is a transformer that predicts the next byte: rotary positions, normalisation before each layer.
type gpt struct {
	nn.Base
	tokens *nn.Embedding
	blocks []*block
	norm   *nn.RMSNorm
	head   *nn.Linear
}

func newGPT(m loris.Maker, vocabulary int) *gpt {
	g := &gpt{
		tokens: nn.NewEmbedding(vocabulary, width, nn.With(m)),
		norm:   nn.NewRMSNorm([]int{width}, nn.With(m)),
		head:   nn.NewLinear(width, vocabulary, nn.NoBias(), nn.With(m)),
	}
	g.Add("tokens", g.tokens)
	for i := range depth {
		b := newBlock(m)
		g.blocks = append(g.blocks, b)
		g.Add(fmt.Sprintf("block%d", i), b)
	}
	g.Add("norm", g.norm)
	g.Add("head", g.head)
	return g
}

// Forward maps codes [batch, L], i64, to logits [batch, L, vocabulary] of the byte behind each.
func (g *gpt) Forward(x *loris.Tensor) *loris.Tensor {
	x = g.tokens.Forward(x)
	for _, b := range g.blocks {
		x = b.layers(x, b.attention.Forward)
	}
	return g.head.Forward(g.norm.Forward(x))
}

// decode is Forward of the next codes of sequences that caches hold.
func (g *gpt) decode(x *loris.Tensor, caches []*nn.KVCache) *loris.Tensor {
	x = g.tokens.Forward(x)
	for i, b := range g.blocks {
		x = b.layers(x, func(x *loris.Tensor) *loris.Tensor { return b.attention.Decode(x, caches[i]) })
	}
	return g.head.Forward(g.norm.Forward(x))
}

// loss is the mean cross entropy of windows x and what comes one byte later, in nats a byte.
func (g *gpt) loss(x, y *loris.Tensor) *loris.Tensor {
	return g.Forward(x).Flatten(loris.EndDim(1)).CrossEntropy(y.Flatten())
}

// caches returns one for each block, of the last window of codes.
func (g *gpt) caches(batch int) []*nn.KVCache {
	var all []*nn.KVCache
	for _, b := range g.blocks {
		all = append(all, b.attention.NewKVCache(batch, window, true))
	}
	return all
}

// block is attention and a perceptron, each added to what it is given.
type block struct {
	nn.Base
	norm1, norm2 *nn.RMSNorm
	attention    *nn.MultiheadAttention
	up, down     *nn.Linear
}

func newBlock(m loris.Maker) *block {
	b := &block{
		norm1:     nn.NewRMSNorm([]int{width}, nn.With(m)),
		norm2:     nn.NewRMSNorm([]int{width}, nn.With(m)),
		attention: nn.NewMultiheadAttention(width, heads, nn.Causal(), nn.Rotary(10_000), nn.NoBias(), nn.With(m)),
		up:        nn.NewLinear(width, 4*width, nn.With(m)),
		down:      nn.NewLinear(4*width, width, nn.With(m)),
	}
	b.Add("norm1", b.norm1)
	b.Add("attention", b.attention)
	b.Add("norm2", b.norm2)
	b.Add("up", b.up)
	b.Add("down", b.down)
	return b
}

func (b *block) layers(x *loris.Tensor, attend func(*loris.Tensor) *loris.Tensor) *loris.Tensor {
	x = x.Add(attend(b.norm1.Forward(x)))
	return x.Add(b.down.Forward(nn.GELUTanh(b.up.Forward(b.norm2.Forward(x)))))
}
