package emit

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// Window is how a filter or a window of three dimensions goes over a tensor. What
// has fewer dimensions has leading ones of size 1, step 1 and no padding.
type Window struct {
	In, Out, Kernel, Stride, Pad, Dilation [3]int
}

func (w *Window) slots(s *slots) *slots {
	for _, v := range [][3]int{w.In, w.Out, w.Kernel, w.Stride, w.Pad, w.Dilation} {
		s.num(v[:]...)
	}
	return s
}

// MaxPool is the largest element of each window and where it is. Its operands are
// the values, their i64 indices and x, all dense.
type MaxPool struct {
	Window
	DType ir.DType // any but bool
	Batch int      // the product of the dimensions before those of the window
}

// Plan returns how it is launched.
func (g *MaxPool) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if n := g.Batch * numel(g.Out[:]); n > 0 {
		s := g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).num(n))
		index := "i32"
		if max(n, g.Batch*numel(g.In[:])) > math.MaxInt32 {
			index = "i64"
		}
		r.each(fmt.Sprintf("max_pool<%s, %s>", cxx.Stored(g.DType), index), "PoolFrame", s, n)
	}
	return &r.Plan
}
