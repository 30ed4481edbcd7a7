package ahead

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// reduction is one that package fuse leaves alone: of no elements, or along dimensions that no two
// strides go through. What is reduced together is copied to rows then.
func (c *call) reduction() {
	c.Compute()
	x, s := c.Operands[0], c.Shapes[0]
	if x.Shape.Numel() == 0 {
		c.identity(s)
		return
	}
	mask, _ := ir.ReduceDims(c.Args)
	var order []int
	sizes := [2]int{1, 1}
	for k, reduced := range []bool{false, true} {
		for d := range x.View.Rank {
			if mask[d] == reduced {
				order = append(order, d)
				sizes[k] *= x.View.Dims[d]
			}
		}
	}
	view := x.View.Permute(order)
	rows := c.Reshape(x.As(x.Shape.WithDims(view.Dims[:view.Rank]...), view), x.Shape.WithDims(sizes[:]...))
	out := c.Result()
	k, ok := fuse.Fold(c.Instr, s.DType(), x.DType(), plan.DenseValue(s.WithDims(sizes[0]), out.Buf).Value, rows.Value)
	if ok {
		var emit func()
		if emit, ok = c.e.Kernel(k); ok {
			emit()
			return
		}
	}
	c.e.fail(c.Instr, "it has no machine code for %v", x.DType())
}

// identity is what a reduction of no elements gives.
func (c *call) identity(s ir.Shape) {
	one := int64(0)
	if slices.Contains([]ir.Op{aten.Prod, aten.All}, c.Instr.Op) {
		one = 1
	}
	v := c.e.Constant(ir.MakeShape(s.DType()), elements.AppendNumber(nil, s.DType(), one))
	c.Results = append(c.Results, v.Expand(s.Dims()))
}
