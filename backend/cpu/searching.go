package cpu

import (
	"fmt"
	"math/bits"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
)

func init() {
	composites[aten.Searchsorted], composites[aten.Bucketize] = true, true
	lowerings[aten.Searchsorted] = func(c *call) {
		var order []operand
		if sorter, ok := c.Operand("sorter"); ok {
			order = append(order, c.dense(sorter))
		}
		c.search(c.Operands[0], c.Operands[1], order, c.Bool("right") || c.Str("side") == "right")
	}
	lowerings[aten.Bucketize] = func(c *call) { c.search(c.Operands[1], c.Operands[0], nil, c.Bool("right")) }
}

var searches = numbers(search[uint8], search[int8], search[int16], search[int32], search[int64], search[float32], search[float64])

// search looks for the elements of x in rows, which meet in one dtype. order has the sorter, if there
// is one.
func (c *call) search(rows, x plan.Value, order []operand, right bool) {
	d := loop.ComputeDType(rows.DType())
	if rows.DType() != x.DType() || d == ir.Bool {
		d = ir.I64
		if rows.DType().IsFloat() || x.DType().IsFloat() {
			d = ir.F64
		}
	}
	n := rows.Shape.Dim(-1)
	if lines := rows.Shape.Numel() / max(n, 1); n > 0 && lines > 1 && (x.Shape.Rank() == 0 || x.Shape.Numel() != lines*x.Shape.Dim(-1)) {
		panic(fmt.Errorf("%w: %v in %v", ir.ErrShape, x.Shape, rows.Shape))
	}
	wide := &call{c.Inner([]plan.Value{c.l.cast(c.Instr, rows, d), c.l.cast(c.Instr, x, d)}, []ir.Shape{c.Shapes[0].WithDType(ir.I64)}), c.l}
	searches.of(d)(wide, order, right)
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], c.Shapes[0].DType()))
}

func search[T kernels.Number](c *call, order []operand, right bool) {
	rows, x, out := sortKeys[T](c, c.Operands[0]), sortKeys[T](c, c.Operands[1]), c.result()
	n, perRow := c.Operands[0].Shape.Dim(-1), max(x.n, 1)
	if c.Operands[0].Shape.Rank() > 1 {
		perRow = max(c.Operands[1].Shape.Dim(-1), 1)
	}
	m := c.l.mem
	cost := 4 + 3*float64(bits.Len(uint(n)))
	c.emit(x.n, c.l.grain(cost), []operand{out}, append([]operand{rows, x}, order...), func(lo, hi int) {
		var places []int64
		if len(order) > 0 {
			places = elements[int64](m, order[0])
		}
		w := workers.Get().(*worker)
		kernels.Search(elements[int64](m, out), elements[int64](m, rows), elements[int64](m, x), places, n, perRow, right,
			scratchOf[int32](w, kernels.TableMost), lo, hi)
		workers.Put(w)
	})
}

// sortKeys makes integers of the same order.
func sortKeys[T kernels.Number](c *call, v plan.Value) operand {
	x := c.dense(v)
	if v.DType() == ir.I64 {
		return x
	}
	keys, m := c.l.temp(ir.I64, x.n), c.l.mem
	c.emit(x.n, c.l.grain(1), []operand{keys}, []operand{x}, func(lo, hi int) {
		kernels.SortKeys(elements[int64](m, keys)[lo:hi], elements[T](m, x)[lo:hi])
	})
	return keys
}
