package ref

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() { kernels[aten.MaxPoolWithIndices] = maxPool }

// maxPool takes of each window the first largest element, or its last NaN, as
// ATen does. A window that lies in the padding alone gives the smallest value
// of the dtype and index 0.
func maxPool(c *call) {
	g := ir.PoolOf(c.Args)
	x, values, indices := c.in[0], c.out[0], c.out[1]
	in, out := product(g.InDims[:g.Spatial]), product(g.OutDims[:g.Spatial])
	if out == 0 {
		return
	}
	for b := range values.numel() / out {
		each(ir.MakeShape(ir.U8, g.OutDims[:g.Spatial]...), func(p []int, o int) {
			best := -1
			each(ir.MakeShape(ir.U8, g.Kernel[:g.Spatial]...), func(q []int, _ int) {
				i := 0
				for d := range p {
					v := p[d]*g.Stride[d] - g.Padding[d] + q[d]*g.Dilation[d]
					if v < 0 || v >= g.InDims[d] {
						return
					}
					i = i*g.InDims[d] + v
				}
				if best < 0 || greater(x, b*in+i, b*in+best) || isNaN(x, b*in+i) {
					best = i
				}
			})
			if best < 0 {
				setLowest(values, b*out+o)
				return
			}
			values.copyFrom(b*out+o, x, b*in+best)
			indices.setInt(b*out+o, int64(best))
		})
	}
}

// setLowest writes the smallest value of the dtype, -Inf for floats.
func setLowest(t tensor, i int) {
	switch d := t.dtype(); {
	case d.IsFloat():
		t.setFloat(i, math.Inf(-1))
	case d.IsSigned():
		t.setInt(i, -1<<(8*d.Size()-1))
	default:
		t.setInt(i, 0)
	}
}
