package workloads

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
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
				Run: func(ctx context.Context) error {
					if err := s.Step(ctx, func() error {
						opt.Minimize(p.forward(x, 0).CrossEntropy(y))
						return nil
					}); err != nil {
						return err
					}
					return s.WaitDeviceOps(ctx)
				},
				Results: p.results,
			}, s.WaitDeviceOps(ctx)
		},
	}
}

// DigitsBatch is the batch of the training on digits.
const DigitsBatch = 64

// Digits returns the training images, in the order in which all systems take
// them, and their labels.
func Digits() (pixels []float32, labels []int64, err error) {
	data, _, err := train.Data()
	if err != nil {
		return nil, nil, err
	}
	return data.Pixels, data.Labels, nil
}

// digitsTraining is an epoch of the digits example: batches of 64 that come from
// the host, 64-128-64-10 with dropout, Adam. What is compared is an epoch without
// dropout, whose numbers no two systems share.
func digitsTraining() *Workload {
	const weights = 64*128 + 128*64 + 64*10
	return &Workload{
		Name: "digits-epoch", Must: 0.5, Aim: 0.25, FLOP: 1437 * 2 * (3*weights - 64*128), Ops: 1, Runs: 1, Tolerance: 1e-3,
		Peers: []string{"eager", "compile", "jax", "mlx", "gomlx"},
		// XLA does this always. The averages of weights of black pixels end there.
		Session: []loris.SessionOption{loris.WithFlushDenormals()},
		open:    openDigits,
	}
}

func openDigits(ctx context.Context, s *loris.Session) (*Instance, error) {
	pixels, labels, err := Digits()
	if err != nil {
		return nil, err
	}
	m := s.With()
	model := func() (*perceptron, *optim.Optimizer) {
		p := newPerceptron(NewData(m), digits.Features, 128, 64, digits.Classes)
		return p, optim.NewAdam(p.params(), 0.01)
	}
	p, opt := model()
	epoch := func(ctx context.Context, p *perceptron, opt *optim.Optimizer, drop float64) error {
		for i := 0; i < len(labels); i += DigitsBatch {
			end := min(i+DigitsBatch, len(labels))
			if err := s.Step(ctx, func() error {
				x := m.FromSlice(pixels[i*digits.Features:end*digits.Features], end-i, digits.Features)
				opt.Minimize(p.forward(x, drop).CrossEntropy(m.FromSlice(labels[i:end])))
				return nil
			}); err != nil {
				return err
			}
		}
		return s.WaitDeviceOps(ctx)
	}
	return &Instance{
		Run: func(ctx context.Context) error { return epoch(ctx, p, opt, 0.3) },
		Results: func(ctx context.Context) ([]float32, error) {
			p, opt := model()
			if err := epoch(ctx, p, opt, 0); err != nil {
				return nil, err
			}
			return p.results(ctx)
		},
	}, s.MarkStep(ctx)
}
