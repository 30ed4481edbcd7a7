package emit

import "fmt"

// Transpose copies elements that lie by columns, or far apart, to rows: through
// shared memory, so that both sides are accessed in runs. Its operands are dst and
// x; the Geometry has the strides of both along rows and columns, x's row stride
// being that of an element as a rule.
type Transpose struct {
	Geometry
	// Size is that of an element in bytes: 1, 2, 4, 8 or 16.
	Size int
}

// Plan returns how it is launched.
func (g *Transpose) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	outers := numel(g.Outer)
	if outers*g.Rows*g.Cols == 0 {
		return &r.Plan
	}
	s := (&slots{}).num(g.Rows, g.Cols, 0, outers, 1, 0, 0).num(atLeastOne(g.Outer)...)
	for a := range 2 {
		p := &g.Args[a]
		s.at(a, 0).num(p.Row, p.Col).num(atLeastOne(p.Outer)...)
	}
	k := len(g.Outer)
	grid := [3]int{dev.blocks(outers * ceil(g.Rows, 32) * ceil(g.Cols, 32)), 1, 1}
	r.launch(fmt.Sprintf("transpose<%s, %d>", movers[g.Size], k), fmt.Sprintf("Frame<2, %d>", k), s, grid, [3]int{32, min(8, dev.Threads/32), 1})
	return &r.Plan
}

// atLeastOne returns the slots of an array that C++ has one element for at least.
func atLeastOne(v []int) []int {
	if len(v) == 0 {
		return []int{0}
	}
	return v
}

// Cat joins dense operands along the middle of [Outer, n, inner]. Its operands are
// dst and the parts.
type Cat struct {
	Outer int
	// Parts has, by part, n times inner.
	Parts []int
	// Size is that of an element in bytes: 1, 2, 4, 8 or 16. Align is what the
	// addresses of all operands are multiples of: a power of two from Size to 16.
	Size, Align int
}

// maxCat bounds the operands of one launch.
const maxCat = 32

// Plan returns how it is launched.
func (g *Cat) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	// Elements are moved in the largest pieces.
	size, row, widest := g.Align, 0, 0
	for _, n := range g.Parts {
		for n*g.Size%size != 0 {
			size /= 2
		}
	}
	parts := make([]int, len(g.Parts))
	for i, n := range g.Parts {
		parts[i] = n * g.Size / size
		row += parts[i]
		widest = max(widest, parts[i])
	}
	if g.Outer*row == 0 {
		return &r.Plan
	}
	start := 0
	for first := 0; first < len(parts); first += maxCat {
		list := parts[first:min(first+maxCat, len(parts))]
		s := (&slots{}).at(0, 0).num(g.Outer, row)
		for i, n := range list {
			s.at(1+first+i, 0).num(n, start)
			start += n
		}
		for range maxCat - len(list) {
			s.num(0, 0, 0)
		}
		b := dev.block()
		grid := [3]int{dev.blocks(ceil(g.Outer*widest, b)), len(list), 1}
		r.launch(fmt.Sprintf("cat<%s, %d>", movers[size], maxCat), fmt.Sprintf("CatFrame<%d>", maxCat), s, grid, [3]int{b, 1, 1})
	}
	return &r.Plan
}

// Pad puts a value around x, and cuts where Before or After would be negative. Its
// operands are dst, which is dense, x and the value.
type Pad struct {
	// Dims are dst's dimensions and Inner x's; Before is where x begins in dst.
	Dims, Before, Inner []int
	// Strides are x's, in elements.
	Strides []int
	// Size is that of an element in bytes: 1, 2, 4, 8 or 16.
	Size int
}

// Plan returns how it is launched.
func (g *Pad) Plan(dev Limits) *Plan {
	r := &routine{dev: dev}
	if n := numel(g.Dims); n > 0 {
		s := (&slots{}).at(0, 0).at(1, 0).at(2, 0).num(n, len(g.Dims)).array(g.Dims).array(g.Before).array(g.Inner).array(g.Strides)
		r.each(fmt.Sprintf("pad<%s>", movers[g.Size]), "PadFrame", s, n)
	}
	return &r.Plan
}
