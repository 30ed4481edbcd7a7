package cpu

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/ir"
)

func init() {
	lowerings[ir.OpConvolution] = func(c *call) {
		if f, ok := convolutions[c.in[0].dtype()]; ok {
			f(c)
			return
		}
		widened(convolution[float32, float32])(c) // the 8-bit floats
	}
}

var convolutions = byType[lowerFunc]{
	ir.F32: convolution[float32, float32], ir.F64: convolution[float64, float64],
	ir.BF16: convolution[gemm.BF16, float32], ir.F16: convolution[gemm.F16, float32],
}

// packCost is the time of packing one element of a filter in nanoseconds.
const packCost = 0.5

// convolution emits one step, which shares its work out itself. The operands
// are bound when it runs.
func convolution[T conv.Element, A conv.Float](c *call) {
	g, n := convGeometry(c)
	in, filters := c.upward(c.in[0]), c.upward(c.in[1])
	reads := []operand{{buf: in.buf}, {buf: filters.buf}}
	var bias operand
	hasBias := len(c.in) > 2
	if hasBias {
		bias = c.dense(c.in[2])
		reads = append(reads, bias)
	}
	out := c.result()
	w := conv.WeightsWithout[A](g)
	packed := c.l.bytesTemp(sizeOf[A](), w.Len())
	run := &conv.Call[T, A]{
		Plan:    conv.New[T, A](g, imageLayout(in, n), conv.ChannelsFirst(g.Groups*g.COut, g.Out)),
		Weights: w,
	}
	var src []T
	strides := filterStrides(filters, n)
	pack := func(lo, hi int) { conv.SetWeights(w, src, strides, lo, hi) }
	packGrain := c.l.grain(packCost * float64(w.Len()) / float64(max(w.Units(), 1)))
	m := c.l.mem
	c.emit(1, 1, []operand{out, packed}, reads, func(_, _ int) {
		if run.Plan.Units() == 0 {
			return
		}
		run.X, run.Y = as[T](m.bufs[in.buf])[in.view.Offset:], elements[T](m, out)
		if hasBias {
			run.Bias = elements[T](m, bias)
		}
		src = as[T](m.bufs[filters.buf])[filters.view.Offset:]
		w.Use(elements[A](m, packed))
		kernels.For(w.Units(), packGrain, pack)
		run.Run()
		run.X, run.Y, run.Bias, src = nil, nil, nil, nil
	})
}

// convGeometry returns the geometry of a use of convolution, and its number of
// spatial dimensions.
func convGeometry(c *call) (conv.Geometry, int) {
	g := ir.ConvOf(c.Args)
	n := g.Spatial
	return conv.Geometry{
		N: g.Batch, Groups: g.Groups, CIn: g.In / g.Groups, COut: g.Out / g.Groups,
		In: spatial(g.InDims, n, 1), Kernel: spatial(g.Kernel, n, 1), Out: spatial(g.OutDims, n, 1),
		Stride: spatial(g.Stride, n, 1), Pad: spatial(g.Padding, n, 0), Dilation: spatial(g.Dilation, n, 1),
		Transposed: g.Transposed,
	}, n
}

// imageLayout returns the strides of an image with n spatial dimensions.
func imageLayout(v value, n int) conv.Layout {
	s := &v.view.Strides
	return conv.Layout{Batch: s[0], Channel: s[1], Spatial: spatial([3]int(s[2:5]), n, 0)}
}

func filterStrides(v value, n int) [5]int {
	s := &v.view.Strides
	k := spatial([3]int(s[2:5]), n, 0)
	return [5]int{s[0], s[1], k[0], k[1], k[2]}
}
