package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

func init() {
	for op, f := range map[ir.Op]func(*call){aten.AdaptiveMean: adaptiveMean, aten.AdaptiveMeanBackward: adaptiveMeanBackward} {
		composites[op] = true
		lowerings[op] = widened(f)
	}
}

// adaptiveShape returns a shape's dimension that a use splits, how much lies in front of it and behind it.
func adaptiveShape(c *call, s ir.Shape) (dim, outer, inner int) {
	dim, outer, inner = c.Dim("dim", s.Rank()), 1, 1
	for d, n := range s.Dims() {
		switch {
		case d < dim:
			outer *= n
		case d > dim:
			inner *= n
		}
	}
	return dim, outer, inner
}

// adaptiveMean emits means of windows.
func adaptiveMean(c *call) {
	s := c.Operands[0].Shape
	dim, outer, inner := adaptiveShape(c, s)
	parts := c.Shapes[0].Dim(dim)
	w := pool.NewMeans(s.Dim(dim), parts, inner)
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	double := s.DType() == ir.F64
	c.emit(outer*parts, c.l.grain(copyCost*float64(w.N/parts*inner)), []operand{dst}, []operand{src}, func(lo, hi int) {
		if double {
			pool.Mean(w, elements[float64](m, dst), elements[float64](m, src), lo, hi)
		} else {
			pool.Mean(w, elements[float32](m, dst), elements[float32](m, src), lo, hi)
		}
	})
}

// adaptiveMeanBackward emits the gradient of means of windows.
func adaptiveMeanBackward(c *call) {
	s := c.Shapes[0]
	dim, outer, inner := adaptiveShape(c, s)
	w := pool.NewMeans(s.Dim(dim), c.Operands[0].Shape.Dim(dim), inner)
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	double := s.DType() == ir.F64
	c.emit(outer*w.Runs(), c.l.grain(copyCost*float64(w.N/w.Runs()*inner)), []operand{dst}, []operand{src}, func(lo, hi int) {
		if double {
			pool.MeanGradient(w, elements[float64](m, dst), elements[float64](m, src), lo, hi)
		} else {
			pool.MeanGradient(w, elements[float32](m, dst), elements[float32](m, src), lo, hi)
		}
	})
}
