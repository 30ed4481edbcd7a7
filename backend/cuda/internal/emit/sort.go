package emit

import (
	"fmt"

	"github.com/loris-ml/loris/internal/cxx"
	"github.com/loris-ml/loris/internal/ir"
)

const (
	// sortTile is sort_tile_size of sort.cuh.
	sortTile = 1024
	// mostKept is how many elements of a tile are kept at most, so that each round
	// leaves half.
	mostKept = sortTile / 2
)

// Sort sorts x, seen as [Outer, N, Inner], along the middle; it is stable, and NaN
// counts as greater than all else. Its operands are the values, their i64 indices
// and x, all dense. N is less than 2³².
type Sort struct {
	DType           ir.DType // any that is not complex
	Outer, N, Inner int
	Descending      bool
}

// Plan returns how it is launched.
func (g *Sort) Plan(dev Limits) *Plan {
	return (&TopK{Sort: *g, K: g.N}).Plan(dev)
}

// TopK is a Sort that returns the first K elements of each line only: values and
// indices are [Outer, K, Inner]. Descending is ATen's largest.
type TopK struct {
	Sort
	K int // at most N
}

// Plan returns how it is launched: lines are sorted, or tiles of them, of which the
// first elements are kept until there is one.
func (g *TopK) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	lines := g.Outer * g.Inner
	if lines*g.K == 0 {
		return &r.Plan
	}
	s := sorting{t: cxx.Stored(g.DType), x: Address{Operand: 2}, lines: lines, n: g.N, inner: g.Inner}
	if g.Descending {
		s.descending = 1
	}
	finish := s
	if g.K <= mostKept && g.K < g.N {
		finish.order, finish.stride = r.best(s, g.K)
	} else {
		finish.keys, finish.order = r.sort(s)
		finish.stride = g.N
	}
	finish.count = g.K
	r.each(fmt.Sprintf("sort_finish<%s>", s.t), "SortFrame", finish.slots(), lines*g.K)
	return &r.Plan
}

// sorting is a SortFrame: lines of n elements of a type. Its addresses but x are
// in the workspace.
type sorting struct {
	t                              string
	x                              Address
	keys, merged, order, reordered int
	lines, n, inner                int
	descending, width, kept        int
	given                          int
	hasGiven                       bool
	count, stride                  int
}

func (g *sorting) slots() *slots {
	s := (&slots{}).at(g.x.Operand, g.x.Offset).at(Work, g.keys).at(Work, g.merged).at(Work, g.order).at(Work, g.reordered).at(0, 0).at(1, 0)
	s.num(g.lines, g.n, g.inner, g.descending, g.width, g.kept)
	if g.hasGiven {
		s.at(Work, g.given)
	} else {
		s.num(0)
	}
	return s.num(g.count, g.stride)
}

// tiles adds the launch that sorts tiles.
func (r *routine) tiles(g sorting) {
	grid := [3]int{r.dev.blocks(g.lines * ceil(g.n, sortTile)), 1, 1}
	r.launch(fmt.Sprintf("sort_tile<%s>", g.t), "SortFrame", g.slots(), grid, [3]int{min(512, r.dev.Threads), 1, 1})
}

// sort adds launches that sort lines and returns where in the workspace their keys
// are then, and the number that each had.
func (r *routine) sort(g sorting) (keys, order int) {
	size := g.lines * g.n
	g.keys, g.order = r.alloc(8*size), r.alloc(4*size)
	r.tiles(g)
	if g.n <= sortTile {
		return g.keys, g.order
	}
	g.merged, g.reordered = r.alloc(8*size), r.alloc(4*size)
	for g.width = sortTile; g.width < g.n; g.width *= 2 {
		r.each("sort_merge", "SortFrame", g.slots(), size)
		g.keys, g.merged, g.order, g.reordered = g.merged, g.keys, g.reordered, g.order
	}
	return g.keys, g.order
}

// best adds launches that find the first k of each line and returns where in the
// workspace their numbers are then, and from one line to the next.
func (r *routine) best(g sorting, k int) (order, stride int) {
	g.kept = k
	for {
		n := ceil(g.n, sortTile) * k
		g.keys, g.order = r.alloc(8*g.lines*n), r.alloc(4*g.lines*n)
		r.tiles(g)
		if n == k {
			return g.order, k
		}
		// What was kept are keys now, in the order wanted.
		g.t, g.x, g.n, g.inner, g.descending = "u64", Address{Operand: Work, Offset: g.keys}, n, 1, 0
		g.given, g.hasGiven = g.order, true
	}
}
