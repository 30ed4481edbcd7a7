package workloads

import (
	"context"
	"math"

	"github.com/loris-ml/loris"
)

// convNorm is a convolution without bias and the batch norm behind it, as it is
// in evaluation.
type convNorm struct {
	w, scale, bias, mean, variance *loris.Tensor
	stride, padding                int
}

func (d *Data) convNorm(in, out, kernel, stride int) convNorm {
	// Uniform with the deviation of He's initialisation.
	scale := float32(math.Sqrt(6 / float64(in*kernel*kernel)))
	c := convNorm{w: d.Tensor(scale, out, in, kernel, kernel), stride: stride, padding: kernel / 2}
	n := d.norm(out)
	v := d.norm(out)
	c.scale, c.bias, c.variance, c.mean = n.w, n.b, v.w, v.b
	return c
}

func (c *convNorm) forward(x *loris.Tensor) *loris.Tensor {
	x = x.Conv2d(c.w, loris.Stride(c.stride), loris.Padding(c.padding))
	y, _, _ := x.BatchNorm(c.scale, c.bias, c.mean, c.variance, false, 0.1, 1e-5)
	return y
}

// residual is one basic block; short is nil where the input is added as it is.
type residual struct {
	first, second convNorm
	short         *convNorm
}

func (d *Data) residual(in, out, stride int) residual {
	r := residual{first: d.convNorm(in, out, 3, stride), second: d.convNorm(out, out, 3, 1)}
	if stride != 1 {
		c := d.convNorm(in, out, 1, stride)
		r.short = &c
	}
	return r
}

func (r *residual) forward(x *loris.Tensor) *loris.Tensor {
	y := r.second.forward(r.first.forward(x).Relu())
	if r.short != nil {
		x = r.short.forward(x)
	}
	return y.Add(x).Relu()
}

// resnet is the forward pass of ResNet-18 on one image of 224×224.
func resnet() *Workload {
	const weights = 11_689_512
	return &Workload{
		Name: "resnet18", Must: 1.1, Aim: 0.7, FLOP: 3.628e9, Bytes: 4 * weights, Ops: 1, Runs: 1, Tolerance: 1e-4, Heavy: true,
		open: func(ctx context.Context, s *loris.Session) (*Instance, error) {
			d := NewData(s.With())
			x := d.Tensor(2, 1, 3, 224, 224)
			stem := d.convNorm(3, 64, 7, 2)
			var blocks []residual
			for _, b := range []struct{ in, out, stride int }{
				{64, 64, 1}, {64, 64, 1}, {64, 128, 2}, {128, 128, 1}, {128, 256, 2}, {256, 256, 1}, {256, 512, 2}, {512, 512, 1},
			} {
				blocks = append(blocks, d.residual(b.in, b.out, b.stride))
			}
			last := d.linear(512, 1000)
			return function(ctx, s, func() *loris.Tensor {
				y := stem.forward(x).Relu().MaxPool2d([]int{3}, loris.Stride(2), loris.Padding(1))
				for i := range blocks {
					y = blocks[i].forward(y)
				}
				return last.linear(y.Mean(loris.Dim(2, 3)))
			})
		},
	}
}
