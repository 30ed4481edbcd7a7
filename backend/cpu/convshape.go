package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/conv"
)

// met returns g with as many outputs as are read, where all that reads the result is slices that keep the
// first positions: the gradient of filters with strides is cut so, which for one position of two kept in
// each dimension would take four times as long as it must. Elements of the result that nothing reads are
// left as they are.
func (c *call) met(g conv.Geometry, n int) conv.Geometry {
	if c.Epilogue != nil {
		return g
	}
	for d := range n {
		at := 3 - n + d
		g.Out[at] = c.readOf(c.Instr.Out, 2+d, g.Out[at])
	}
	return g
}

// readOf returns how many of the first n positions of a dimension of a value are read.
func (c *call) readOf(id graph.ID, dim, n int) int {
	if c.l.Kept[id] || len(c.l.Users[id]) == 0 {
		return n
	}
	most := 0
	for _, i := range c.l.Users[id] {
		in := &c.l.Program.Instrs[i]
		if in.Op != aten.Slice {
			return n
		}
		d, start, count, step := ir.SliceBounds(c.l.Program.Args(in))
		switch {
		case d != dim:
			count = c.readOf(in.Out, dim, n)
		case start != 0 || step != 1:
			return n
		}
		most = max(most, count)
	}
	return most
}

// batchInKernel turns a convolution in one or two dimensions whose groups have several input channels and
// one output channel, as the gradient of depthwise filters does, into a depthwise one: the channels become
// the first dimension of its images and of its kernel.
func batchInKernel(g conv.Geometry, x conv.Layout, filters [5]int) (conv.Geometry, conv.Layout, [5]int) {
	if g.Transposed || g.Groups == 1 || g.COut != 1 || g.CIn == 1 || g.In[0] != 1 || g.Kernel[0] != 1 || g.Pad[0] != 0 {
		return g, x, filters
	}
	x.Spatial[0], filters[2] = x.Channel, filters[1]
	x.Channel *= g.CIn
	g.In[0], g.Kernel[0], g.CIn = g.CIn, g.CIn, 1
	g.Stride[0], g.Dilation[0] = 1, 1
	return g, x, filters
}
