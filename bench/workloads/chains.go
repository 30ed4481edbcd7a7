package workloads

import (
	"context"
	"sync/atomic"

	"github.com/loris-ml/loris"
)

const (
	chainOps  = 1000
	chainSize = 4
)

// chain records additions, each to the result of the last.
func chain(x *loris.Tensor) *loris.Tensor {
	y := x
	for range chainOps {
		y = y.Add(x)
	}
	return y
}

// chainRecorded records the chain at each run, in one step whose computation is
// cached after the first; its peers also record, or run, each op at each run.
func chainRecorded() *Workload {
	return &Workload{
		Name: "chain-recorded", Must: 0.3, Aim: 0.1, Ops: chainOps, Runs: 1, Tolerance: 0, Peers: []string{"eager", "mlx", "lazy"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			x := NewData(s.With()).Tensor(1, chainSize)
			return function(ctx, s, func() *loris.Tensor { return chain(x) })
		},
	}
}

// chainCompiled calls the chain as a function that was traced before.
func chainCompiled() *Workload {
	return &Workload{
		Name: "chain-compiled", Must: 1, Aim: 0.5, Ops: chainOps, Runs: 1, Tolerance: 0, Peers: []string{"compile", "aoti", "jax", "gomlx"}, Rivals: []string{"compile", "jax"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			x := NewData(s.With()).Tensor(1, chainSize)
			if err := ready(ctx, x); err != nil {
				return nil, err
			}
			f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{chain(in[0])} })
			var out *loris.Tensor
			in := &Instance{
				Start: func(ctx context.Context) error {
					list, err := f.Call(ctx, x)
					if err == nil {
						out = list[0]
					}
					return err
				},
				Finish:  func(ctx context.Context) error { return out.Wait(ctx) },
				Results: func(ctx context.Context) ([]float32, error) { return out.Float32s(ctx) },
			}
			return in, in.Run(ctx)
		},
	}
}

// newGraph numbers the graphs of firstCompile in this process.
type newGraph struct{ n atomic.Uint32 }

var graphs newGraph

// firstCompile records a graph of 1,000 ops that was never seen before, compiles
// and runs it. Which of two ops the first groups of four begin with is the number
// of the graph in binary.
func firstCompile() *Workload {
	return firstCompileOf("first-compile", 1e-5, func(x *loris.Tensor, number uint32) *loris.Tensor {
		y := x
		for i := range chainOps / 4 {
			if i < 32 && number>>i&1 == 1 {
				y = y.Sub(x)
			} else {
				y = y.Add(x)
			}
			y = y.Tanh().Mul(x).Sigmoid()
		}
		return y
	})
}

// firstCompileSmall is firstCompile for a graph of 16 ops, each one of four, which are the number of the
// graph to the base of four.
func firstCompileSmall() *Workload {
	ops := []func(*loris.Tensor) *loris.Tensor{(*loris.Tensor).Tanh, (*loris.Tensor).Sigmoid, (*loris.Tensor).Sin, (*loris.Tensor).Cos}
	return firstCompileOf("first-compile-small", 1e-5, func(x *loris.Tensor, number uint32) *loris.Tensor {
		for i := range 16 {
			x = ops[number>>(2*i)&3](x)
		}
		return x
	})
}

// firstCompileOf records, compiles and runs a graph with another number at each run.
func firstCompileOf(name string, tolerance float64, graph func(x *loris.Tensor, number uint32) *loris.Tensor) *Workload {
	return &Workload{
		Name: name, Must: 0.1, Aim: 0.03, MustGPU: 0.2, Alone: true, Ops: 1, Runs: 1, Tolerance: tolerance, Peers: []string{"compile", "jax", "gomlx"}, Rivals: []string{"compile", "jax"},
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			x := NewData(s.With()).Tensor(1, chainSize)
			if err := ready(ctx, x); err != nil {
				return nil, err
			}
			var out *loris.Tensor
			run := func(ctx context.Context, number uint32) error {
				out = graph(x, number)
				return s.MarkStep(ctx)
			}
			return &Instance{
				Start:  func(ctx context.Context) error { return run(ctx, graphs.n.Add(1)) },
				Finish: func(ctx context.Context) error { return out.Wait(ctx) },
				// What is compared is the graph with the number 0.
				Results: func(ctx context.Context) ([]float32, error) {
					if err := run(ctx, 0); err != nil {
						return nil, err
					}
					return out.Float32s(ctx)
				},
			}, nil
		},
	}
}
