package workloads

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/optim"
)

// The sizes of a SmallGPT.
const (
	SmallLayers, SmallDim, SmallHeads = 3, 128, 4
	SmallVocab, SmallPlaces           = 256, 1024
)

// SmallGPT is a GPT that trains on a laptop, of random weights. The words' embedding is its last
// layer, too.
type SmallGPT struct {
	Words, Places *loris.Variable // the embeddings, [SmallVocab, SmallDim] and [SmallPlaces, SmallDim]

	layers []smallLayer
	last   variables
}

// variables are the weights of a layer that is trained.
type variables struct{ w, b *loris.Variable }

type smallLayer struct{ norm1, qkv, out, norm2, up, down variables }

// NewSmallGPT makes a model of the numbers that peers have, too.
func NewSmallGPT(m loris.Maker) *SmallGPT { return newSmallGPT(NewData(m)) }

func newSmallGPT(d *Data) *SmallGPT {
	linear := func(in, out int) variables {
		scale := float32(1 / math.Sqrt(float64(in)))
		return variables{d.Variable(scale, out, in), d.Variable(scale, out)}
	}
	norm := func() variables { return variables{d.Variable(1, SmallDim), d.Variable(0.1, SmallDim)} }
	g := &SmallGPT{Words: d.Variable(0.05, SmallVocab, SmallDim), Places: d.Variable(0.05, SmallPlaces, SmallDim), last: norm()}
	for range SmallLayers {
		g.layers = append(g.layers, smallLayer{
			norm(), linear(SmallDim, 3*SmallDim), linear(SmallDim, SmallDim),
			norm(), linear(SmallDim, 4*SmallDim), linear(4*SmallDim, SmallDim),
		})
	}
	return g
}

// Params lists the parameters with their names.
func (g *SmallGPT) Params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		all := []variables{{g.Words, g.Places}, g.last}
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

func (v variables) linear(x *loris.Tensor) *loris.Tensor {
	return x.Linear(v.w.Value(), loris.Bias(v.b.Value()))
}

func (v variables) norm(x *loris.Tensor) *loris.Tensor {
	return x.LayerNorm([]int{v.w.Shape().Dim(0)}, loris.Weight(v.w.Value()), loris.Bias(v.b.Value()))
}

// Forward returns the logits, [tokens, SmallVocab], or with a batch before both.
func (g *SmallGPT) Forward(tokens *loris.Tensor) *loris.Tensor {
	x := loris.Embedding(g.Words.Value(), tokens).Add(g.Places.Value().Narrow(0, 0, tokens.Dim(-1)))
	return g.Body(x, func(_ int, q, k, v *loris.Tensor) *loris.Tensor {
		return loris.ScaledDotProductAttention(q, k, v, loris.IsCausal(true))
	})
}

// Body computes the layers, whose attention over [heads, tokens, size] is given.
func (g *SmallGPT) Body(x *loris.Tensor, attend func(layer int, q, k, v *loris.Tensor) *loris.Tensor) *loris.Tensor {
	dims := x.Dims()
	lead := len(dims) - 2 // dimensions of a batch
	var order []int       // of [3, batch, heads, tokens, size] in [batch, tokens, 3, heads, size]
	order = append(order, lead+1)
	for i := range lead {
		order = append(order, i)
	}
	order = append(order, lead+2, lead, lead+3)
	for i, l := range g.layers {
		qkv := l.qkv.linear(l.norm1.norm(x)).Reshape(append(dims[:lead+1:lead+1], 3, SmallHeads, SmallDim/SmallHeads)...)
		parts := qkv.Permute(order...).Unbind()
		a := attend(i, parts[0], parts[1], parts[2])
		x = x.Add(l.out.linear(a.Transpose(-3, -2).Reshape(dims...)))
		x = x.Add(l.down.linear(l.up.linear(l.norm2.norm(x)).Gelu()))
	}
	return g.last.norm(x).Linear(g.Words.Value())
}

// smallWeights is the number of weights that a token is multiplied by.
const smallWeights = SmallLayers*12*SmallDim*SmallDim + SmallVocab*SmallDim

// gptTraining is a step of AdamW on a batch of 16 texts of 128 tokens.
func gptTraining() *Workload {
	const batch, length, rate = 16, 128, 1e-3
	const attention = SmallLayers * 4 * length * SmallDim
	return &Workload{
		Name: "gpt-train", Must: 1 / 1.3, Aim: 0.7, FLOP: 3 * batch * length * (2*smallWeights + attention), Ops: 1, Runs: 3, Tolerance: 1e-3, Memory: true,
		Peers: []string{"eager", "compile"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			g := newSmallGPT(d)
			text := s.With().FromSlice(d.Ints(batch*(length+1), SmallVocab), batch, length+1)
			x, y := text.Narrow(1, 0, length), text.Narrow(1, 1, length).Flatten()
			opt := optim.NewAdamW(g.Params(), rate)
			if err := s.Sync(ctx, x, y); err != nil {
				return nil, err
			}
			return &Instance{
				Start: func(ctx context.Context) error {
					return s.Step(ctx, func() error {
						opt.Minimize(g.Forward(x).Flatten(loris.EndDim(1)).CrossEntropy(y))
						return nil
					})
				},
				Finish:  waiting(s),
				Results: func(ctx context.Context) ([]float32, error) { return numbers(ctx, g.Words.Value()) },
			}, s.WaitDeviceOps(ctx)
		},
	}
}

// The places of a decoding SmallGPT's caches, and the tokens that are in them at first.
const smallContext, smallStart = 256, 64

// gptDecoding makes one token of a text with a SmallGPT whose keys and values are kept: those of the
// token are written to their place, and what is attended to are the places up to it.
func gptDecoding() *Workload {
	return &Workload{
		Name: "gpt-decode", Must: 0.5, Aim: 0.25, FLOP: 2 * smallWeights, Bytes: 4 * smallWeights, Ops: 1, Runs: 3, Tolerance: 1e-4,
		Peers: []string{"eager", "compile"}, Rivals: []string{"eager"}, open: openDecoding,
	}
}

// smallToken returns the place and the token of a run.
func smallToken(run int) (place, token int64) {
	return int64(smallStart + run%(smallContext-smallStart)), int64(run * 31 % SmallVocab)
}

func openDecoding(ctx context.Context, s *loris.Session) (*Instance, error) {
	m := s.With()
	d := NewData(m)
	g := newSmallGPT(d)
	var keys, values [SmallLayers]*loris.Variable
	for i := range SmallLayers {
		keys[i] = d.Variable(1, SmallHeads, smallContext, SmallDim/SmallHeads)
		values[i] = d.Variable(1, SmallHeads, smallContext, SmallDim/SmallHeads)
	}
	all := m.With(loris.As(loris.I64)).Arange(0, smallContext, 1)
	logits := loris.NewVariable(m.Zeros(1, SmallVocab))
	if err := s.Sync(ctx, all, logits.Value()); err != nil {
		return nil, err
	}
	forward := func(place, token *loris.Tensor) *loris.Tensor {
		mask := all.Le(place).Unsqueeze(0)
		x := loris.Embedding(g.Words.Value(), token).Add(loris.Embedding(g.Places.Value(), place))
		return g.Body(x, func(i int, q, k, v *loris.Tensor) *loris.Tensor {
			k, v = keys[i].Value().IndexCopy(1, place, k), values[i].Value().IndexCopy(1, place, v)
			keys[i].Assign(k)
			values[i].Assign(v)
			return loris.ScaledDotProductAttention(q, k, v, loris.AttnMask(mask))
		})
	}
	return decoding(ctx, s, logits, forward, smallToken)
}

// varyingLengths runs a SmallGPT on texts, each of a size that there was not before: the length goes
// through varyingLengthCount numbers, and then the batch grows.
func varyingLengths() *Workload {
	mean := float64(varyingLeast) + varyingCount/2.0
	return &Workload{
		Name: "gpt-varying", Must: 1, Aim: 0.8, FLOP: mean * (2*smallWeights + SmallLayers*2*mean*SmallDim), Ops: 1, Runs: 3, Tolerance: 1e-4,
		Peers: []string{"eager", "compile"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			m := s.With()
			g := newSmallGPT(NewData(m))
			var last *loris.Tensor // the logits of the last tokens
			runs := 0
			return &Instance{
				Start: func(ctx context.Context) error {
					batch, length := varyingSize(runs)
					runs++
					tokens := make([]int64, batch*length)
					for i := range tokens {
						tokens[i] = int64(i * 31 % SmallVocab)
					}
					last = g.Forward(m.FromSlice(tokens, batch, length)).Narrow(1, length-1, 1)
					return s.MarkStep(ctx)
				},
				Finish:  waiting(s),
				Results: func(ctx context.Context) ([]float32, error) { return numbers(ctx, last) },
				Forget:  func() { last = nil },
			}, s.MarkStep(ctx)
		},
	}
}

const varyingLeast, varyingCount = 16, 257

// varyingSize returns the batch and the length of a run.
func varyingSize(run int) (batch, length int) {
	return 1 + run/varyingCount, varyingLeast + run*100%varyingCount
}
