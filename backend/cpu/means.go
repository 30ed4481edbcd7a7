package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

func init() {
	composites[aten.AdaptiveMean], composites[aten.AdaptiveMeanBackward] = true, true
	lowerings[aten.AdaptiveMean] = widened(singleOrDouble(adaptiveMean[float32], adaptiveMean[float64]))
	lowerings[aten.AdaptiveMeanBackward] = widened(singleOrDouble(adaptiveMeanBackward[float32], adaptiveMeanBackward[float64]))
}

// adaptiveMean emits means of windows.
func adaptiveMean[T float32 | float64](c *call) {
	s := c.Operands[0].Shape
	dim := c.Dim("dim", s.Rank())
	outer, n, inner := s.Around(dim)
	parts := c.Shapes[0].Dim(dim)
	w := pool.NewMeans(n, parts, inner)
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	c.emit(outer*parts, c.l.grain(copyCost*float64(n/parts*inner)), []operand{dst}, []operand{src}, func(lo, hi int) {
		pool.Mean(w, elements[T](m, dst), elements[T](m, src), lo, hi)
	})
}

// adaptiveMeanBackward emits the gradient of means of windows.
func adaptiveMeanBackward[T float32 | float64](c *call) {
	s := c.Shapes[0]
	dim := c.Dim("dim", s.Rank())
	outer, n, inner := s.Around(dim)
	w := pool.NewMeans(n, c.Operands[0].Shape.Dim(dim), inner)
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	c.emit(outer*w.Runs(), c.l.grain(copyCost*float64(n/w.Runs()*inner)), []operand{dst}, []operand{src}, func(lo, hi int) {
		pool.MeanGradient(w, elements[T](m, dst), elements[T](m, src), lo, hi)
	})
}
