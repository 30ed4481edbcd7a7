package ahead

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// indices computes the operands and returns the index as libtorch takes one that it writes through: of
// 64 bits.
func (c *call) indices() (v plan.Value, ok bool) {
	c.Compute()
	v, _ = c.Operand("index")
	if v.DType() != ir.I64 {
		c.unsupported("its function takes indices of i64, not of %v: cast them", v.DType())
		return v, false
	}
	return v, true
}

// scatter calls scatter.src, which begins with a copy of self.
func (c *call) scatter() {
	index, ok := c.indices()
	if !ok {
		return
	}
	self := c.Operands[0]
	src, _ := c.Operand("src")
	out := c.Result()
	c.emit("aoti_torch_cpu_scatter_src_out", 1, c.tensor(out), c.tensor(self), c.axis(self.Shape), c.tensor(index), c.tensor(src))
}

// scatterReduce calls scatter_reduce.
func (c *call) scatterReduce() {
	index, ok := c.indices()
	if !ok {
		return
	}
	src, _ := c.Operand("src")
	c.reduceInto(index, src, c.Str("reduce"), c.Bool("include_self"))
}

// indexAdd calls scatter_reduce with an index that says the same of all elements of a slice.
func (c *call) indexAdd() {
	index, ok := c.indices()
	if !ok {
		return
	}
	src, _ := c.Operand("source")
	s := ir.AtLeast1D(src.Shape)
	src = c.Reshape(src, s)
	dims := make([]int, s.Rank())
	for d := range dims {
		dims[d] = 1
	}
	dims[c.Dim("dim", s.Rank())] = index.Shape.Numel()
	index = c.Reshape(index, index.Shape.WithDims(dims...)).Expand(s.Dims())
	c.reduceInto(index, src, "sum", true)
}

// reduceInto calls scatter_reduce, which begins with a copy of self.
func (c *call) reduceInto(index, src plan.Value, reduce string, include bool) {
	self := c.Operands[0]
	if self.DType() == ir.Bool || self.DType().IsComplex() {
		c.unsupported("elements of %v have no function that reduces into places", self.DType())
		return
	}
	out := c.Result()
	s := ir.AtLeast1D(self.Shape)
	c.emit("aoti_torch_cpu_scatter_reduce_two_out", 1, c.tensor(c.Reshape(out, s)), c.tensor(c.Reshape(self, s)), c.axis(self.Shape), c.tensor(index), c.tensor(src),
		ahead.Text(reduce), flag(include))
}

// axis returns the attribute dim as an argument.
func (c *call) axis(s ir.Shape) ahead.Int { return ahead.Int(c.Dim("dim", max(s.Rank(), 1))) }

// cummax calls cummax.
func (c *call) cummax() {
	c.Compute()
	x := c.Operands[0]
	c.emit("aoti_torch_cpu_cummax", 0, c.tensor(x), c.axis(x.Shape), c.returned(strided.Dense(c.Shapes[0].Dims())), c.returned(strided.Dense(c.Shapes[1].Dims())))
}
