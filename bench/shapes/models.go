package main

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// The sizes of the GRU.
const gruSteps, gruDim = 100, 32

// tokens makes the input of a GPT: more tokens for each i.
func tokens(m loris.Maker, i int) *loris.Tensor {
	return m.FromSlice(workloads.NewData(m).Ints(33+i, workloads.SmallVocab))
}

// batches makes the input of a GRU, [batch, steps, gruDim]: a larger batch for each i.
func batches(m loris.Maker, i int) *loris.Tensor {
	return workloads.NewData(m).Tensor(1, 3+i, gruSteps, gruDim)
}

type affine struct{ w, b *loris.Variable }

func (a affine) linear(x *loris.Tensor) *loris.Tensor {
	return x.Linear(a.w.Value(), loris.Bias(a.b.Value()))
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
