package ref

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
)

func init() {
	kernels[aten.Cumsum] = func(c *call) {
		cumulate(c, 0, func(x, y float64) float64 { return x + y }, func(x, y int64) int64 { return x + y })
	}
	kernels[aten.Cumprod] = func(c *call) {
		cumulate(c, 1, func(x, y float64) float64 { return x * y }, func(x, y int64) int64 { return x * y })
	}
	kernels[aten.Cummax] = cummax
}

func dimLine(c *call) line {
	s := c.in[0].shape
	return lineOf(s, c.Dim("dim", s.Rank()))
}

// cumulate converts the elements to the result dtype and folds each line,
// keeping what it has at every step.
func cumulate(c *call, identity int64, f func(x, y float64) float64, n func(x, y int64) int64) {
	out := c.out[0]
	x := c.in[0].as(out.dtype())
	l := dimLine(c)
	l.each(func(pos func(int) int) {
		accF, accI := float64(identity), identity
		for k := range l.n {
			if out.dtype().IsFloat() {
				accF = f(accF, x.float(pos(k)))
				out.setFloat(pos(k), accF)
			} else {
				accI = n(accI, x.int(pos(k)))
				out.setInt(pos(k), accI)
			}
		}
	})
}

// cummax keeps the later of equal elements, and the latest NaN once there is one.
func cummax(c *call) {
	x, values, indices := c.in[0], c.out[0], c.out[1]
	l := dimLine(c)
	l.each(func(pos func(int) int) {
		best := 0
		for k := range l.n {
			if !greater(x, pos(best), pos(k)) && (isNaN(x, pos(k)) || !isNaN(x, pos(best))) {
				best = k
			}
			values.copyFrom(pos(k), x, pos(best))
			indices.setInt(pos(k), int64(best))
		}
	})
}

func isNaN(t tensor, i int) bool { return t.dtype().IsFloat() && math.IsNaN(t.float(i)) }
