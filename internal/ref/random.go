package ref

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/philox"
)

func init() {
	kernels[aten.Uniform] = uniform
	kernels[aten.Normal] = normal
	kernels[aten.Randint] = randint
}

// stream returns the seed and the offset of a random op.
func stream(c *call) (seed, offset uint64) {
	return uint64(c.in[0].int(0)), uint64(c.Int("offset"))
}

// uniform has as many random bits as the dtype's significand, so that no value
// is rounded up to 1.
func uniform(c *call) {
	out := c.out[0]
	seed, offset := stream(c)
	for i := range out.numel() {
		switch out.dtype() {
		case ir.F64:
			out.setFloat(i, philox.Float64(seed, offset, int64(i)))
		case ir.F16:
			out.setFloat(i, philox.FloatBits(seed, offset, int64(i), 11))
		case ir.BF16:
			out.setFloat(i, philox.FloatBits(seed, offset, int64(i), 8))
		default:
			out.setFloat(i, float64(philox.Float32(seed, offset, int64(i))))
		}
	}
}

func normal(c *call) {
	seed, offset := stream(c)
	for i := range c.out[0].numel() {
		c.out[0].setFloat(i, philox.NormFloat64(seed, offset, int64(i)))
	}
}

func randint(c *call) {
	seed, offset := stream(c)
	_, low := c.Number("low")
	_, high := c.Number("high")
	for i := range c.out[0].numel() {
		c.out[0].setInt(i, low+int64(philox.Uint64n(seed, offset, int64(i), uint64(high-low))))
	}
}
