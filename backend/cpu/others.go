package cpu

import (
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

var othersOfLong = byType[lowerFunc]{
	ir.F32:  func(c *call) { othersInParts[float32, float32](c, nil) },
	ir.F64:  func(c *call) { othersInParts[float64, float64](c, nil) },
	ir.BF16: func(c *call) { othersInParts[vec.BF16](c, roundLine[vec.BF16]) },
	ir.F16:  func(c *call) { othersInParts[vec.F16](c, roundLine[vec.F16]) },
}

// lowerProductsOfOthers computes rows each by one processor, but those of several parts in parts.
func lowerProductsOfOthers(c *call) {
	if c.Operands[0].Shape.Dim(1) > kernels.OthersPart {
		othersOfLong.of(c.Operands[0].DType())(c)
		return
	}
	round := lineRounders[c.Operands[0].DType()]
	if !c.narrowLines(c.Operands[0].Shape.Dim(1), 1, func(dst, x []float32, _ []int64, n, lines int) {
		rowsOfOthers(dst, x, n, round, 0, lines)
	}) {
		rounding(productsOfOthers[float32], productsOfOthers[float64])(c)
	}
}

func productsOfOthers[T kernels.Float](c *call, round func([]T)) {
	s := c.Operands[0].Shape
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	c.emit(s.Dim(0), c.l.grain(float64(4*s.Dim(1))), []operand{out}, []operand{x}, func(lo, hi int) {
		rowsOfOthers(elements[T](m, out), elements[T](m, x), s.Dim(1), round, lo, hi)
	})
}

func rowsOfOthers[T kernels.Float](dst, x []T, n int, round func([]T), lo, hi int) {
	w := workers.Get().(*worker)
	kernels.ProductsOfOthers(dst, x, n, round, scratchOf[T](w, kernels.OthersRoom), lo, hi)
	workers.Put(w)
}

// othersInParts computes products of others of long rows in parts: the product of each, then what is before and behind
// them, and then all elements. Long products of random numbers are zero or infinite but near the ends of a row, which
// parts are found to be without multiplying along them.
func othersInParts[E vec.Element, T kernels.Float](c *call, round func([]T)) {
	s := c.Operands[0].Shape
	rows, n, m := s.Dim(0), s.Dim(1), c.l.mem
	parts := ceilDiv(n, kernels.OthersPart)
	x, out := c.dense(c.Operands[0]), c.result()
	products, ends := c.l.temp(ir.F64, rows*parts), c.l.bytesTemp(sizeOf[kernels.Ends](), rows*parts)
	part := func(all []E, u int) []E {
		row, from := all[u/parts*n:][:n], u%parts*kernels.OthersPart
		return row[from:min(from+kernels.OthersPart, n)]
	}
	c.emit(rows*parts, c.l.grain(kernels.OthersPart/2), []operand{products}, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		room, to, from := scratchOf[T](w, kernels.OthersPart), elements[float64](m, products), elements[E](m, x)
		for u := lo; u < hi; u++ {
			to[u] = kernels.Product(inWide(part(from, u), room))
		}
		workers.Put(w)
	})
	c.emit(rows, 1, []operand{ends}, []operand{x, products}, func(lo, hi int) {
		w := workers.Get().(*worker)
		room := scratchOf[T](w, kernels.OthersPart)
		for r := lo * parts; r < hi*parts; r += parts {
			kernels.PartEnds(elements[kernels.Ends](m, ends)[r:r+parts], elements[float64](m, products)[r:r+parts], func(i int) []T {
				return inWide(part(elements[E](m, x), r+i), room)
			})
		}
		workers.Put(w)
	})
	c.emit(rows*parts, c.l.grain(kernels.OthersPart/2), []operand{out}, []operand{x, products, ends}, func(lo, hi int) {
		w := workers.Get().(*worker)
		room := scratchOf[T](w, 2*kernels.OthersPart+kernels.OthersRoom)
		all, bounds := elements[float64](m, products), elements[kernels.Ends](m, ends)
		for u := lo; u < hi; u++ {
			from, to := inWide(part(elements[E](m, x), u), room), part(elements[E](m, out), u)
			wide, same := any(to).([]T)
			if !same {
				wide = room[kernels.OthersPart:][:len(to)]
			}
			if by, ok := kernels.AlikeOthers[T](bounds[u], all[u]); ok {
				vec.Scale(wide, from, by)
			} else {
				kernels.OthersOfPart(wide, from, bounds[u], round, room[2*kernels.OthersPart:])
			}
			if !same {
				vec.Store(to, wide)
			}
		}
		workers.Put(w)
	})
}

// inWide returns elements as what they are computed with, in room unless they are that.
func inWide[E vec.Element, T kernels.Float](x []E, room []T) []T {
	if same, ok := any(x).([]T); ok {
		return same
	}
	vec.Load(room, x)
	return room[:len(x)]
}
