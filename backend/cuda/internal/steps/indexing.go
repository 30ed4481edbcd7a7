package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

func init() {
	lowerings[aten.Gather] = gather
	lowerings[aten.Scatter] = scatter
	lowerings[aten.ScatterReduce] = scatterReduce
	lowerings[aten.IndexSelect] = indexSelect
	lowerings[aten.IndexAdd] = indexAdd
	lowerings[aten.Sort] = sortAlong
}

// index returns the index operand as dense i64.
func (c *call) index() plan.Value { return c.Dense(c.cast(c.operand("index"), ir.I64)) }

// geometry returns that of gather and scatter, and the index as i64.
func (c *call) geometry() (emit.Lines, plan.Value) {
	self, index := c.Operands[0].Shape, c.cast(c.operand("index"), ir.I64)
	return emit.Lines{
		Dims: ir.AtLeast1D(self).Dims(), Dim: c.Dim("dim", self.Rank()), Index: ir.AtLeast1D(index.Shape).Dims(), Strides: strides(index),
	}, index
}

// strides returns those of a value that counts as a vector if it is a number.
func strides(v plan.Value) []int {
	if v.View.Rank == 0 {
		return []int{1}
	}
	return v.View.Strides[:v.View.Rank]
}

// indexed lets the last step leave an index behind that is out of range.
func (c *call) indexed() {
	s := ir.AtLeast1D(c.Operands[0].Shape)
	c.l.mayFail(s.Dim(c.Dim("dim", s.Rank())))
}

func gather(c *call) {
	lines, index := c.geometry()
	g := emit.Gather{Lines: lines, Size: c.Operands[0].Size()}
	x := c.Dense(c.Operands[0])
	c.kernels(g.Plan(c.l.opt.Limits), 1, c.Result(), x, index)
	c.indexed()
}

func scatter(c *call) {
	lines, index := c.geometry()
	src := c.operand("src")
	lines.Source = strides(src)
	g := emit.Scatter{Lines: lines, Size: c.Operands[0].Size()}
	c.kernels(g.Plan(c.l.opt.Limits), 1, c.ResultOfCopy(), index, src)
	c.indexed()
}

// boolReductions are the ways that do with 0 and 1 what the others do with numbers
// that are then compared with 0: a mean, rounded down, is 1 if all are.
var boolReductions = map[string]string{"sum": "amax", "prod": "amin", "mean": "amin", "amax": "amax", "amin": "amin"}

func scatterReduce(c *call) {
	lines, index := c.geometry()
	src := c.operand("src")
	lines.Source = strides(src)
	g := emit.ScatterReduce{Lines: lines, DType: c.Operands[0].DType(), Reduce: c.Str("reduce"), Self: c.Bool("include_self")}
	if g.DType == ir.Bool {
		g.DType, g.Reduce = ir.U8, boolReductions[g.Reduce]
	}
	c.kernels(g.Plan(c.l.opt.Limits), 1, c.ResultOfCopy(), index, src)
	c.indexed()
}

// rows returns the first operand as [outer, size, inner] around the indexed
// dimension.
func (c *call) rows() (outer, size, inner int) {
	s := ir.AtLeast1D(c.Operands[0].Shape)
	return s.Around(c.Dim("dim", s.Rank()))
}

func indexSelect(c *call) {
	x, index, out := c.Dense(c.Operands[0]), c.index(), c.Result()
	g := emit.IndexSelect{N: index.Shape.Numel(), Element: x.Size(), Align: max(x.Size(), aligned(16, x))}
	g.Outer, g.Size, g.Inner = c.rows()
	c.kernels(g.Plan(c.l.opt.Limits), 1, out, x, index)
	c.indexed()
}

// indexAdd adds bools as numbers.
func indexAdd(c *call) {
	if c.Operands[0].DType() == ir.Bool {
		c.viaIntegers(indexAdd)
		return
	}
	index, source := c.index(), c.Dense(c.operand("source"))
	g := emit.IndexAdd{N: index.Shape.Numel(), DType: c.Operands[0].DType()}
	g.Outer, g.Size, g.Inner = c.rows()
	c.kernels(g.Plan(c.l.opt.Limits), 1, c.ResultOfCopy(), index, source)
	c.indexed()
}

func sortAlong(c *call) {
	s := c.Operands[0].Shape
	g := emit.Sort{DType: s.DType(), Descending: c.Bool("descending")}
	g.Outer, g.N, g.Inner = s.Around(c.Dim("dim", s.Rank()))
	x := c.Dense(c.Operands[0])
	values := c.Result()
	c.kernels(g.Plan(c.l.opt.Limits), 2, values, c.Result(), x)
}
