package workloads

import (
	"context"
	"math"

	"github.com/loris-ml/loris"
)

// affine is a linear layer's weights or a normalisation's.
type affine struct{ w, b *loris.Tensor }

func (d *Data) linear(in, out int) affine {
	scale := float32(1 / math.Sqrt(float64(in)))
	return affine{d.Tensor(scale, out, in), d.Tensor(scale, out)}
}

// norm makes the weights and bias of a normalisation; the weights are near 1.
func (d *Data) norm(n int) affine {
	w := d.Floats(n, 0.1)
	for i := range w {
		w[i]++
	}
	return affine{d.from(w, n), d.Tensor(0.1, n)}
}

func (a affine) linear(x *loris.Tensor) *loris.Tensor { return x.Linear(a.w, loris.Bias(a.b)) }

func (a affine) norm(x *loris.Tensor) *loris.Tensor {
	return x.LayerNorm([]int{a.b.Dim(0)}, loris.Weight(a.w), loris.Bias(a.b))
}

// heads is [batch, length, heads·size] as [batch, heads, length, size].
func heads(x *loris.Tensor, n int) *loris.Tensor { return x.Unflatten(-1, n, -1).Transpose(1, 2) }

func joined(x *loris.Tensor) *loris.Tensor {
	return x.Transpose(1, 2).Flatten(loris.StartDim(2))
}

// encoder is the forward pass of one transformer encoder layer, normalised
// behind, as PyTorch's: d512 h8 ff2048 s128 b4.
func encoder() *Workload { return encoderOf("encoder-block", loris.F32, 2e-5) }

func encoderOf(name string, dtype loris.DType, tolerance float64) *Workload {
	const d, h, ff, length, batch = 512, 8, 2048, 128, 4
	const tokens = batch * length
	return &Workload{
		Name: name, Must: 1.1, Aim: 0.9, FLOP: tokens * (8*d*d + 4*d*ff + 4*length*d), Bytes: float64(dtype.Size()) * (4*d*d + 2*d*ff + 2*tokens*d),
		Ops: 1, Runs: 1, Tolerance: tolerance, Memory: true, MustGPU: 1, GPU: dtype != loris.F32,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			data := newDataOf(s.With(), dtype)
			x := data.Tensor(1, batch, length, d)
			qkv, out := data.linear(d, 3*d), data.linear(d, d)
			up, down := data.linear(d, ff), data.linear(ff, d)
			first, second := data.norm(d), data.norm(d)
			return function(ctx, s, func() *loris.Tensor {
				parts := qkv.linear(x).Chunk(3, loris.Dim(-1))
				a := loris.ScaledDotProductAttention(heads(parts[0], h), heads(parts[1], h), heads(parts[2], h))
				y := first.norm(x.Add(out.linear(joined(a))))
				return second.norm(y.Add(down.linear(up.linear(y).Relu())))
			})
		},
	}
}
