package ref

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() { kernels[aten.Cast] = cast }

// pointwise applies the scalar function of the op's row to each element, on
// floats if the operands are floats and on integers otherwise.
func pointwise(c *call) {
	out := c.out[0]
	d := c.in[len(c.in)-1].dtype()
	each(out.shape, func(idx []int, flat int) {
		if d.IsFloat() {
			out.setFloat(flat, applyFloat(c, idx))
		} else {
			out.setInt(flat, applyInt(c, idx))
		}
	})
}

func applyFloat(c *call, idx []int) float64 {
	f := &c.Spec.Scalar
	x := func(i int) float64 { return c.in[i].float(at(c.in[i].shape, idx)) }
	switch {
	case len(c.in) == 1 && f.F1 != nil:
		return f.F1(x(0))
	case len(c.in) == 2 && f.F2 != nil:
		return f.F2(x(0), x(1))
	case len(c.in) == 3 && f.F3 != nil:
		return f.F3(x(0), x(1), x(2))
	}
	panic(fmt.Errorf("%w: no float function of %d operands", ir.ErrDType, len(c.in)))
}

func applyInt(c *call, idx []int) int64 {
	f := &c.Spec.Scalar
	x := func(i int) int64 { return c.in[i].int(at(c.in[i].shape, idx)) }
	switch {
	case f.B1 != nil && c.in[0].dtype() == ir.Bool:
		if f.B1(x(0) != 0) {
			return 1
		}
		return 0
	case len(c.in) == 1 && f.I1 != nil:
		return f.I1(x(0))
	case len(c.in) == 2 && f.I2 != nil:
		return f.I2(x(0), x(1))
	case len(c.in) == 3 && f.I3 != nil:
		return f.I3(x(0), x(1), x(2))
	}
	panic(fmt.Errorf("%w: no integer function of %d operands", ir.ErrDType, len(c.in)))
}

func cast(c *call) {
	for i := range c.out[0].numel() {
		c.out[0].convertFrom(i, c.in[0], i)
	}
}
