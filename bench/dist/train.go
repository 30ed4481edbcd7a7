package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/parallel"
	"github.com/loris-ml/loris/optim"
)

// network is something that is trained: its parameters in their order, and the loss of a part of a batch.
type network struct {
	params []*loris.Variable
	loss   func(first, n int) *loris.Tensor
	batch  int
}

// nets are the workloads of training, with the numbers of bench/workloads.
var nets = map[string]func(m loris.Maker) *network{"mlp": perceptron, "encoder": encoder}

// perceptron is 784-512-512-10 on a batch of 128.
func perceptron(m loris.Maker) *network {
	const batch = 128
	d := workloads.NewData(m)
	n := &network{batch: batch}
	sizes := []int{784, 512, 512, 10}
	for i := range len(sizes) - 1 {
		scale := float32(1 / math.Sqrt(float64(sizes[i])))
		n.params = append(n.params, d.Variable(scale, sizes[i+1], sizes[i]), d.Variable(scale, sizes[i+1]))
	}
	x, y := d.Tensor(1, batch, sizes[0]), m.FromSlice(d.Ints(batch, 10))
	n.loss = func(first, rows int) *loris.Tensor {
		h := x.Narrow(0, first, rows)
		for i := 0; i < len(n.params); i += 2 {
			if h = h.Linear(n.params[i].Value(), loris.Bias(n.params[i+1].Value())); i+2 < len(n.params) {
				h = h.Relu()
			}
		}
		return h.CrossEntropy(y.Narrow(0, first, rows))
	}
	return n
}

// encoder is one layer of a transformer encoder, normalised behind: d512 h8 ff2048 s128 b4. Its loss is the
// mean of the squares of what comes out, each times a number.
func encoder(m loris.Maker) *network {
	const width, heads, inner, length, batch = 512, 8, 2048, 128, 4
	d := workloads.NewData(m)
	n := &network{batch: batch}
	linear := func(in, out int) func(x *loris.Tensor) *loris.Tensor {
		scale := float32(1 / math.Sqrt(float64(in)))
		w, b := d.Variable(scale, out, in), d.Variable(scale, out)
		n.params = append(n.params, w, b)
		return func(x *loris.Tensor) *loris.Tensor { return x.Linear(w.Value(), loris.Bias(b.Value())) }
	}
	norm := func() func(x *loris.Tensor) *loris.Tensor {
		w, b := loris.NewVariable(m.Ones(width)), loris.NewVariable(m.Zeros(width))
		n.params = append(n.params, w, b)
		return func(x *loris.Tensor) *loris.Tensor {
			return x.LayerNorm([]int{width}, loris.Weight(w.Value()), loris.Bias(b.Value()))
		}
	}
	x, target := d.Tensor(1, batch, length, width), d.Tensor(1, batch, length, width)
	qkv, out, up, down := linear(width, 3*width), linear(width, width), linear(width, inner), linear(inner, width)
	first, second := norm(), norm()
	split := func(x *loris.Tensor) *loris.Tensor { return x.Unflatten(-1, heads, -1).Transpose(1, 2) }
	n.loss = func(from, rows int) *loris.Tensor {
		h := x.Narrow(0, from, rows)
		p := qkv(h).Chunk(3, loris.Dim(-1))
		a := loris.ScaledDotProductAttention(split(p[0]), split(p[1]), split(p[2])).Transpose(1, 2).Flatten(loris.StartDim(2))
		h = first(h.Add(out(a)))
		h = second(h.Add(down(up(h).Relu())))
		e := h.Sub(target.Narrow(0, from, rows))
		return e.Mul(e).Mean()
	}
	return n
}

func (n *network) named() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for i, p := range n.params {
			if !yield(fmt.Sprint(i), p) {
				return
			}
		}
	}
}

// training measures steps of SGD with momentum on this rank's part of the batch.
func training(ctx context.Context, g *dist.Group, s *loris.Session, w io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(nets)) {
		for _, form := range []string{"-", "divided"} {
			step := trainer(ctx, g, s, nets[name](s.With()), form == "divided")
			if err := measure(w, "train/"+name, form, 5, 20, 1, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// trainer returns a step that waits for its end. Where it is divided each rank updates its part of the
// parameters.
func trainer(ctx context.Context, g *dist.Group, s *loris.Session, n *network, divided bool) func() error {
	algorithm := func(named iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
		return optim.NewSGD(named, 0.01, optim.Momentum(0.9))
	}
	var update func(grads []*loris.Tensor)
	if divided {
		opt := parallel.NewOptimizer(g, n.named(), algorithm)
		update = func(grads []*loris.Tensor) { opt.Step(grads) }
	} else {
		opt := algorithm(n.named())
		update = func(grads []*loris.Tensor) { opt.Step(g.Average(grads)) }
	}
	params := make([]any, len(n.params))
	for i, p := range n.params {
		params[i] = p
	}
	rows := n.batch / g.Size()
	return func() error {
		err := s.Step(ctx, func() error {
			update(loris.Grad(n.loss(g.Rank()*rows, rows), params...))
			return nil
		})
		if err != nil {
			return err
		}
		return s.WaitDeviceOps(ctx)
	}
}
