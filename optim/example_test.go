package optim_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// A network of two layers learns exclusive or.
func Example() {
	ctx := context.Background()
	s, err := loris.New(loris.WithSeed(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	x := s.With().FromSlice([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	y := s.With().FromSlice([]int64{0, 1, 1, 0})
	w := nn.With(s.With())
	m := nn.NewSequential(nn.NewLinear(2, 8, w), nn.Func(nn.Tanh), nn.NewLinear(8, 2, w))

	opt := optim.NewAdamW(m.Params(), 0.05)
	opt.SetSchedule(optim.Warmup(0.1, 10, optim.Cosine(0.05, 0, 190)))
	if err := s.MarkStep(ctx); err != nil { // the initial weights
		fmt.Println(err)
		return
	}
	for range 200 {
		loss := m.Forward(x).CrossEntropy(y)
		grads, _ := optim.ClipGradNorm(opt.Grads(loss), 1)
		opt.Step(grads)
		if err := s.MarkStep(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	answers, err := m.Forward(x).Argmax(loris.Dim(1)).Int64s(ctx)
	fmt.Println(answers, err)
	// Output: [0 1 1 0] <nil>
}

// A training step that is compiled as a function records only once. The optimiser
// keeps its numbers in variables, which the function moves on at each call.
func ExampleCaptured() {
	ctx := context.Background()
	s, err := loris.New(loris.WithSeed(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	x := s.With().FromSlice([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	y := s.With().FromSlice([]int64{0, 1, 1, 0})
	w := nn.With(s.With())
	m := nn.NewSequential(nn.NewLinear(2, 8, w), nn.Func(nn.Tanh), nn.NewLinear(8, 2, w))

	opt := optim.NewAdamW(m.Params(), 0.05, optim.Captured())
	step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		loss := m.Forward(in[0]).CrossEntropy(in[1])
		opt.Minimize(loss)
		return []*loris.Tensor{loss}
	})
	for i := range 200 {
		if i == 150 {
			opt.SetLR(0.01)
		}
		if _, err := step.Call(ctx, x, y); err != nil {
			fmt.Println(err)
			return
		}
	}
	answers, err := m.Forward(x).Argmax(loris.Dim(1)).Int64s(ctx)
	fmt.Println(answers, err)
	// Output: [0 1 1 0] <nil>
}

// Training goes on from a checkpoint as if it had never stopped.
func ExampleCheckpoint() {
	ctx := context.Background()
	m := nn.NewLinear(2, 1)
	opt := optim.NewSGD(m.Params(), 0.1, optim.Momentum(0.9))
	ck := &optim.Checkpoint{Model: m, Optimizer: opt}
	first := 0
	if err := ck.Load(ctx, "no-such.safetensors"); err == nil {
		first = int(ck.Step)
	}
	fmt.Println("from step", first)
	// Output: from step 0
}

func ExampleGroup() {
	m := nn.NewSequential(nn.NewLinear(4, 8), nn.NewLinear(8, 2))
	opt := optim.NewAdamW(m.Params(), 1e-3,
		optim.Group(func(name string, v *loris.Variable) bool { return v.Shape().Rank() == 1 }, optim.WeightDecay(0)),
		optim.Group(func(name string, v *loris.Variable) bool { return strings.HasPrefix(name, "0.") }, optim.LRScale(0.1)))
	x := loris.Ones(3, 4)
	acc := optim.NewAccumulator(opt)
	for range 4 { // four batches, one step
		acc.Add(opt.Grads(m.Forward(x).Square().Mean()), 0.25)
	}
	opt.Step(acc.Take())
	fmt.Println(opt.Steps())
	// Output: 1
}
