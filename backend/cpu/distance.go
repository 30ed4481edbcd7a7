package cpu

import (
	"math"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/distance"
)

func init() {
	composites[aten.RowDistances], composites[aten.RowDifferences], composites[aten.PairDistances] = true, true, true
	lowerings[aten.PairDistances] = singleOrDouble(pairDistances[float32], pairDistances[float64])
	lowerings[aten.RowDistances] = singleOrDouble(rowDistances[float32], rowDistances[float64])
	lowerings[aten.RowDifferences] = singleOrDouble(rowDifferences[float32], rowDifferences[float64])
}

const (
	// distanceCost is for one difference, in the tiles.
	distanceCost = 0.03
	// distanceRows is the rows of a unit.
	distanceRows = 64
)

// panelsOf emits the packing of matrices of n columns and the given depth, [batch, n, depth] or with
// across [batch, depth, n], and returns them with the elements of one and its number of panels.
func panelsOf[T distance.Float](c *call, v plan.Value, batch, n, depth int, across bool) (packed operand, size, panels int) {
	x := c.dense(v)
	size, panels = distance.PackedLen[T](n, depth), ceilDiv(n, distance.Panel[T]())
	packed = c.l.bytesTemp(sizeOf[T](), batch*size)
	step, depthStep := depth, 1
	if across {
		step, depthStep = 1, n
	}
	m := c.l.mem
	c.emit(batch*panels, c.l.grain(float64(distance.Panel[T]()*depth)), []operand{packed}, []operand{x}, func(lo, hi int) {
		to, from := elements[T](m, packed), elements[T](m, x)
		for u := lo; u < hi; u++ {
			i, p := u/panels, u%panels
			distance.Pack(to[i*size:(i+1)*size], from[i*n*depth:], n, depth, step, depthStep, p, p+1)
		}
	})
	return packed, size, panels
}

// emitTiles emits f for parts of the rows of each panel of each matrix of a batch.
func (c *call) emitTiles(batch, panels, rows int, cost float64, out operand, reads []operand, f func(w *worker, i, panel, lo, hi int)) {
	parts := ceilDiv(rows, distanceRows)
	c.emit(batch*panels*parts, c.l.grain(cost*float64(min(rows, distanceRows))), []operand{out}, reads, func(lo, hi int) {
		w := workers.Get().(*worker)
		for u := lo; u < hi; u++ {
			first := u % parts * distanceRows
			f(w, u/parts/panels, u/parts%panels, first, min(first+distanceRows, rows))
		}
		workers.Put(w)
	})
}

// norm returns that of p, which is 1, 2 or infinity.
func (c *call) norm() distance.Norm {
	switch p, _ := c.OptFloat("p"); {
	case p == 1:
		return distance.Manhattan
	case math.IsInf(p, 1):
		return distance.Greatest
	}
	return distance.Euclidean
}

// pairDistances is rowDistances of each row and those after it.
func pairDistances[T distance.Float](c *call) {
	n, k := c.Operands[0].Shape.Dim(0), c.Operands[0].Shape.Dim(1)
	norm, x := c.norm(), c.dense(c.Operands[0])
	cols, _, panels := panelsOf[T](c, c.Operands[0], 1, n, k, false)
	out, m := c.result(), c.l.mem
	cost := distanceCost * float64(distance.Panel[T]()*k) / 2
	c.emitTiles(1, panels, n, cost, out, []operand{x, cols}, func(w *worker, _, panel, lo, hi int) {
		distance.Pairs(norm, elements[T](m, out), elements[T](m, x), elements[T](m, cols), scratchOf[T](w, distance.Room), n, k, panel, lo, hi)
	})
}

func rowDistances[T distance.Float](c *call) {
	x, y := c.Operands[0].Shape, c.Operands[1].Shape
	batch, n, k, rows := x.Dim(0), x.Dim(1), x.Dim(2), y.Dim(1)
	norm, left := c.norm(), c.dense(c.Operands[0])
	cols, size, panels := panelsOf[T](c, c.Operands[1], batch, rows, k, false)
	out, m := c.result(), c.l.mem
	cost := distanceCost * float64(distance.Panel[T]()*k)
	c.emitTiles(batch, panels, n, cost, out, []operand{left, cols}, func(w *worker, i, panel, lo, hi int) {
		distance.Distances(norm, elements[T](m, out)[i*n*rows:], elements[T](m, left)[i*n*k:], elements[T](m, cols)[i*size:],
			scratchOf[T](w, distance.Room), rows, k, panel, lo, hi)
	})
}

func rowDifferences[T distance.Float](c *call) {
	x, y := c.Operands[1].Shape, c.Operands[2].Shape
	batch, n, k, rows := x.Dim(0), x.Dim(1), x.Dim(2), y.Dim(1)
	weights := c.dense(c.Operands[0])
	left, leftSize, panels := panelsOf[T](c, c.Operands[1], batch, k, n, true)
	right, rightSize, _ := panelsOf[T](c, c.Operands[2], batch, k, rows, true)
	out, m, signs := c.result(), c.l.mem, c.Bool("signs")
	cost := distanceCost * float64(distance.Panel[T]()*rows)
	c.emitTiles(batch, panels, n, cost, out, []operand{weights, left, right}, func(w *worker, i, panel, lo, hi int) {
		distance.Sums(signs, elements[T](m, out)[i*n*k:], elements[T](m, weights)[i*n*rows:], elements[T](m, left)[i*leftSize:],
			elements[T](m, right)[i*rightSize:], scratchOf[T](w, distance.Room), n, rows, k, panel, lo, hi)
	})
}
