package workloads

import (
	"context"

	"github.com/loris-ml/loris"
)

// The sizes of the recurrent layers.
const recurrentDim, recurrentTime, recurrentBatch = 256, 100, 16

// recurrentWeights makes the weights and biases of a layer of recurrentDim features.
func recurrentWeights(d *Data, gates int) []*loris.Variable {
	const scale = 1.0 / 16
	return []*loris.Variable{
		d.Variable(scale, gates*recurrentDim, recurrentDim), d.Variable(scale, gates*recurrentDim, recurrentDim),
		d.Variable(scale, gates*recurrentDim), d.Variable(scale, gates*recurrentDim),
	}
}

func values(vs []*loris.Variable) []*loris.Tensor {
	ts := make([]*loris.Tensor, len(vs))
	for i, v := range vs {
		ts[i] = v.Value()
	}
	return ts
}

// gruGradients is a layer of gated recurrent units over 100 steps, forwards and backwards: the
// gradients of its weights.
func gruGradients() *Workload {
	const gates = 3
	const products = recurrentTime * recurrentBatch * gates * recurrentDim * 2 * recurrentDim
	return &Workload{
		Name: "gru-gradients", Must: 1 / 1.2, Aim: 0.7, FLOP: 6 * products, Ops: 1, Runs: 1, Tolerance: 1e-4,
		Peers: []string{"eager", "compile"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x, h := d.Tensor(1, recurrentTime, recurrentBatch, recurrentDim), d.Tensor(1, 1, recurrentBatch, recurrentDim)
			weights := recurrentWeights(d, gates)
			var wrt []any
			for _, w := range weights {
				wrt = append(wrt, w)
			}
			return function(ctx, s, func() *loris.Tensor {
				y, _ := loris.GRU(x, h, values(weights), true, 1, 0, true, false, false)
				grads := loris.Grad(y.Square().Mean(), wrt...)
				for i, g := range grads {
					grads[i] = g.Flatten()
				}
				return loris.Cat(grads)
			})
		},
	}
}

// lstmInference is a layer of long short-term memory over 100 steps.
func lstmInference() *Workload {
	const gates = 4
	const products = recurrentTime * recurrentBatch * gates * recurrentDim * 2 * recurrentDim
	return &Workload{
		Name: "lstm-inference", Must: 1, Aim: 0.8, FLOP: 2 * products, Ops: 1, Runs: 1, Tolerance: 2e-5,
		Peers: []string{"eager", "compile"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x := d.Tensor(1, recurrentTime, recurrentBatch, recurrentDim)
			h, c := d.Tensor(1, 1, recurrentBatch, recurrentDim), d.Tensor(1, 1, recurrentBatch, recurrentDim)
			weights := recurrentWeights(d, gates)
			return function(ctx, s, func() *loris.Tensor {
				y, _, _ := loris.LSTM(x, []*loris.Tensor{h, c}, values(weights), true, 1, 0, false, false, false)
				return y
			})
		},
	}
}
