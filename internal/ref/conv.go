package ref

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() { kernels[aten.Convolution] = convolution }

// convolution visits every product of an element of the small side (the result,
// or the input when transposed) with a tap of the kernel:
//
//	out[n, o, p] += input[n, c, p*stride - padding + k*dilation] * weight[o, c, k]
//	out[n, o, p*stride - padding + k*dilation] += input[n, c, p] * weight[c, o, k]
//
// where c and o run over the channels of one group and weight has only those
// of the other side's group.
func convolution(c *call) {
	g := ir.ConvOf(c.Args)
	x, _ := c.operand("input")
	w, _ := c.operand("weight")
	bias, hasBias := c.operand("bias")
	out := c.out[0]
	inPer, outPer := g.In/g.Groups, g.Out/g.Groups
	acc := make([]float64, out.numel())
	large, small := g.InDims[:g.Spatial], g.OutDims[:g.Spatial]
	if g.Transposed {
		large, small = small, large
	}
	inSize, outSize := product(g.InDims[:g.Spatial]), product(g.OutDims[:g.Spatial])
	taps := product(g.Kernel[:g.Spatial])
	eachTap(g, small, large, func(s, k, l int) {
		xi, oi := l, s
		if g.Transposed {
			xi, oi = s, l
		}
		for n := range g.Batch {
			for o := range g.Out {
				group := o / outPer
				for i := range inPer {
					ch := group*inPer + i
					wi := (o*inPer+i)*taps + k
					if g.Transposed {
						wi = (ch*outPer+o%outPer)*taps + k
					}
					acc[(n*g.Out+o)*outSize+oi] += x.float((n*g.In+ch)*inSize+xi) * w.float(wi)
				}
			}
		}
	})
	for i, v := range acc {
		if hasBias {
			v += bias.float(i / outSize % g.Out)
		}
		out.setFloat(i, v)
	}
}

// eachTap calls f with the positions of all places s of the small side, taps k
// of the kernel and places l of the large side that meet.
func eachTap(g *ir.Conv, small, large []int, f func(s, k, l int)) {
	each(ir.MakeShape(ir.U8, small...), func(p []int, s int) {
		each(ir.MakeShape(ir.U8, g.Kernel[:g.Spatial]...), func(q []int, k int) {
			l := 0
			for d := range p {
				i := p[d]*g.Stride[d] - g.Padding[d] + q[d]*g.Dilation[d]
				if i < 0 || i >= large[d] {
					return
				}
				l = l*large[d] + i
			}
			f(s, k, l)
		})
	})
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
