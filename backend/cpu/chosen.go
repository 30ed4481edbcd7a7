package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// Rows that an index chooses are not copied where kernels alone read them: these find the rows by the index.

const (
	// mostReaders is how many kernels read rows by an index at most, and mostFarReaders where the rows are of more
	// than nearRows bytes, so that going to them takes longer than reading copies in order.
	mostReaders, mostFarReaders = 4, 2
	nearRows                    = 1 << 20
)

// unlessByIndex lowers an op that chooses by an index, unless what it chooses is left to those who read it.
func unlessByIndex(f lowerFunc) lowerFunc {
	return func(c *call) {
		if !c.leftToReaders() {
			f(c)
		}
	}
}

// leftToReaders makes the result what kernels read by its index, if that is so.
func (c *call) leftToReaders() bool {
	s, most := c.In[0].Shape(), mostReaders
	if s.Bytes() > nearRows {
		most = mostFarReaders
	}
	if c.l.engine == nil || s.Rank() < 2 || s.Numel() == 0 || c.Shapes[0].Numel() == 0 || s.DType().Size() > 8 || !c.ReadByIndex(most) {
		return false
	}
	c.Compute()
	of, ok := c.chosen()
	if ok {
		c.Choose(of)
	}
	return ok
}

// chosen returns the result as what an index chooses; false if it has no rows of which each has one.
func (c *call) chosen() (of fuse.Chosen, ok bool) {
	self, index := c.Operands[0], c.Operands[1]
	dims, dim := c.Shapes[0].Dims(), c.Dim("dim", self.Shape.Rank())
	of = fuse.Chosen{Size: self.Shape.Dim(dim), Step: self.View.Strides[dim], From: self.Value, Apart: !self.Contiguous()}
	of.From.View.Strides[dim] = 0
	copy(of.From.View.Dims[:], dims)
	if c.Instr.Op == aten.Gather {
		of.Index = index.Value
		_, _, rows := c.rowVector()
		of.Apart = of.Apart || !rows
		return of, index.DType() == ir.I64 && inRows(&of.From.View, &of.Index.View)
	}
	of.Index.View = strided.Dense(dims)
	by := &of.Index.View
	by.Strides = [strided.MaxRank]int{}
	if !inRows(&of.From.View, by) {
		return of, false
	}
	index = c.l.cast(c.Instr, index, ir.I64)
	of.Index.Buf, by.Offset, by.Strides[dim] = index.Buf, index.View.Offset, index.View.Strides[0]
	return of, true
}

// inRows reports whether a view has rows of which each has one index.
func inRows(from, by *strided.View) bool {
	for d := from.Rank - 1; d >= 0; d-- {
		if from.Dims[d] > 1 {
			return from.Strides[d] == 1 && by.Strides[d] == 0
		}
	}
	return false
}

// What kernels and copies take on a processor, in nanoseconds: measured, of rows in the second cache.
const (
	// entryCost is what it takes to come to a row by an index.
	entryCost = 0.5
	// brokenCost is for each row that would be in one line otherwise and does not end where a vector does, and
	// brokenVectorCost for each of its vectors, which mostly lie across cache lines.
	brokenCost, brokenVectorCost = 0.2, 0.3
	// copyRowCost is what it takes to copy a row, and copiedCost to copy an element and read it again.
	copyRowCost, copiedCost = 0.6, 0.07
	// mostPicked is how many elements each index picks at most that are moved one by one.
	mostPicked = 6
	// lanes is how many elements a vector has, about.
	lanes = 16
)

// Chooses reports whether it costs less to find rows by their index than to copy them. Elements of rows that lie in one
// line fill vectors, others may not.
func (l *lowering) Chooses(c fuse.Chosen, cols int, nanos float64, inLine bool) bool {
	switch {
	case c.Across:
		return cols <= mostPicked
	case c.Apart:
		return true
	}
	cost := entryCost
	if vectors := (cols + lanes - 1) / lanes; inLine && vectors*lanes > cols {
		cost += brokenCost + brokenVectorCost*float64(vectors) + float64(vectors*lanes-cols)*nanos
	}
	return cost < copyRowCost+copiedCost*float64(cols)
}

// MoveChosen emits the copy of a value that is not in memory.
func (l *lowering) MoveChosen(in *graph.Instr, to plan.Value, from fuse.Chosen) bool {
	k, ok := fuse.MoveChosen(in, to.DType(), to.Value, from)
	return ok && l.emitKernel(k)
}
