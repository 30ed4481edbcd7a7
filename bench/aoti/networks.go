package main

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

func normalised(m loris.Maker) []nn.Layer {
	return []nn.Layer{nn.NewLayerNorm([]int{1024}, nn.With(m)), nn.Func(nn.GELU)}
}

func gated(m loris.Maker) []nn.Layer {
	return []nn.Layer{nn.NewRMSNorm([]int{1024}, nn.With(m)), nn.Func(nn.SiLU)}
}

func perceptron(m loris.Maker) []nn.Layer {
	return []nn.Layer{
		nn.NewLinear(784, 512, nn.With(m)), nn.Func(nn.ReLU), nn.NewLinear(512, 512, nn.With(m)), nn.Func(nn.ReLU), nn.NewLinear(512, 10, nn.With(m)), nn.Softmax(-1),
	}
}

func recurrent(loris.Maker) []nn.Layer { return []nn.Layer{nn.NewLSTM(64, 128)} }

func bag(loris.Maker) []nn.Layer {
	last := func(x *loris.Tensor) *loris.Tensor { return x.LogSoftmax(-1) }
	return []nn.Layer{nn.NewEmbeddingBag(5000, 64, nn.BagMode("mean")), nn.NewLinear(64, 10), nn.Func(last)}
}

func encoder(m loris.Maker) []nn.Layer { return []nn.Layer{newBlock(m, 512, 8, 2048, false)} }
func gpt(loris.Maker) []nn.Layer       { return []nn.Layer{newGPT2()} }

// digitsNetwork is that of examples/vision.
func digitsNetwork(loris.Maker) []nn.Layer {
	var list []nn.Layer
	block := func(in, out int) {
		list = append(list, nn.NewConv2d(in, out, 3, nn.Padding(1), nn.NoBias()), nn.NewBatchNorm2d(out), nn.Func(nn.ReLU))
	}
	block(1, 32)
	block(32, 32)
	list = append(list, nn.MaxPool2d(2))
	block(32, 64)
	block(64, 64)
	return append(list, nn.MaxPool2d(2), nn.Func(nn.Flatten), nn.NewLinear(64*2*2, 10))
}

// autoencoder halves images twice and doubles them again.
func autoencoder(loris.Maker) []nn.Layer {
	return []nn.Layer{
		nn.NewConv2d(3, 32, 3, nn.Stride(2), nn.Padding(1)), nn.Func(nn.SiLU), nn.NewConv2d(32, 64, 3, nn.Stride(2), nn.Padding(1)),
		nn.NewGroupNorm(8, 64), nn.Func(nn.SiLU),
		nn.NewConvTranspose2d(64, 32, 4, nn.Stride(2), nn.Padding(1)), nn.Func(nn.SiLU), nn.NewConvTranspose2d(32, 3, 4, nn.Stride(2), nn.Padding(1)), nn.Func(nn.Sigmoid),
	}
}

// residual is a basic block of a ResNet.
type residual struct {
	nn.Base
	body, short *nn.Sequential // short is nil where the input is added as it is
}

func newResidual(in, out, stride int) *residual {
	r := &residual{body: nn.NewSequential(
		nn.NewConv2d(in, out, 3, nn.Stride(stride), nn.Padding(1), nn.NoBias()), nn.NewBatchNorm2d(out), nn.Func(nn.ReLU),
		nn.NewConv2d(out, out, 3, nn.Padding(1), nn.NoBias()), nn.NewBatchNorm2d(out),
	)}
	r.Add("body", r.body)
	if stride != 1 {
		r.short = nn.NewSequential(nn.NewConv2d(in, out, 1, nn.Stride(stride), nn.NoBias()), nn.NewBatchNorm2d(out))
		r.Add("short", r.short)
	}
	return r
}

// Forward is the block of a batch of images.
func (r *residual) Forward(x *loris.Tensor) *loris.Tensor {
	y := r.body.Forward(x)
	if r.short != nil {
		x = r.short.Forward(x)
	}
	return y.Add(x).Relu()
}

// resnet is ResNet-18.
func resnet(loris.Maker) []nn.Layer {
	list := []nn.Layer{
		nn.NewConv2d(3, 64, 7, nn.Stride(2), nn.Padding(3), nn.NoBias()), nn.NewBatchNorm2d(64), nn.Func(nn.ReLU),
		nn.Func(func(x *loris.Tensor) *loris.Tensor {
			return x.MaxPool2d([]int{3}, loris.Stride(2), loris.Padding(1))
		}),
	}
	for _, b := range [][3]int{{64, 64, 1}, {64, 64, 1}, {64, 128, 2}, {128, 128, 1}, {128, 256, 2}, {256, 256, 1}, {256, 512, 2}, {512, 512, 1}} {
		list = append(list, newResidual(b[0], b[1], b[2]))
	}
	return append(list, nn.Func(func(x *loris.Tensor) *loris.Tensor { return x.Mean(loris.Dim(2, 3)) }), nn.NewLinear(512, 1000))
}

// block is a layer of a transformer, normalised in front.
type block struct {
	nn.Base
	attention    *nn.MultiheadAttention
	first, after *nn.LayerNorm
	up, down     *nn.Linear
}

func newBlock(m loris.Maker, dim, heads, hidden int, causal bool) *block {
	opts := []nn.Option{nn.With(m)}
	if causal {
		opts = append(opts, nn.Causal())
	}
	b := &block{
		attention: nn.NewMultiheadAttention(dim, heads, opts...), first: nn.NewLayerNorm([]int{dim}, nn.With(m)), after: nn.NewLayerNorm([]int{dim}, nn.With(m)),
		up: nn.NewLinear(dim, hidden, nn.With(m)), down: nn.NewLinear(hidden, dim, nn.With(m)),
	}
	b.Add("ln_1", b.first)
	b.Add("attn", b.attention)
	b.Add("ln_2", b.after)
	b.Add("up", b.up)
	b.Add("down", b.down)
	return b
}

// Forward is the layer of [batch, length, dim].
func (b *block) Forward(x *loris.Tensor) *loris.Tensor {
	x = x.Add(b.attention.Forward(b.first.Forward(x)))
	return x.Add(b.down.Forward(nn.GELUTanh(b.up.Forward(b.after.Forward(x)))))
}

// The size of GPT-2's smallest model.
const (
	gptLayers, gptDim, gptHeads = 12, 768, 12
	gptVocab, gptPositions      = 50257, 1024
)

// gpt2 is GPT-2 of 124 M weights.
type gpt2 struct {
	nn.Base
	words, places *nn.Embedding
	blocks        *nn.Sequential
	last          *nn.LayerNorm
}

func newGPT2() *gpt2 {
	g := &gpt2{words: nn.NewEmbedding(gptVocab, gptDim), places: nn.NewEmbedding(gptPositions, gptDim), last: nn.NewLayerNorm([]int{gptDim})}
	g.Add("wte", g.words)
	g.Add("wpe", g.places)
	var blocks []nn.Layer
	for range gptLayers {
		blocks = append(blocks, newBlock(loris.Maker{}, gptDim, gptHeads, 4*gptDim, true))
	}
	g.blocks = nn.NewSequential(blocks...)
	g.Add("h", g.blocks)
	g.Add("ln_f", g.last)
	return g
}

// Forward is the logits of all places of [batch, length] tokens.
func (g *gpt2) Forward(ids *loris.Tensor) *loris.Tensor {
	x := g.words.Forward(ids).Add(g.places.Forward(loris.With(loris.As(loris.I64)).Arange(0, ids.Dim(-1), 1)))
	return g.last.Forward(g.blocks.Forward(x)).Linear(g.words.Weight.Value())
}
