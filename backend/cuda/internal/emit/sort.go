package emit

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// sortTile is sort_tile_size of sort.cuh.
const sortTile = 1024

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
	r := &routine{dev: dev}
	lines := g.Outer * g.Inner
	if lines*g.N == 0 {
		return &r.Plan
	}
	t := stored(g.DType)
	keys, order := r.sort(t, Address{Operand: 2}, lines, g.N, g.Inner, g.Descending)
	s := sortSlots(Address{Operand: 2}, keys, keys, order, order).num(lines, g.N, g.Inner, 0, 0)
	r.each(fmt.Sprintf("sort_finish<%s>", t), "SortFrame", s, lines*g.N)
	return &r.Plan
}

// sortSlots begins a SortFrame; the results of Sort are operands 0 and 1.
func sortSlots(x Address, keys, merged, order, reordered int) *slots {
	return (&slots{}).at(x.Operand, x.Offset).at(Work, keys).at(Work, merged).at(Work, order).at(Work, reordered).at(0, 0).at(1, 0)
}

// sort adds launches that sort lines of n elements of a type and returns where in
// the workspace their keys are then, and the number that each had.
func (r *routine) sort(t string, x Address, lines, n, inner int, descending bool) (keys, order int) {
	down := 0
	if descending {
		down = 1
	}
	keys, order = r.alloc(8*lines*n), r.alloc(4*lines*n)
	threads := min(512, r.dev.Threads)
	r.launch(fmt.Sprintf("sort_tile<%s>", t), "SortFrame", sortSlots(x, keys, keys, order, order).num(lines, n, inner, down, 0),
		[3]int{r.dev.blocks(lines * ceil(n, sortTile)), 1, 1}, [3]int{threads, 1, 1})
	if n <= sortTile {
		return keys, order
	}
	merged, reordered := r.alloc(8*lines*n), r.alloc(4*lines*n)
	for width := sortTile; width < n; width *= 2 {
		r.each("sort_merge", "SortFrame", sortSlots(x, keys, merged, order, reordered).num(lines, n, inner, down, width), lines*n)
		keys, merged, order, reordered = merged, keys, reordered, order
	}
	return keys, order
}
