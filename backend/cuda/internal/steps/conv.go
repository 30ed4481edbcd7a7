package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/ir"
)

func init() {
	lowerings[ir.OpConvolution] = convolution
	lowerings[ir.OpMaxPoolWithIndices] = maxPool
}

// spatial fills in the leading dimensions that kernels over three want.
func spatial(src []int, lead int) [3]int {
	out := [3]int{lead, lead, lead}
	copy(out[3-len(src):], src)
	return out
}

// convolution reads image and filters where they lie.
func convolution(c *call) {
	g, x, f := ir.ConvOf(c.Args), c.in[0], c.in[1]
	n := g.Spatial
	e := emit.Convolution{
		DType: g.DType, Images: g.Batch, Groups: g.Groups, Channels: g.In / g.Groups, Results: g.Out / g.Groups,
		Transposed: g.Transposed, Bias: len(c.in) > 2,
		XImage: x.view.Strides[0], XChannel: x.view.Strides[1], XAt: spatial(x.view.Strides[2:2+n], 0),
		FAt: spatial(f.view.Strides[2:2+n], 0),
		Window: emit.Window{
			In: spatial(g.InDims[:n], 1), Out: spatial(g.OutDims[:n], 1), Kernel: spatial(g.Kernel[:n], 1),
			Stride: spatial(g.Stride[:n], 1), Pad: spatial(g.Padding[:n], 0), Dilation: spatial(g.Dilation[:n], 1),
		},
	}
	// Filters are [results, channels of a group], transposed ones [channels, results
	// of a group].
	e.FResult, e.FInput = f.view.Strides[0], f.view.Strides[1]
	e.FGroup = e.Results * f.view.Strides[0]
	if g.Transposed {
		e.FResult, e.FInput = f.view.Strides[1], f.view.Strides[0]
		e.FGroup = e.Channels * f.view.Strides[0]
	}
	values := []value{x, f}
	if e.Bias {
		values = append(values, c.dense(c.in[2]))
	}
	c.kernels(e.Plan(c.l.opt.Limits), 1, append([]value{c.result()}, values...)...)
}

func maxPool(c *call) {
	p := ir.PoolOf(c.Args)
	n := p.Spatial
	x := c.dense(c.in[0])
	g := emit.MaxPool{DType: x.dtype(), Batch: 1, Window: emit.Window{
		In: spatial(p.InDims[:n], 1), Out: spatial(p.OutDims[:n], 1), Kernel: spatial(p.Kernel[:n], 1),
		Stride: spatial(p.Stride[:n], 1), Pad: spatial(p.Padding[:n], 0), Dilation: spatial(p.Dilation[:n], 1),
	}}
	for _, d := range x.shape.Dims()[:x.shape.Rank()-n] {
		g.Batch *= d
	}
	values := c.result()
	c.kernels(g.Plan(c.l.opt.Limits), 2, values, c.result(), x)
}
