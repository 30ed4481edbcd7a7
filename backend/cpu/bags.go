package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/bags"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/loop"
)

func init() {
	composites[aten.EmbeddingBag] = true
	lowerings[aten.EmbeddingBag] = func(c *call) {
		switch c.Operands[0].DType() {
		case ir.F64:
			embeddingBag[float64, float64](c)
		case ir.BF16:
			embeddingBag[float32, vec.BF16](c)
		case ir.F16:
			embeddingBag[float32, vec.F16](c)
		default:
			embeddingBag[float32, float32](c)
		}
	}
}

// The modes of embedding_bag.
const (
	bagMean = 1
	bagMax  = 2
)

// embeddingBag computes in A, the compute dtype of the table.
func embeddingBag[A vec.Float, E vec.Element](c *call) {
	table := c.Operands[0]
	wide := loop.ComputeDType(table.DType())
	t := bags.Table[E]{Width: table.Shape.Dim(1), Padding: int64(c.Int("padding_idx"))}
	asI64 := func(name string) operand {
		v, _ := c.Operand(name)
		return c.dense(c.l.cast(c.Instr, v, ir.I64))
	}
	indices, offsets := asI64("indices"), asI64("offsets")
	rows := c.dense(table)
	shape := func(s ir.Shape, d ir.DType) *call { return &call{c.Inner(nil, []ir.Shape{s.WithDType(d)}), c.l} }
	out, of, sizes, from := shape(c.Shapes[0], wide), shape(c.Shapes[1], ir.I64), shape(c.Shapes[2], ir.I64), shape(c.Shapes[3], ir.I64)
	dst, bag, counts, at := out.result(), of.result(), sizes.result(), from.result()
	n, m := counts.n, c.l.mem
	bounds, each := c.l.temp(ir.I64, n+1), !c.unused(1)
	c.emit(1, 1, []operand{bag, counts, bounds}, []operand{indices, offsets}, func(_, _ int) {
		bags.Find(elements[int64](m, bag), elements[int64](m, bounds), elements[int64](m, counts), elements[int64](m, indices), elements[int64](m, offsets), t.Padding, each)
	})
	reads := []operand{rows, indices, bounds, counts}
	var scales []operand
	if v, ok := c.Operand("per_sample_weights"); ok {
		scales = append(scales, c.dense(c.l.cast(c.Instr, v, wide)))
	}
	mode := c.Int("mode")
	cost := (indexCost + 0.1*float64(t.Width)) * float64(max(indices.n/max(n, 1), 1))
	c.emit(n, c.l.grain(cost), []operand{dst, at}, append(reads, scales...), func(lo, hi int) {
		t := t
		t.Rows = elements[E](m, rows)
		places, ends := elements[int64](m, indices), elements[int64](m, bounds)
		if mode == bagMax {
			bags.Maxima(elements[A](m, dst), elements[int64](m, at), &t, places, ends, lo, hi)
			return
		}
		var factors []A
		var divisors []int64
		if len(scales) > 0 {
			factors = elements[A](m, scales[0])
		}
		if mode == bagMean {
			divisors = elements[int64](m, counts)
		}
		clear(elements[int64](m, at)[lo*at.n/n : hi*at.n/n])
		bags.Sums(elements[A](m, dst), &t, places, ends, factors, divisors, lo, hi)
	})
	for i, r := range []*call{out, of, sizes, from} {
		c.Results = append(c.Results, c.l.cast(c.Instr, r.Results[0], c.Shapes[i].DType()))
	}
}
