package ref

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	kernels[aten.Sum] = func(c *call) {
		accumulate(c, 0, func(x, y float64) float64 { return x + y }, func(x, y int64) int64 { return x + y })
	}
	kernels[aten.Prod] = func(c *call) {
		accumulate(c, 1, func(x, y float64) float64 { return x * y }, func(x, y int64) int64 { return x * y })
	}
	kernels[aten.Amax] = func(c *call) { extremum(c, greater) }
	kernels[aten.Amin] = func(c *call) { extremum(c, less) }
	kernels[aten.Argmax] = func(c *call) { extremum(c, greater) }
	kernels[aten.Argmin] = func(c *call) { extremum(c, less) }
	kernels[aten.Any] = func(c *call) { logical(c, false) }
	kernels[aten.All] = func(c *call) { logical(c, true) }
}

// groups returns, for each element of the output of a reduction, the positions
// of the operand's elements that it is made of, in row-major order.
func groups(c *call) [][]int {
	mask, _ := ir.ReduceDims(c.Args)
	g := make([][]int, c.out[0].numel())
	each(c.in[0].shape, func(idx []int, flat int) {
		o := 0
		for d, i := range idx {
			if !mask[d] {
				o = o*c.in[0].shape.Dim(d) + i
			}
		}
		g[o] = append(g[o], flat)
	})
	return g
}

// accumulate converts the elements to the result dtype and folds them.
func accumulate(c *call, identity int64, f func(x, y float64) float64, n func(x, y int64) int64) {
	out := c.out[0]
	x := c.in[0].as(out.dtype())
	for o, g := range groups(c) {
		if out.dtype().IsFloat() {
			acc := float64(identity)
			for _, i := range g {
				acc = f(acc, x.float(i))
			}
			out.setFloat(o, acc)
			continue
		}
		acc := identity
		for _, i := range g {
			acc = n(acc, x.int(i))
		}
		out.setInt(o, acc)
	}
}

// order compares elements i and j of a tensor.
type order func(t tensor, i, j int) bool

// less reports whether element i is smaller than element j; NaN is smaller than
// all others, so that it wins a minimum.
func less(t tensor, i, j int) bool {
	if !t.dtype().IsFloat() {
		return t.int(i) < t.int(j)
	}
	x, y := t.float(i), t.float(j)
	return x < y || (math.IsNaN(x) && !math.IsNaN(y))
}

// greater reports whether element i is larger than element j; NaN is larger
// than all others, so that it wins a maximum.
func greater(t tensor, i, j int) bool {
	if !t.dtype().IsFloat() {
		return t.int(i) > t.int(j)
	}
	x, y := t.float(i), t.float(j)
	return x > y || (math.IsNaN(x) && !math.IsNaN(y))
}

// extremum finds the first element that none is better than: its value for
// amax and amin, its place in the group for argmax and argmin.
func extremum(c *call, better order) {
	x, out := c.in[0], c.out[0]
	arg := c.Spec.Op == aten.Argmax || c.Spec.Op == aten.Argmin
	for o, g := range groups(c) {
		best := 0
		for k := range g {
			if better(x, g[k], g[best]) {
				best = k
			}
		}
		if arg {
			out.setInt(o, int64(best))
		} else {
			out.copyFrom(o, x, g[best])
		}
	}
}

// logical is all (identity true) or any (identity false).
func logical(c *call, identity bool) {
	for o, g := range groups(c) {
		v := identity
		for _, i := range g {
			if (c.in[0].float(i) != 0) != identity {
				v = !identity
			}
		}
		if v {
			c.out[0].setInt(o, 1)
		}
	}
}
