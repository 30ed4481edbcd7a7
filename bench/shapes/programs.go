package main

import (
	"context"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
	"github.com/loris-ml/loris/optim"
)

// program is one that is run with inputs of several sizes.
type program struct {
	name  string
	input func(m loris.Maker, i int) *loris.Tensor
	// open returns a function that records the program on an input and has it scheduled.
	open func(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error
}

var programs = []program{
	{"gpt", tokens, recorded(func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor {
		return workloads.NewSmallGPT(s.With()).Forward
	})},
	{"gpt-compiled", tokens, compiled(func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor {
		return workloads.NewSmallGPT(s.With()).Forward
	})},
	{"gpt-train", tokens, training},
	{"gru", batches, recorded(func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor { return newGRU(s.With()).forward })},
	{"gru-compiled", batches, compiled(func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor { return newGRU(s.With()).forward })},
}

// recorded runs a model by recording it and ending the step.
func recorded(open func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor) func(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error {
	return func(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error {
		forward := open(s)
		return func(ctx context.Context, in *loris.Tensor) error {
			forward(in)
			return s.MarkStep(ctx)
		}
	}
}

// compiled runs a model as a compiled function.
func compiled(open func(s *loris.Session) func(in *loris.Tensor) *loris.Tensor) func(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error {
	return func(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error {
		forward := open(s)
		f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{forward(in[0])} })
		return func(ctx context.Context, in *loris.Tensor) error {
			_, err := f.Call(ctx, in)
			return err
		}
	}
}

// training runs steps of AdamW on a GPT.
func training(s *loris.Session) func(ctx context.Context, in *loris.Tensor) error {
	g := workloads.NewSmallGPT(s.With())
	opt := optim.NewAdamW(g.Params(), 1e-3)
	return func(ctx context.Context, in *loris.Tensor) error {
		n := in.Dim(0) - 1
		opt.Minimize(g.Forward(in.Narrow(0, 0, n)).CrossEntropy(in.Narrow(0, 1, n)))
		return s.MarkStep(ctx)
	}
}
