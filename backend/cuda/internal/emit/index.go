package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

// movers are C++ types of each size, for elements that are only moved.
var movers = map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "Sixteen"}

// Lines is the geometry of gather and scatter along one dimension of a dense
// tensor.
type Lines struct {
	// Dims are the tensor's dimensions, Dim the indexed one, Index those of the index:
	// all of one rank, from 1 to 8.
	Dims  []int
	Dim   int
	Index []int
	// Source are the strides, in elements, of what is scattered, Strides those of the
	// index.
	Source, Strides []int
}

func numel(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func (l *Lines) slots(s *slots) *slots {
	base := make([]int, len(l.Dims))
	step, n := 0, 1
	for d := len(l.Dims) - 1; d >= 0; d-- {
		base[d] = n
		if d == l.Dim {
			base[d], step = 0, n
		}
		n *= l.Dims[d]
	}
	return s.num(numel(l.Index), len(l.Index), l.Dims[l.Dim], step).array(l.Index).array(base).array(l.Source).array(l.Strides)
}

// Gather sets each element of dst, of the index's dimensions, to the element of x
// that the index points at. Its operands are dst and x, which are dense, and the
// i64 index.
type Gather struct {
	Lines
	// Size is that of an element in bytes: 1, 2, 4, 8 or 16.
	Size int
}

// Plan returns how it is launched.
func (g *Gather) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if n := numel(g.Index); n > 0 {
		s := g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).at(Fault, 0))
		r.smallEach(fmt.Sprintf("gather_lines<%s>", movers[g.Size]), "GatherFrame", s, n)
	}
	return &r.Plan
}

// Scatter sets the elements of dst that an index points at to those of a source;
// of several the last wins. Its operands are dst, which has what the others are
// set in, the i64 index and the source.
type Scatter struct {
	Lines
	// Size is that of an element in bytes: 1, 2, 4, 8 or 16.
	Size int
}

// Plan returns how it is launched.
func (g *Scatter) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	n := numel(g.Index)
	if n == 0 {
		return &r.Plan
	}
	if g.Index[g.Dim] == 1 { // elements differ in another dimension: each has its place
		r.smallEach(fmt.Sprintf("scatter_all<%s>", movers[g.Size]), "ScatterFrame", g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).at(Fault, 0).num(0)), n)
		return &r.Plan
	}
	size := numel(g.Dims)
	winner := r.alloc(4 * size)
	r.each("clear_words", "ClearFrame", (&slots{}).at(Work, winner).num(size), size)
	for _, f := range []string{"scatter_mark", fmt.Sprintf("scatter_write<%s>", movers[g.Size])} {
		r.each(f, "ScatterFrame", g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).at(Fault, 0).at(Work, winner)), n)
	}
	return &r.Plan
}

// reductions has the ways of ScatterReduce by ATen's names, in the order of
// index.cuh.
var reductions = map[string]int{"sum": 0, "prod": 1, "mean": 2, "amax": 3, "amin": 4}

// ScatterReduce folds the elements of a source into those of dst that an index
// points at, in the order of the index. Its operands are those of Scatter.
type ScatterReduce struct {
	Lines
	// DType is that of dst and of the source: any but bool. Narrow floats are folded
	// in f32 and rounded at the end.
	DType ir.DType
	// Reduce is sum, prod, mean, amax or amin. A mean of integers is rounded down.
	Reduce string
	// Self says that what dst holds takes part.
	Self bool
}

// Plan returns how it is launched: the places are sorted, then those of each
// place folded.
func (g *ScatterReduce) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	n := numel(g.Index)
	if n == 0 {
		return &r.Plan
	}
	raw := r.alloc(8 * n)
	r.each("scatter_keys", "ScatterFrame", g.slots((&slots{}).at(0, 0).at(1, 0).at(2, 0).at(Fault, 0).at(Work, raw)), n)
	keys, order := r.sort(sorting{t: "u64", x: Address{Operand: Work, Offset: raw}, lines: 1, n: n, inner: 1})
	self := 0
	if g.Self {
		self = 1
	}
	s := (&slots{}).at(0, 0).at(2, 0).at(Work, keys).at(Work, order).num(n, reductions[g.Reduce], self)
	r.each(fmt.Sprintf("scatter_fold<%s>", cxx.Stored(g.DType)), "FoldFrame", g.slots(s), n)
	return &r.Plan
}

// IndexSelect copies rows of x, seen as [Outer, Size, Inner], to dst, which is
// [Outer, N, Inner]. Its operands are dst, x and the i64 index, all dense.
type IndexSelect struct {
	Outer, N, Size, Inner int
	// Element is the size of an element in bytes, Align what the addresses of dst and
	// x are multiples of: a power of two from Element to 16.
	Element, Align int
}

// Plan returns how it is launched.
func (g *IndexSelect) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if g.Outer*g.N*g.Inner == 0 {
		return &r.Plan
	}
	// Rows are moved in the largest pieces.
	element, inner := g.Element, g.Inner
	for element < g.Align && inner%2 == 0 {
		element, inner = 2*element, inner/2
	}
	x := min(power(inner), dev.block())
	y := dev.block() / x
	grid := [3]int{dev.blocks(ceil(inner, x)), min(ceil(g.Outer*g.N, y), maxGridYZ), 1}
	s := (&slots{}).at(0, 0).at(1, 0).at(2, 0).at(Fault, 0).num(g.Outer, g.N, g.Size, inner)
	r.small(fmt.Sprintf("index_select<%s>", movers[element]), "RowsFrame", s, grid, [3]int{x, y, 1})
	return &r.Plan
}

// IndexAdd adds rows of a source, seen as [Outer, N, Inner], to those of dst,
// which is [Outer, Size, Inner], in the order of the index. Its operands are dst,
// the dense i64 index and the source.
type IndexAdd struct {
	Outer, N, Size, Inner int
	// DType is that of dst and of the source: any but bool. Narrow floats are added
	// in f32 and rounded at the end.
	DType ir.DType
}

// Plan returns how it is launched: the index is sorted, then the rows of each
// place are added.
func (g *IndexAdd) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if g.Outer*g.N*g.Inner == 0 {
		return &r.Plan
	}
	raw := r.alloc(8 * g.N)
	r.each("index_keys", "RowsFrame", (&slots{}).at(Work, raw).num(0).at(1, 0).at(Fault, 0).num(g.Outer, g.N, g.Size, g.Inner), g.N)
	keys, order := r.sort(sorting{t: "u64", x: Address{Operand: Work, Offset: raw}, lines: 1, n: g.N, inner: 1})
	columns := g.Outer * g.Inner
	x := min(power(columns), dev.block())
	y := dev.block() / x
	grid := [3]int{dev.blocks(ceil(columns, x)), min(ceil(g.N, y), maxGridYZ), 1}
	s := (&slots{}).at(0, 0).at(2, 0).at(Work, keys).at(Work, order).num(g.Outer, g.N, g.Size, g.Inner)
	r.launch(fmt.Sprintf("index_add<%s>", cxx.Stored(g.DType)), "AddFrame", s, grid, [3]int{x, y, 1})
	return &r.Plan
}
