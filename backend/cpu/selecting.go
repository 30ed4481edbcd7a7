package cpu

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/aten"
	elems "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
)

// Ops that choose elements by their order have kernels that do not sort all of a line.

func init() {
	composites[aten.Topk], composites[aten.Kthvalue] = true, true
	composites[aten.Median], composites[aten.Nanmedian] = true, true
	composites[aten.Mode] = true
	lowerings[aten.Mode] = widened(func(c *call) { modes.of(c.Operands[0].DType())(c) })
	lowerings[aten.Topk] = widened(func(c *call) { topKs.of(c.Operands[0].DType())(c) })
	lowerings[aten.Kthvalue] = widened(func(c *call) { nths.of(c.Operands[0].DType())(c, kernels.Rank{At: c.Int("k") - 1}) })
	lowerings[aten.Median] = widened(func(c *call) { nths.of(c.Operands[0].DType())(c, kernels.Rank{Median: true}) })
	lowerings[aten.Nanmedian] = widened(func(c *call) { nths.of(c.Operands[0].DType())(c, kernels.Rank{Median: true, SkipNaN: true}) })
}

var (
	topKs = numbers(topK[uint8], topK[int8], topK[int16], topK[int32], topK[int64], topK[float32], topK[float64])
	nths  = numbers(nth[uint8], nth[int8], nth[int16], nth[int32], nth[int64], nth[float32], nth[float64])
	modes = numbers(mode[uint8], mode[int8], mode[int16], mode[int32], mode[int64], mode[float32], mode[float64])
)

// selectCost is for one element of which some are chosen.
const selectCost = 6.0

func topK[T kernels.Number](c *call) {
	s := c.Operands[0].Shape
	outer, n, inner := s.Around(c.Dim("dim", s.Rank()))
	k, descending := c.Int("k"), c.Bool("largest")
	if s.Rank() == 0 {
		k = 1
	}
	if k < 0 || k > n || c.Shapes[0].Numel() != outer*k*inner {
		panic(fmt.Errorf("%w: %d of %v to %v", ir.ErrShape, k, s, c.Shapes[0]))
	}
	x, values, indices := c.dense(c.Operands[0]), c.result(), c.result()
	m, room := c.l.mem, kernels.TopKScratch(n, k)
	c.emit(outer*inner, c.l.grain(float64(n)*selectCost), []operand{values, indices}, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		mem := w.scratch.bytes(room * (8 + 4))
		kernels.TopK(elements[T](m, values), elements[int64](m, indices), elements[T](m, x), n, k, inner, descending,
			as[uint64](mem[:8*room]), as[int32](mem[8*room:]), lo, hi)
		workers.Put(w)
	})
}

// medianOfNothing makes NaN, as the dtype has it, and the index 0 the results.
func (c *call) medianOfNothing() {
	d := c.Shapes[0].DType()
	var value any = math.NaN()
	if !d.IsFloat() {
		value = ir.FloatToInt(d, math.NaN())
	}
	c.Results = append(c.Results, c.l.Constant(c.Shapes[0], elems.AppendNumber(nil, d, value)),
		c.l.Constant(c.Shapes[1], elems.AppendNumber(nil, ir.I64, int64(0))))
}

// nth chooses one element of each line, or of all elements where a median has no dim.
func nth[T kernels.Number](c *call, rank kernels.Rank) {
	s := c.Operands[0].Shape
	outer, n, inner := 1, s.Numel(), 1
	if _, ok := c.OptInt("dim"); ok {
		outer, n, inner = s.Around(c.Dim("dim", s.Rank()))
	}
	if c.Shapes[0].Numel() != outer*inner || !rank.Median && rank.At >= n {
		panic(fmt.Errorf("%w: one of %d in %v to %v", ir.ErrShape, n, s, c.Shapes[0]))
	}
	if n == 0 && outer*inner > 0 { // the median of nothing is NaN
		c.medianOfNothing()
		return
	}
	x, values, indices := c.dense(c.Operands[0]), c.result(), c.result()
	m := c.l.mem
	c.emit(outer*inner, c.l.grain(float64(n)*selectCost), []operand{values, indices}, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		kernels.Nth(elements[T](m, values), elements[int64](m, indices), elements[T](m, x), n, inner, rank, scratchOf[uint64](w, n), lo, hi)
		workers.Put(w)
	})
}

// mode is that of lines with elements, of which there is one for each result.
func mode[T kernels.Number](c *call) {
	s := c.Operands[0].Shape
	if outer, n, inner := s.Around(c.Dim("dim", s.Rank())); n == 0 || c.Shapes[0].Numel() != outer*inner {
		panic(fmt.Errorf("%w: the mode of %d in %v to %v", ir.ErrShape, n, s, c.Shapes[0]))
	}
	sortLines(c, kernels.Mode[T])
}
