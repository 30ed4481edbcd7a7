package cpu

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
)

// Reductions of stretches of lines.

func init() {
	composites[aten.SegmentReduce], composites[aten.SegmentGradient] = true, true
	lowerings[aten.SegmentReduce] = widened(singleOrDouble(segmentReduce[float32], segmentReduce[float64]))
	lowerings[aten.SegmentGradient] = widened(singleOrDouble(segmentGradient[float32], segmentGradient[float64]))
}

// segmentCost is for one element of a stretch.
const segmentCost = 1.0

// segments emits the bounds of the stretches of data, and returns what they are of; Bounds are set by
// the steps that read them.
func (c *call) segments(data plan.Value) (s kernels.Segments, outer int, bounds operand) {
	axis := c.Dim("axis", data.Shape.Rank())
	outer, s.Along, s.Inner = data.Shape.Around(axis)
	v, offsets := c.Operand("offsets")
	if !offsets {
		v, _ = c.Operand("lengths")
	}
	s.Count = v.Shape.Dim(-1)
	if offsets {
		s.Count--
	}
	ends := c.dense(c.l.cast(c.Instr, v, ir.I64))
	bounds = c.l.temp(ir.I64, outer*(s.Count+1))
	m, count, along := c.l.mem, s.Count, s.Along
	c.emit(1, 1, []operand{bounds}, []operand{ends}, func(_, _ int) {
		kernels.Bounds(elements[int64](m, bounds), elements[int64](m, ends), offsets, count, along)
	})
	return s, outer, bounds
}

// segmentGrain is how many stretches are worth a goroutine.
func (c *call) segmentGrain(s *kernels.Segments) int {
	return c.l.grain(20 + segmentCost*float64(s.Along*s.Inner)/float64(max(s.Count, 1)))
}

func segmentReduce[T kernels.Float](c *call) {
	least, greatest := kernels.Limits[T]()
	initial, given := c.OptFloat("initial")
	none := 0 // the mean of nothing is NaN
	if given {
		none = 1
	}
	switch c.Str("reduce") {
	case "prod":
		start := 1.0
		if given {
			start = initial
		}
		reduceSegments(c, kernels.ProdReducer[T, T, float64](), start, false, 0)
	case "max":
		if given {
			least = T(initial)
		}
		reduceSegments(c, kernels.MaxReducer(least), least, false, 0)
	case "min":
		if given {
			greatest = T(initial)
		}
		reduceSegments(c, kernels.MinReducer(greatest), greatest, false, 0)
	default:
		reduceSegments(c, kernels.SumReducer[T, T, float64](), initial, c.Str("reduce") == "mean", none)
	}
}

func reduceSegments[T kernels.Float, A kernels.Number](c *call, f *kernels.Reducer[T, T, A], start A, mean bool, least int) {
	s, outer, bounds := c.segments(c.Operands[0])
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	c.emit(outer*s.Count, c.segmentGrain(&s), []operand{out}, []operand{x, bounds}, func(lo, hi int) {
		s := s
		s.Bounds = elements[int64](m, bounds)
		w := workers.Get().(*worker)
		kernels.ReduceSegments(elements[T](m, out), elements[T](m, x), &s, scratchOf[A](w, kernels.ReduceRoom), start, f, mean, least, lo, hi)
		workers.Put(w)
	})
}

// segmentWays are the ways of SegmentGradient.
var segmentWays = map[string]kernels.Combine{
	"sum": kernels.CombineSum, "mean": kernels.CombineMean, "prod": kernels.CombineProd, "max": kernels.CombineMax, "min": kernels.CombineMin,
}

func segmentGradient[T kernels.Float](c *call) {
	data, how := c.Operands[2], segmentWays[c.Str("reduce")]
	start, given := c.OptFloat("initial")
	if !given {
		start = 1
	}
	s, outer, bounds := c.segments(data)
	g, y, x := c.dense(c.Operands[0]), c.dense(c.Operands[1]), c.dense(data)
	out, m := c.result(), c.l.mem
	if s.Count == 0 {
		c.emit(1, 1, []operand{out}, []operand{bounds}, func(_, _ int) { clear(elements[T](m, out)) })
		return
	}
	c.emit(outer*s.Count, c.segmentGrain(&s), []operand{out}, []operand{g, y, x, bounds}, func(lo, hi int) {
		s := s
		s.Bounds = elements[int64](m, bounds)
		kernels.SegmentGradient(elements[T](m, out), elements[T](m, x), elements[T](m, g), elements[T](m, y), &s, how, start, lo, hi)
	})
}
