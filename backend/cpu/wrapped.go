package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/strided"
)

// wrapped returns an index of elements of a vector whose negative ones the Program counts from the end before they
// select, as take does: where(index < 0, index + n, index). Computing that takes memory, and longer than to select by it.
func (c *call) wrapped() (index graph.ID, ok bool) {
	self := c.In[0].Shape()
	if self.Rank() != 1 {
		return index, false
	}
	in := c.maker(c.Instr.Args[1], aten.Where)
	if in == nil {
		return index, false
	}
	index = in.Args[2]
	below, sum := c.maker(in.Args[0], aten.Lt), c.maker(in.Args[1], aten.Add)
	return index, below != nil && sum != nil && below.Args[0] == index && c.isInt(below.Args[1], 0) &&
		(sum.Args[0] == index && c.isInt(sum.Args[1], self.Numel()) || sum.Args[1] == index && c.isInt(sum.Args[0], self.Numel()))
}

// maker returns the instruction that computes a value by an op, nil if there is none.
func (c *call) maker(id graph.ID, by ir.Op) *graph.Instr {
	p := c.l.Program
	i := slices.IndexFunc(p.Instrs, func(in graph.Instr) bool { return in.Out == id })
	if i < 0 || p.Instrs[i].Op != by {
		return nil
	}
	return &p.Instrs[i]
}

// isInt reports whether the Program has a value as a constant of i64.
func (c *call) isInt(id graph.ID, want int) bool {
	in := c.maker(id, aten.Full)
	if in == nil || c.l.Program.Shape(id).DType() != ir.I64 {
		return false
	}
	v, ok := c.l.Program.Args(in).Get("fill_value").(int64)
	return ok && v == int64(want)
}

// takeWrapped selects elements of a vector.
func takeWrapped[T strided.Bits](c *call, id graph.ID) {
	c.ComputeFirst(1)
	x, index, out := c.dense(c.Operands[0]), c.dense(c.l.Computed(id)), c.result()
	m := c.l.mem
	c.emit(index.n, c.l.grain(indexCost), []operand{out}, []operand{x, index}, func(lo, hi int) {
		kernels.TakeWrapped(elements[T](m, out)[lo:hi], elements[T](m, x), elements[int64](m, index)[lo:hi])
	})
}
