package workloads

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/optim"
)

// weights are the variables of a model that is trained, in the order in which peers make them.
type weights struct {
	d   *Data
	all []*loris.Variable
}

func (w *weights) add(t *loris.Tensor) *loris.Variable {
	v := loris.NewVariable(t)
	w.all = append(w.all, v)
	return v
}

func (w *weights) linear(in, out int) variables {
	a := w.d.linear(in, out)
	return variables{w.add(a.w), w.add(a.b)}
}

func (w *weights) norm(n int) variables {
	a := w.d.norm(n)
	return variables{w.add(a.w), w.add(a.b)}
}

func (w *weights) params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for i, v := range w.all {
			if !yield(fmt.Sprint(i), v) {
				return
			}
		}
	}
}

// steps makes the instance of a workload that trains; its result is the loss of the last step.
func steps(ctx context.Context, s *loris.Session, step func() *loris.Tensor) (*Instance, error) {
	last := loris.NewVariable(s.With().Zeros())
	if err := s.MarkStep(ctx); err != nil {
		return nil, err
	}
	return &Instance{
		Start: func(ctx context.Context) error {
			return s.Step(ctx, func() error {
				last.Assign(step())
				return nil
			})
		},
		Finish:  waiting(s),
		Results: func(ctx context.Context) ([]float32, error) { return numbers(ctx, last.Value()) },
	}, s.WaitDeviceOps(ctx)
}

// minimized is a step of an optimiser.
func minimized(opt *optim.Optimizer, loss *loris.Tensor) *loris.Tensor {
	opt.Minimize(loss)
	return loss
}

// trains is a workload of training steps. Its work is three times that of the forward pass.
func trains(name string, forward float64, open func(ctx context.Context, s *loris.Session) (*Instance, error)) *Workload {
	return &Workload{
		Name: name, Must: 1.1, Aim: 0.9, FLOP: 3 * forward, Ops: 1, Runs: 2, Tolerance: 5e-3, Heavy: true, Large: true, Memory: true,
		Peers: []string{"eager", "compile"}, open: open,
	}
}

// layer makes a layer of a transformer that normalises before.
func (w *weights) layer(dim int) smallLayer {
	return smallLayer{w.norm(dim), w.linear(dim, 3*dim), w.linear(dim, dim), w.norm(dim), w.linear(dim, 4*dim), w.linear(4*dim, dim)}
}

// transform computes such a layer on [batch, tokens, dim].
func (l *smallLayer) transform(x *loris.Tensor, n int, attend []loris.ScaledDotProductAttentionOption, gelu ...loris.GeluOption) *loris.Tensor {
	parts := l.qkv.linear(l.norm1.norm(x)).Chunk(3, loris.Dim(-1))
	a := loris.ScaledDotProductAttention(heads(parts[0], n), heads(parts[1], n), heads(parts[2], n), attend...)
	x = x.Add(l.out.linear(joined(a)))
	return x.Add(l.down.linear(l.up.linear(l.norm2.norm(x)).Gelu(gelu...)))
}

// gptSize is the size of a GPT-2 and of a batch.
type gptSize struct{ layers, dim, heads, vocab, batch, length int }

// gpt2Training is a step of AdamW of a GPT-2.
func gpt2Training(z gptSize) *Workload {
	tokens := float64(z.batch * z.length)
	forward := tokens * float64(2*(z.layers*12*z.dim*z.dim+z.vocab*z.dim)+z.layers*2*z.length*z.dim)
	return trains("gpt2-train", forward, func(ctx context.Context, s *loris.Session) (*Instance, error) {
		w := &weights{d: NewData(s.With())}
		words, places := w.add(w.d.Tensor(0.05, z.vocab, z.dim)), w.add(w.d.Tensor(0.05, z.length, z.dim))
		layers := make([]smallLayer, z.layers)
		for i := range layers {
			layers[i] = w.layer(z.dim)
		}
		last := w.norm(z.dim)
		text := s.With().FromSlice(w.d.Ints(z.batch*(z.length+1), uint32(z.vocab)), z.batch, z.length+1)
		in, out := text.Narrow(1, 0, z.length), text.Narrow(1, 1, z.length).Flatten()
		if err := s.Sync(ctx, in, out); err != nil {
			return nil, err
		}
		opt := optim.NewAdamW(w.params(), 1e-4)
		return steps(ctx, s, func() *loris.Tensor {
			x := loris.Embedding(words.Value(), in).Add(places.Value())
			for i := range layers {
				x = layers[i].transform(x, z.heads, []loris.ScaledDotProductAttentionOption{loris.IsCausal(true)}, loris.Approximate("tanh"))
			}
			logits := last.norm(x).Linear(words.Value())
			return minimized(opt, logits.Flatten(loris.EndDim(1)).CrossEntropy(out))
		})
	})
}

// vitSize is the size of a vision transformer and of a batch.
type vitSize struct{ layers, dim, heads, image, patch, classes, batch int }

// vitTraining is a step of AdamW of a ViT.
func vitTraining(z vitSize) *Workload {
	side := z.image / z.patch
	tokens := side*side + 1
	forward := float64(z.batch*tokens) * float64(2*(z.layers*12*z.dim*z.dim+3*z.patch*z.patch*z.dim)+z.layers*4*tokens*z.dim)
	return trains("vit-train", forward, func(ctx context.Context, s *loris.Session) (*Instance, error) {
		w := &weights{d: NewData(s.With())}
		x, y := w.d.Tensor(1, z.batch, 3, z.image, z.image), s.With().FromSlice(w.d.Ints(z.batch, uint32(z.classes)))
		patches := variables{w.add(w.d.Tensor(0.05, z.dim, 3, z.patch, z.patch)), w.add(w.d.Tensor(0.05, z.dim))}
		class, places := w.add(w.d.Tensor(0.05, 1, 1, z.dim)), w.add(w.d.Tensor(0.05, tokens, z.dim))
		layers := make([]smallLayer, z.layers)
		for i := range layers {
			layers[i] = w.layer(z.dim)
		}
		last, head := w.norm(z.dim), w.linear(z.dim, z.classes)
		opt := optim.NewAdamW(w.params(), 1e-4)
		return steps(ctx, s, func() *loris.Tensor {
			p := x.Conv2d(patches.w.Value(), loris.Bias(patches.b.Value()), loris.Stride(z.patch)).Flatten(loris.StartDim(2)).Transpose(1, 2)
			t := loris.Cat([]*loris.Tensor{class.Value().Expand(z.batch, 1, z.dim), p}, loris.Dim(1)).Add(places.Value())
			for i := range layers {
				t = layers[i].transform(t, z.heads, nil)
			}
			return minimized(opt, head.linear(last.norm(t.Narrow(1, 0, 1).Squeeze(loris.Dim(1)))).CrossEntropy(y))
		})
	})
}

// trainedNorm is a convolution without bias and the batch norm behind it, in training.
type trainedNorm struct {
	w      *loris.Variable
	norm   variables
	stride int
	size   int
}

func (w *weights) convNorm(in, out, size, stride int) trainedNorm {
	scale := float32(math.Sqrt(6 / float64(in*size*size)))
	return trainedNorm{w.add(w.d.Tensor(scale, out, in, size, size)), w.norm(out), stride, size}
}

func (c *trainedNorm) forward(x *loris.Tensor) *loris.Tensor {
	x = x.Conv2d(c.w.Value(), loris.Stride(c.stride), loris.Padding(c.size/2))
	y, _, _ := x.BatchNorm(c.norm.w.Value(), c.norm.b.Value(), nil, nil, true, 0.1, 1e-5)
	return y
}

// bottleneck is a block of a ResNet-50; short is nil where the input is added as it is.
type bottleneck struct {
	first, second, third trainedNorm
	short                *trainedNorm
}

// stage is how many blocks a ResNet has of a width, and the stride of the first.
type stage struct{ blocks, width, stride int }

// resnet50 are the stages of a ResNet-50.
var resnet50 = []stage{{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}

// resnet50Training is a step of SGD with momentum of a ResNet-50, or of one of other stages, on a batch
// of images.
func resnet50Training(stages []stage, image, batch int) *Workload {
	forward := 8.2e9 * float64(batch) * float64(image*image) / (224 * 224)
	return trains("resnet50-train", forward, func(ctx context.Context, s *loris.Session) (*Instance, error) {
		w := &weights{d: NewData(s.With())}
		x, y := w.d.Tensor(2, batch, 3, image, image), s.With().FromSlice(w.d.Ints(batch, 1000))
		stem := w.convNorm(3, 64, 7, 2)
		var blocks []bottleneck
		in := 64
		for _, b := range stages {
			for i := range b.blocks {
				stride := 1
				if i == 0 {
					stride = b.stride
				}
				k := bottleneck{first: w.convNorm(in, b.width, 1, 1), second: w.convNorm(b.width, b.width, 3, stride), third: w.convNorm(b.width, 4*b.width, 1, 1)}
				if i == 0 {
					c := w.convNorm(in, 4*b.width, 1, stride)
					k.short = &c
				}
				blocks = append(blocks, k)
				in = 4 * b.width
			}
		}
		last := w.linear(in, 1000)
		opt := optim.NewSGD(w.params(), 0.001, optim.Momentum(0.9))
		return steps(ctx, s, func() *loris.Tensor {
			t := stem.forward(x).Relu().MaxPool2d([]int{3}, loris.Stride(2), loris.Padding(1))
			for i := range blocks {
				b := &blocks[i]
				u := b.third.forward(b.second.forward(b.first.forward(t).Relu()).Relu())
				if b.short != nil {
					t = b.short.forward(t)
				}
				t = u.Add(t).Relu()
			}
			return minimized(opt, last.linear(t.Mean(loris.Dim(2, 3))).CrossEntropy(y))
		})
	})
}

// longAttention is causal attention over long texts.
func longAttention(batch, heads, length, size int) *Workload {
	elements := float64(batch * heads * length * size)
	return &Workload{
		Name: "attention-long", Must: 1.1, Aim: 0.9, FLOP: 2 * elements * float64(length), Bytes: 16 * elements, Ops: 1, Runs: 1, Tolerance: 1e-4,
		Heavy: true, Large: true, Memory: true, Peers: []string{"eager", "compile"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			q, k, v := d.Tensor(1, batch, heads, length, size), d.Tensor(1, batch, heads, length, size), d.Tensor(1, batch, heads, length, size)
			return function(ctx, s, func() *loris.Tensor {
				return loris.ScaledDotProductAttention(q, k, v, loris.IsCausal(true))
			})
		},
	}
}

// embeddingTraining is a step of SGD that changes only the rows of a table that it looks up. Peers have
// sparse gradients for that; Loris takes the gradient of the rows and adds it to them.
func embeddingTraining(rows, dim, batch int) *Workload {
	return &Workload{
		Name: "embedding-train", Must: 1.1, Aim: 0.9, Bytes: float64(5 * 4 * batch * dim), FLOP: float64(8 * batch * dim), Ops: 1, Runs: 2, Tolerance: 1e-4,
		Heavy: true, Large: true, Memory: true, Peers: []string{"eager"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			table, w := loris.NewVariable(d.Tensor(1, rows, dim)), d.Tensor(1, dim)
			at := s.With().FromSlice(d.Ints(batch, uint32(rows)))
			if err := s.Sync(ctx, w, at); err != nil {
				return nil, err
			}
			return steps(ctx, s, func() *loris.Tensor {
				taken := table.Value().IndexSelect(0, at)
				loss := taken.Mul(w).Sum(loris.Dim(1)).Square().Mean()
				table.Assign(table.Value().IndexAdd(0, at, loris.Grad(loss, taken)[0].Mul(-0.01)))
				return loss
			})
		},
	}
}
