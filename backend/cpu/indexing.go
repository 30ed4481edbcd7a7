package cpu

import (
	"math"
	"slices"

	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/bags"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	lowerings[aten.Gather] = unlessByIndex(func(c *call) { gathers.of(c.Operands[0].DType())(c) })
	lowerings[aten.Scatter] = func(c *call) { scatters.of(c.Operands[0].DType())(c) }
	lowerings[aten.ScatterReduce] = lowerScatterReduce
	composites[aten.TakeElements] = true
	lowerings[aten.TakeElements] = func(c *call) { takes.of(c.In[0].DType())(c) }
	lowerings[aten.IndexSelect] = unlessByIndex(func(c *call) { indexSelects.of(c.In[0].DType())(c) })
	lowerings[aten.IndexAdd] = lowerIndexAdd
	lowerings[aten.Sort] = widened(func(c *call) { sorts.of(c.Operands[0].DType())(c) })
}

var (
	gathers      = bySize[lowerFunc]{gather[uint8], gather[uint16], gather[uint32], gather[uint64], gather[strided.Bits128]}
	scatters     = bySize[lowerFunc]{scatter[uint8], scatter[uint16], scatter[uint32], scatter[uint64], scatter[strided.Bits128]}
	takes        = bySize[lowerFunc]{takeElements[uint8], takeElements[uint16], takeElements[uint32], takeElements[uint64], takeElements[strided.Bits128]}
	indexSelects = bySize[lowerFunc]{indexSelect[uint8], indexSelect[uint16], indexSelect[uint32], indexSelect[uint64], indexSelect[strided.Bits128]}

	scatterReduces = numbers(scatterReduce[uint8], scatterReduce[int8], scatterReduce[int16], scatterReduce[int32],
		scatterReduce[int64], scatterReduce[float32], scatterReduce[float64])
	indexAdds = numbers(indexAdd[uint8], indexAdd[int8], indexAdd[int16], indexAdd[int32], indexAdd[int64], indexAdd[float32], indexAdd[float64])
	sorts     = numbers(sortAlong[uint8], sortAlong[int8], sortAlong[int16], sortAlong[int32], sortAlong[int64], sortAlong[float32], sortAlong[float64])
)

// indexCost is for one element that is read or written through an index.
const indexCost = 4.0

// index returns the index operand as dense i64.
func (c *call) index() operand {
	v, _ := c.Operand("index")
	return c.dense(c.l.cast(c.Instr, v, ir.I64))
}

// lineGeometry returns the geometry of gather and scatter.
func (c *call) lineGeometry() kernels.Lines {
	self, index := c.Operands[0].Shape, c.Operands[1].Shape
	dim := c.Dim("dim", self.Rank())
	return kernels.NewLines(ir.AtLeast1D(self).Dims(), dim, ir.AtLeast1D(index).Dims())
}

// rowIndex returns rowVector in order.
func (c *call) rowIndex() (index operand, inner int, ok bool) {
	v, inner, ok := c.rowVector()
	if ok {
		index = c.dense(c.l.cast(c.Instr, v, ir.I64))
	}
	return index, inner, ok
}

// rowVector returns the index operand as a vector, if it says the same of all elements of a row: if it
// is along the first dimension that is not of one, and expanded along those behind, which are those of
// self.
func (c *call) rowVector() (index plan.Value, inner int, ok bool) {
	self, v := c.Operands[0].Shape, c.Operands[1]
	if self.Rank() < 2 {
		return index, 0, false
	}
	dim := c.Dim("dim", self.Rank())
	for d := range dim {
		if self.Dim(d) != 1 || v.Shape.Dim(d) != 1 {
			return index, 0, false
		}
	}
	inner = 1
	for d := dim + 1; d < self.Rank(); d++ {
		if n := v.Shape.Dim(d); n != self.Dim(d) || n > 1 && v.View.Strides[d] != 0 {
			return index, 0, false
		}
		inner *= self.Dim(d)
	}
	if inner < 2 {
		return index, 0, false
	}
	n := v.Shape.Dim(dim)
	index = plan.Value{Shape: ir.MakeShape(v.DType(), n), Value: v.Value}
	index.View = strided.View{Offset: v.View.Offset, Rank: 1}
	index.View.Dims[0], index.View.Strides[0] = n, v.View.Strides[dim]
	return index, inner, true
}

// indexed returns the size of self's dimension that is indexed.
func (c *call) indexed() int {
	s := c.Operands[0].Shape
	return s.Dim(c.Dim("dim", s.Rank()))
}

func gather[T strided.Bits](c *call) {
	m := c.l.mem
	if index, inner, ok := c.rowIndex(); ok {
		size := c.indexed()
		x, out := c.dense(c.Operands[0]), c.result()
		c.emit(index.n, c.l.grain(indexCost+0.3*float64(inner)), []operand{out}, []operand{x, index}, func(lo, hi int) {
			kernels.IndexSelect(elements[T](m, out), elements[T](m, x), elements[int64](m, index), size, inner, lo, hi)
		})
		return
	}
	l := c.lineGeometry()
	x, index, out := c.dense(c.Operands[0]), c.index(), c.result()
	c.emit(index.n, c.l.grain(indexCost), []operand{out}, []operand{x, index}, func(lo, hi int) {
		kernels.Gather(elements[T](m, out), elements[T](m, x), elements[int64](m, index), &l, lo, hi)
	})
}

// selfCopy makes the result a copy of self.
func (c *call) selfCopy() operand {
	o, _ := contiguous(c.ResultOfCopy())
	return o
}

// source returns the operand that scatter reads, dense, and how its part of the
// index's dimensions lies in it.
func (c *call) source() (operand, strided.View) {
	v, _ := c.Operand("src")
	view := strided.Dense(ir.AtLeast1D(v.Shape).Dims())
	for i, n := range ir.AtLeast1D(c.Operands[1].Shape).Dims() {
		view.Dims[i] = n
	}
	return c.dense(v), view
}

// rowScatter returns the vector of rowIndex and the rows that a scatter reads, if there is one and they
// are as long as those of self.
func (c *call) rowScatter() (index, src operand, inner int, ok bool) {
	if index, inner, ok = c.rowIndex(); !ok {
		return
	}
	v, _ := c.Operand("src")
	places := c.Operands[1].Shape
	for d := c.Dim("dim", places.Rank()) + 1; d < places.Rank(); d++ {
		if v.Shape.Dim(d) != places.Dim(d) {
			return index, src, inner, false
		}
	}
	return index, c.dense(v), inner, true
}

// columnGrain is how many columns of n rows are worth a goroutine; not so few that processors write
// into the same cache lines.
func (c *call) columnGrain(n int) int { return max(64, c.l.grain(float64(n))) }

// scatterGrain is how many units of a scatter are worth a goroutine. Columns are apart by few bytes.
func (c *call) scatterGrain(l *kernels.Lines) int {
	return max(16, c.l.grain(indexCost*float64(l.UnitSize())))
}

// scatter's units write to different elements: where an index repeats, the order counts.
func scatter[T strided.Bits](c *call) {
	m := c.l.mem
	if index, src, inner, ok := c.rowScatter(); ok {
		size, out := c.indexed(), c.selfCopy()
		c.emit(inner, c.columnGrain(index.n), []operand{out}, []operand{index, src}, func(lo, hi int) {
			kernels.ScatterRows(elements[T](m, out), elements[int64](m, index), elements[T](m, src), size, inner, lo, hi)
		})
		return
	}
	l := c.lineGeometry()
	index := c.index()
	src, view := c.source()
	out := c.selfCopy()
	c.emit(l.Units(), c.scatterGrain(&l), []operand{out}, []operand{index, src}, func(lo, hi int) {
		kernels.Scatter(elements[T](m, out), elements[int64](m, index), elements[T](m, src), &view, &l, lo, hi)
	})
}

var combines = map[string]kernels.Combine{
	"sum": kernels.CombineSum, "prod": kernels.CombineProd, "mean": kernels.CombineMean,
	"amax": kernels.CombineMax, "amin": kernels.CombineMin,
}

// boolCombines are the ways that keep 0 and 1: a mean, rounded down, is 1 if all
// are.
var boolCombines = map[kernels.Combine]kernels.Combine{
	kernels.CombineSum: kernels.CombineMax, kernels.CombineProd: kernels.CombineMin, kernels.CombineMean: kernels.CombineMin,
	kernels.CombineMax: kernels.CombineMax, kernels.CombineMin: kernels.CombineMin,
}

// lowerScatterReduce widens narrow floats, but for few that are added to many, and for whole rows.
func lowerScatterReduce(c *call) {
	if c.Str("reduce") == "sum" && c.Bool("include_self") && (c.addsAsComputed() || c.addsInOrder()) {
		return
	}
	c.Compute()
	if c.Str("reduce") == "sum" && c.Bool("include_self") && c.few() {
		l, index := c.lineGeometry(), c.index()
		src, view := c.source()
		if c.Operands[0].DType() == ir.BF16 {
			addFew[vec.BF16](c, index, src, &view, &l)
		} else {
			addFew[vec.F16](c, index, src, &view, &l)
		}
		return
	}
	if d := c.Operands[0].DType(); d == ir.BF16 || d == ir.F16 {
		if index, src, inner, ok := c.rowScatter(); ok {
			how, include, size := combines[c.Str("reduce")], c.Bool("include_self"), c.indexed()
			if d == ir.BF16 {
				combineRows(c, index, src, 1, size, inner, how, include, bags.CombineChained[vec.BF16])
			} else {
				combineRows(c, index, src, 1, size, inner, how, include, bags.CombineChained[vec.F16])
			}
			return
		}
	}
	widened(func(c *call) { scatterReduces.of(c.Operands[0].DType())(c) })(c)
}

// manyForOne is how many elements take as long to be widened and narrowed as one of an index to be sorted.
const manyForOne = 256

// few reports whether self is a tensor of narrow floats that has far more elements than an index selects.
func (c *call) few() bool {
	d, n := c.Operands[0].DType(), c.Operands[0].Shape.Numel()
	return (d == ir.BF16 || d == ir.F16) && n < math.MaxInt32 && c.Operands[1].Shape.Numel() < n/manyForOne
}

// addFew emits sums of the elements of self that an index selects with those of a source. Only these are
// widened.
func addFew[E vec.BF16 | vec.F16](c *call, index, src operand, view *strided.View, l *kernels.Lines) {
	out, m, places, v, lines := c.selfCopy(), c.l.mem, c.l.temp(ir.I64, index.n), *view, *l
	c.emit(1, 1, []operand{out, places}, []operand{index, src}, func(_, _ int) {
		at := elements[int64](m, places)
		kernels.ScatterPlaces(at, elements[int64](m, index), &v, &lines)
		bags.AddPlaced(elements[E](m, out), elements[E](m, src), at)
	})
}

func scatterReduce[T kernels.Number](c *call) {
	l := c.lineGeometry()
	how, include := combines[c.Str("reduce")], c.Bool("include_self")
	if c.Operands[0].DType() == ir.Bool {
		how = boolCombines[how]
	}
	if index, src, inner, ok := c.rowScatter(); ok {
		if size := c.indexed(); how == kernels.CombineSum && include && fewRows(index.n, size) {
			addRows[T](c, index, src, 1, size, inner)
		} else {
			combineRows(c, index, src, 1, size, inner, how, include, kernels.CombineChained[T])
		}
		return
	}
	index := c.index()
	src, view := c.source()
	out := c.selfCopy()
	m := c.l.mem
	if how != kernels.CombineMean && include {
		c.emit(l.Units(), c.scatterGrain(&l), []operand{out}, []operand{index, src}, func(lo, hi int) {
			kernels.ScatterReduce(elements[T](m, out), elements[int64](m, index), elements[T](m, src), &view, &l, how, include, nil, lo, hi)
		})
		return
	}
	count := c.l.temp(ir.I64, out.n)
	c.emit(1, 1, []operand{out, count}, []operand{index, src}, func(_, _ int) {
		kernels.ScatterReduce(elements[T](m, out), elements[int64](m, index), elements[T](m, src), &view, &l, how, include,
			elements[int64](m, count), 0, l.Units())
	})
}

// A rowCombiner is kernels.CombineChained for elements of T.
type rowCombiner[T any] func(dst, self []T, heads, next []int64, source []T, how kernels.Combine, include bool, inner, lo, hi int)

// combineRows emits the combination of rows of self, [outer, size, inner], with those of a source that an
// index selects, by a kernel.
func combineRows[T any](c *call, index, source operand, outer, size, inner int, how kernels.Combine, include bool, combine rowCombiner[T]) {
	m := c.l.mem
	heads, next := c.l.temp(ir.I64, size), c.l.temp(ir.I64, index.n)
	c.emit(1, 1, []operand{heads, next}, []operand{index}, func(_, _ int) {
		kernels.Chain(elements[int64](m, heads), elements[int64](m, next), elements[int64](m, index))
	})
	self, out := c.dense(c.Operands[0]), c.result()
	units := kernels.ChainUnits(outer*size, inner)
	cost := indexCost + 0.3*float64(outer*(size+index.n)*inner)/float64(max(units, 1))
	c.emitOver(self, units, c.l.grain(cost), out, []operand{self, source, heads, next}, func(lo, hi int) {
		combine(elements[T](m, out), elements[T](m, self), elements[int64](m, heads), elements[int64](m, next),
			elements[T](m, source), how, include, inner, lo, hi)
	})
}

// rows returns self as [outer, size, inner] around the indexed dimension.
func (c *call) rows() (outer, size, inner int) {
	s := ir.AtLeast1D(c.Operands[0].Shape)
	return s.Around(c.Dim("dim", s.Rank()))
}

func indexSelect[T strided.Bits](c *call) {
	if v, ok := c.Matrix(); ok {
		selectElements[T](c, v)
		return
	}
	c.Compute()
	outer, size, inner := c.rows()
	x, index, out := c.dense(c.Operands[0]), c.index(), c.result()
	m := c.l.mem
	c.emit(outer*index.n, c.l.grain(indexCost+0.3*float64(inner)), []operand{out}, []operand{x, index}, func(lo, hi int) {
		kernels.IndexSelect(elements[T](m, out), elements[T](m, x), elements[int64](m, index), size, inner, lo, hi)
	})
}

// takeElements is indexSelect of elements of a vector, of which negative indices count from the end.
func takeElements[T strided.Bits](c *call) {
	if v, ok := c.Matrix(); ok {
		selectElements[T](c, v)
		return
	}
	c.Compute()
	x, index, out := c.dense(c.Operands[0]), c.index(), c.result()
	m := c.l.mem
	c.emit(index.n, c.l.grain(indexCost), []operand{out}, []operand{x, index}, func(lo, hi int) {
		kernels.TakeWrapped(elements[T](m, out)[lo:hi], elements[T](m, x), elements[int64](m, index)[lo:hi])
	})
}

// selectElements reads elements of a matrix that are numbered row by row, where they lie.
func selectElements[T strided.Bits](c *call, v plan.Value) {
	wraps := c.Instr.Op == aten.TakeElements
	c.Operands = append(c.Operands, v)
	c.Compute()
	index, out, view := c.index(), c.result(), v.View
	m := c.l.mem
	c.emit(index.n, c.l.grain(indexCost), []operand{out}, []operand{{buf: v.Buf}, index}, func(lo, hi int) {
		kernels.SelectElements(elements[T](m, out)[lo:hi], as[T](m.bufs[v.Buf]), elements[int64](m, index)[lo:hi], &view, wraps)
	})
}

// lowerIndexAdd adds bools as integers, unless rows of them are combined: the sum is true if it is not 0.
func lowerIndexAdd(c *call) {
	if c.addsAsComputed() || c.addsInOrder() {
		return
	}
	c.Compute()
	switch _, size, inner := c.rows(); {
	case inner == 1 && c.Operands[0].Shape.Numel() == size && c.few():
		// Dimensions before the indexed one are of one element.
		v, _ := c.Operand("source")
		index, source := c.index(), c.dense(v)
		l, view := kernels.NewLines([]int{size}, 0, []int{index.n}), strided.Dense([]int{index.n})
		if c.Operands[0].DType() == ir.BF16 {
			addFew[vec.BF16](c, index, source, &view, &l)
		} else {
			addFew[vec.F16](c, index, source, &view, &l)
		}
		return
	case inner > 1 && c.Operands[0].DType() == ir.BF16:
		indexAddNarrow[vec.BF16](c)
		return
	case inner > 1 && c.Operands[0].DType() == ir.F16:
		indexAddNarrow[vec.F16](c)
		return
	}
	add := func(c *call) { indexAdds.of(c.Operands[0].DType())(c) }
	if c.Operands[0].DType() != ir.Bool {
		widened(add)(c)
		return
	}
	if outer, size, inner := c.rows(); inner > shortRow {
		v, _ := c.Operand("source")
		combineRows(c, c.index(), c.dense(v), outer, size, inner, boolCombines[kernels.CombineSum], true, kernels.CombineChained[uint8])
		return
	}
	wide := &call{c.Inner(slices.Clone(c.Operands), []ir.Shape{c.Shapes[0].WithDType(ir.I64)}), c.l}
	wide.Operands[0], wide.Operands[2] = c.l.cast(c.Instr, c.Operands[0], ir.I64), c.l.cast(c.Instr, c.Operands[2], ir.I64)
	add(wide)
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], ir.Bool))
}

// cachedRows is how many bytes of rows stay in the cache while others are added to them in the order in which
// those lie in memory, which is quicker then than row after row.
const cachedRows = 1 << 20

// shortRow is how many elements a row has at most for what is done for each to take longer than going to where it lies.
const shortRow = 16

func indexAdd[T kernels.Number](c *call) {
	outer, size, inner := c.rows()
	index := c.index()
	v, _ := c.Operand("source")
	source := c.dense(v)
	if inner > shortRow && c.Shapes[0].Bytes() > cachedRows && !fewRows(index.n, size) {
		combineRows(c, index, source, outer, size, inner, kernels.CombineSum, true, kernels.CombineChained[T])
		return
	}
	addRows[T](c, index, source, outer, size, inner)
}

// fewRows reports whether an index selects so few rows that looking at all would take longer than going to
// these: where self is updated in place nothing else is.
func fewRows(selected, size int) bool { return selected < size/16 }

// addRows emits the sums of rows of self with those of a source in the order of the index.
func addRows[T kernels.Number](c *call, index, source operand, outer, size, inner int) {
	out := c.selfCopy()
	m := c.l.mem
	// A unit is a column: each is added in index order, whoever does it.
	grain := max(64, c.l.grain(float64(index.n))) // of pieces of rows that share no cache line
	c.emit(outer*inner, grain, []operand{out}, []operand{index, source}, func(lo, hi int) {
		kernels.IndexAdd(elements[T](m, out), elements[int64](m, index), elements[T](m, source), size, inner, lo, hi)
	})
}

// indexAddNarrow widens the rows that are added to and those that are added, not all there are.
func indexAddNarrow[E vec.BF16 | vec.F16](c *call) {
	outer, size, inner := c.rows()
	index := c.index()
	v, _ := c.Operand("source")
	source := c.dense(v)
	out, m := c.selfCopy(), c.l.mem
	heads, next := c.l.temp(ir.I64, size), c.l.temp(ir.I64, index.n)
	c.emit(1, 1, []operand{heads, next}, []operand{index}, func(_, _ int) {
		kernels.Chain(elements[int64](m, heads), elements[int64](m, next), elements[int64](m, index))
	})
	c.emit(outer*index.n, c.l.grain(indexCost+0.3*float64(inner)), []operand{out}, []operand{index, source, heads, next}, func(lo, hi int) {
		bags.AddChained(elements[E](m, out), elements[int64](m, heads), elements[int64](m, next), elements[int64](m, index), elements[E](m, source), inner, lo, hi)
	})
}

// sortCost is for a line of n elements that is sorted, in nanoseconds.
func sortCost(n int) float64 { return float64(n) * (8 + 4*math.Log2(float64(n+1))) }

func sortAlong[T kernels.Number](c *call) {
	descending := c.Bool("descending")
	sortLines(c, func(values []T, indices []int64, x []T, n, inner int, keys []uint64, order []int32, lo, hi int) {
		kernels.Sort(values, indices, x, n, inner, descending, keys, order, lo, hi)
	})
}

// sortLines emits f, which sorts lines in memory of its own, 2n keys and places, to have values and indices of each.
func sortLines[T kernels.Number](c *call, f func(values []T, indices []int64, x []T, n, inner int, keys []uint64, order []int32, lo, hi int)) {
	s := c.Operands[0].Shape
	outer, n, inner := s.Around(c.Dim("dim", s.Rank()))
	x, values, indices := c.dense(c.Operands[0]), c.result(), c.result()
	m := c.l.mem
	c.emit(outer*inner, c.l.grain(sortCost(n)), []operand{values, indices}, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		mem := w.scratch.bytes(2 * n * (8 + 4))
		f(elements[T](m, values), elements[int64](m, indices), elements[T](m, x), n, inner, as[uint64](mem[:16*n]), as[int32](mem[16*n:]), lo, hi)
		workers.Put(w)
	})
}
