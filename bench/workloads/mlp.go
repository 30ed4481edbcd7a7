package workloads

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/optim"
)

// perceptron is linear layers with ReLU between them.
type perceptron struct{ weights, biases []*loris.Variable }

func newPerceptron(d *Data, sizes ...int) *perceptron {
	p := &perceptron{}
	for i := range len(sizes) - 1 {
		scale := float32(1 / math.Sqrt(float64(sizes[i])))
		p.weights = append(p.weights, d.Variable(scale, sizes[i+1], sizes[i]))
		p.biases = append(p.biases, d.Variable(scale, sizes[i+1]))
	}
	return p
}

// forward drops elements of hidden layers with probability drop, unless it is 0.
func (p *perceptron) forward(x *loris.Tensor, drop float64) *loris.Tensor {
	for i, w := range p.weights {
		x = x.Linear(w.Value(), loris.Bias(p.biases[i].Value()))
		if i < len(p.weights)-1 {
			if x = x.Relu(); drop > 0 {
				x = x.Dropout(drop)
			}
		}
	}
	return x
}

func (p *perceptron) params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for i := range p.weights {
			if !yield(fmt.Sprintf("%d.weight", i), p.weights[i]) || !yield(fmt.Sprintf("%d.bias", i), p.biases[i]) {
				return
			}
		}
	}
}

// results is the last layer's weights.
func (p *perceptron) results(ctx context.Context) ([]float32, error) {
	return numbers(ctx, p.weights[len(p.weights)-1].Value())
}

// mlp is one training step of 784-512-512-10 on a batch of 128.
func mlp() *Workload { return mlpOf("mlp-step", loris.F32, 1e-4) }

func mlpOf(name string, dtype loris.DType, tolerance float64) *Workload {
	const batch, weights = 128, 784*512 + 512*512 + 512*10
	return &Workload{
		// Three products with each weight but the first's two; weights and momenta
		// are read and written.
		Name: name, Must: 1, Aim: 0.8, FLOP: 2 * batch * (3*weights - 784*512), Bytes: 4 * float64(dtype.Size()) * weights, Ops: 1, Runs: 3, Tolerance: tolerance, Memory: true,
		MustGPU: 1, GPU: dtype != loris.F32,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := newDataOf(s.With(), dtype)
			p := newPerceptron(d, 784, 512, 512, 10)
			x, y := d.Tensor(1, batch, 784), s.With().FromSlice(d.Ints(batch, 10))
			opt := optim.NewSGD(p.params(), 0.01, optim.Momentum(0.9))
			if err := s.MarkStep(ctx); err != nil {
				return nil, err
			}
			return &Instance{
				Start: func(ctx context.Context) error {
					return s.Step(ctx, func() error {
						opt.Minimize(p.forward(x, 0).CrossEntropy(y))
						return nil
					})
				},
				Finish:  waiting(s),
				Results: p.results,
			}, s.WaitDeviceOps(ctx)
		},
	}
}
