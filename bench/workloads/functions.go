package workloads

import (
	"context"
	"fmt"
	"math"

	"github.com/loris-ml/loris"
)

// pointwise is tanh(x·w+b)·sigmoid(x)+relu(x−w) on n elements.
func pointwise(name string, n int) *Workload {
	return &Workload{
		Name: name, Must: 1, Aim: 0.75, FLOP: 8 * float64(n), Bytes: 4 * 4 * float64(n), Ops: 1, Runs: 1, Tolerance: 2e-6, Heavy: n > 1<<22,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x, w, b := d.Tensor(3, n), d.Tensor(1, n), d.Tensor(1, n)
			return function(ctx, s, func() *loris.Tensor {
				return x.Mul(w).Add(b).Tanh().Mul(x.Sigmoid()).Add(x.Sub(w).Relu())
			})
		},
	}
}

const normRows, normCols = 4096, 1024

func softmax() *Workload {
	const n = normRows * normCols
	return &Workload{
		Name: "softmax", Must: 1, Aim: 0.8, FLOP: 4 * n, Bytes: 2 * 4 * n, Ops: 1, Runs: 1, Tolerance: 1e-5, MustGPU: 1.05,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			x := NewData(s.With()).Tensor(4, normRows, normCols)
			return function(ctx, s, func() *loris.Tensor { return x.Softmax(-1) })
		},
	}
}

func layerNorm() *Workload {
	const n = normRows * normCols
	return &Workload{
		Name: "layer-norm", Must: 1, Aim: 0.8, FLOP: 8 * n, Bytes: 2 * 4 * n, Ops: 1, Runs: 1, Tolerance: 1e-5, MustGPU: 1.05,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x, w, b := d.Tensor(4, normRows, normCols), d.Tensor(1, normCols), d.Tensor(1, normCols)
			return function(ctx, s, func() *loris.Tensor {
				return x.LayerNorm([]int{normCols}, loris.Weight(w), loris.Bias(b))
			})
		},
	}
}

// matmul is the product of two square matrices.
func matmul(n int) *Workload {
	f := float64(n)
	return &Workload{
		Name: fmt.Sprintf("matmul-%d", n), Must: 1.1, Aim: 1, FLOP: 2 * f * f * f, Bytes: 3 * 4 * f * f, Ops: 1, Runs: 1, Tolerance: 1e-5, Heavy: n > 1500,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			a, b := d.Tensor(1, n, n), d.Tensor(1, n, n)
			return function(ctx, s, func() *loris.Tensor { return a.MatMul(b) })
		},
	}
}

// batched is [16,256,64] × [16,64,256].
func batched() *Workload {
	const g, m, k, n = 16, 256, 64, 256
	return &Workload{
		Name: "matmul-batched", Must: 1.1, Aim: 1, FLOP: 2 * g * m * k * n, Bytes: 4 * g * (m*k + k*n + m*n), Ops: 1, Runs: 1, Tolerance: 1e-5,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			a, b := d.Tensor(1, g, m, k), d.Tensor(1, g, k, n)
			return function(ctx, s, func() *loris.Tensor { return a.MatMul(b) })
		},
	}
}

// convolution has filters of 3×3 from 64 to 64 channels on [8,64,56,56].
func convolution() *Workload {
	const batch, c, size = 8, 64, 56
	return &Workload{
		Name: "conv3x3", Must: 1.1, Aim: 0.7, FLOP: 2 * batch * c * size * size * c * 9,
		Bytes: 4 * (2*batch*c*size*size + c*c*9), Ops: 1, Runs: 1, Tolerance: 2e-5,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x, w := d.Tensor(1, batch, c, size, size), d.Tensor(float32(1/math.Sqrt(c*9)), c, c, 3, 3)
			return function(ctx, s, func() *loris.Tensor { return x.Conv2d(w, loris.Padding(1)) })
		},
	}
}
