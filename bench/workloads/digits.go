package workloads

import (
	"context"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
	"github.com/loris-ml/loris/optim"
)

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
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			return openDigits(ctx, s, recordedStep)
		},
	}
}

// digitsCompiled is digitsTraining with a step that was traced before, as the
// peers that compile have it.
func digitsCompiled() *Workload {
	w := digitsTraining()
	w.Name, w.Rivals = "digits-compiled", []string{"compile", "jax"}
	w.open = func(ctx context.Context, s *loris.Session) (*Instance, error) {
		return openDigits(ctx, s, compiledStep)
	}
	return w
}

// digitsRate is Adam's.
const digitsRate = 0.01

// stepOn trains on a batch.
type stepOn func(ctx context.Context, x, y *loris.Tensor) error

func recordedStep(s *loris.Session, p *perceptron, drop float64) stepOn {
	opt := optim.NewAdam(p.params(), digitsRate)
	return func(ctx context.Context, x, y *loris.Tensor) error {
		return s.Step(ctx, func() error {
			opt.Minimize(p.forward(x, drop).CrossEntropy(y))
			return nil
		})
	}
}

func compiledStep(_ *loris.Session, p *perceptron, drop float64) stepOn {
	opt := optim.NewAdam(p.params(), digitsRate, optim.Captured())
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		opt.Minimize(p.forward(in[0], drop).CrossEntropy(in[1]))
		return nil
	})
	return func(ctx context.Context, x, y *loris.Tensor) error {
		_, err := f.Call(ctx, x, y)
		return err
	}
}

func openDigits(ctx context.Context, s *loris.Session, step func(s *loris.Session, p *perceptron, drop float64) stepOn) (*Instance, error) {
	pixels, labels, err := Digits()
	if err != nil {
		return nil, err
	}
	m := s.With()
	model := func(drop float64) (*perceptron, stepOn) {
		p := newPerceptron(NewData(m), digits.Features, 128, 64, digits.Classes)
		return p, step(s, p, drop)
	}
	epoch := func(ctx context.Context, step stepOn) error {
		for i := 0; i < len(labels); i += DigitsBatch {
			end := min(i+DigitsBatch, len(labels))
			x := m.FromSlice(pixels[i*digits.Features:end*digits.Features], end-i, digits.Features)
			if err := step(ctx, x, m.FromSlice(labels[i:end])); err != nil {
				return err
			}
		}
		return nil
	}
	_, training := model(0.3)
	return &Instance{
		Start:  func(ctx context.Context) error { return epoch(ctx, training) },
		Finish: waiting(s),
		Results: func(ctx context.Context) ([]float32, error) {
			p, training := model(0)
			if err := epoch(ctx, training); err != nil {
				return nil, err
			}
			return p.results(ctx)
		},
	}, s.MarkStep(ctx)
}
