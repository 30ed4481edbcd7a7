package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
)

// Counts of elements, and the places of those that are not zero.

func init() {
	composites[aten.Bincount], composites[aten.Histc], composites[aten.NonzeroStatic] = true, true, true
	lowerings[aten.Bincount] = lowerBincount
	lowerings[aten.Histc] = lowerHistc
	lowerings[aten.NonzeroStatic] = lowerNonzero
}

var (
	counters = integers(count[uint8], count[int8], count[int16], count[int32], count[int64])
	nonzeros = numbers(nonzero[uint8], nonzero[int8], nonzero[int16], nonzero[int32], nonzero[int64], nonzero[float32], nonzero[float64])
)

// countCost is for one element that is counted, rangeCost for one of which the least and the greatest are sought.
const countCost, rangeCost = 3.0, 0.3

// countParts is in how many parts n elements are counted, in bins counts each.
func (c *call) countParts(n, bins int) int {
	return max(1, min(maxParts, n/max(c.l.tune.cut.Part, 2*bins)))
}

// counted emits the counts of n elements in parts, and then their sums: f counts elements lo..hi-1.
func counted[T kernels.Number](c *call, out operand, n int, reads []operand, f func(counts []int64, lo, hi int)) {
	parts, m, bins := c.countParts(n, out.n), c.l.mem, out.n
	counts := c.l.temp(ir.I64, parts*bins)
	c.emit(parts, c.l.grain(countCost*float64(n)/float64(parts)), []operand{counts}, reads, func(lo, hi int) {
		all := elements[int64](m, counts)
		for p := lo; p < hi; p++ {
			own := all[p*bins : (p+1)*bins]
			clear(own)
			f(own, p*n/parts, (p+1)*n/parts)
		}
	})
	c.emit(1, 1, []operand{out}, []operand{counts}, func(_, _ int) {
		kernels.AddCounts(elements[T](m, out), elements[int64](m, counts))
	})
}

// lowerBincount adds weights as index_add does.
func lowerBincount(c *call) {
	v, weighted := c.Operand("weights")
	if !weighted {
		counters.of(c.Operands[0].DType())(c)
		return
	}
	index, weights := c.dense(c.l.cast(c.Instr, c.Operands[0], ir.I64)), c.dense(c.l.cast(c.Instr, v, c.Shapes[0].DType()))
	if c.Shapes[0].DType() == ir.F32 {
		addWeights[float32](c, index, weights)
	} else {
		addWeights[float64](c, index, weights)
	}
}

func addWeights[T kernels.Float](c *call, index, weights operand) {
	out, m := c.result(), c.l.mem
	c.emit(1, 1, []operand{out}, []operand{index, weights}, func(_, _ int) {
		dst := elements[T](m, out)
		clear(dst)
		kernels.IndexAdd(dst, elements[int64](m, index), elements[T](m, weights), len(dst), 1, 0, 1)
	})
}

func count[T kernels.Integer](c *call) {
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	counted[int64](c, out, x.n, []operand{x}, func(counts []int64, lo, hi int) {
		kernels.Count(counts, elements[T](m, x)[lo:hi])
	})
}

// lowerHistc counts f32 in its own arithmetic, and all else in f64.
func lowerHistc(c *call) {
	d := ir.F64
	if c.Operands[0].DType() == ir.F32 {
		d = ir.F32
	}
	x := c.dense(c.l.cast(c.Instr, c.Operands[0], d))
	wide := &call{c.Inner(c.Operands, []ir.Shape{c.Shapes[0].WithDType(ir.F64)}), c.l}
	if d == ir.F32 {
		histogram[float32](wide, x)
	} else {
		histogram[float64](wide, x)
	}
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], c.Shapes[0].DType()))
}

func histogram[T kernels.Float](c *call, x operand) {
	from, _ := c.Number("min")
	to, _ := c.Number("max")
	m, reads := c.l.mem, []operand{x}
	var ends operand
	if from == to && x.n > 0 {
		parts := min(maxParts, ceilDiv(x.n, c.l.tune.cut.Part))
		ends = c.l.bytesTemp(sizeOf[T](), 2*parts)
		reads = append(reads, ends)
		c.emit(parts, c.l.grain(rangeCost*float64(x.n)/float64(parts)), []operand{ends}, []operand{x}, func(lo, hi int) {
			e, all := elements[T](m, ends), elements[T](m, x)
			for p := lo; p < hi; p++ {
				e[2*p], e[2*p+1] = kernels.Range(all[p*x.n/parts : (p+1)*x.n/parts])
			}
		})
	}
	counted[float64](c, c.result(), x.n, reads, func(counts []int64, lo, hi int) {
		least, greatest := T(from), T(to)
		if len(reads) > 1 {
			least, greatest = kernels.Range(elements[T](m, ends))
		}
		kernels.Histogram(counts, elements[T](m, x)[lo:hi], least, greatest)
	})
}

func lowerNonzero(c *call) {
	x := c.Operands[0]
	c.Operands = nil
	c.Operands = append(c.Operands, c.l.cast(c.Instr, x, loop.ComputeDType(x.DType())))
	nonzeros.of(c.Operands[0].DType())(c)
}

func nonzero[T kernels.Number](c *call) {
	dims, size, fill := c.Operands[0].Shape.Dims(), c.Int("size"), int64(c.Int("fill_value"))
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	c.emit(1, 1, []operand{out}, []operand{x}, func(_, _ int) {
		kernels.NonZeroPlaces(elements[int64](m, out), elements[T](m, x), dims, size, fill)
	})
}
