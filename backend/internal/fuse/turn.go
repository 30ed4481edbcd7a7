package fuse

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/loop"
)

// leastTurned is how many lines there are at least of which vectors take an element of each.
const leastTurned = 16

// turn has lines of columns that lie across the memory of an operand, as those of a transposed matrix, computed
// beside each other, an element of each at a time, where no result depends on the order. It returns what undoes
// that: what is recorded of a group holds for operands that lie otherwise, too.
func (gs *Groups) turn(g *group) (undo func()) {
	axis, beside := g.axis, g.beside
	if turned := gs.turns(g); turned != g.turned {
		g.turned, g.template = turned, nil
	}
	if g.turned {
		g.axis, g.beside = loop.Rows, true
	}
	return func() { g.axis, g.beside = axis, beside }
}

// turns reports whether turn changes a group.
func (gs *Groups) turns(g *group) bool {
	if !g.reduced || g.axis != loop.Columns || g.parts > 1 || g.lines < leastTurned || len(g.pass) > 0 {
		return false
	}
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		switch {
		case in.Op.Spec().Reduces():
			if !orderFree(gs.p, in) || !gs.b.Supports(gs.probeOf(in, loop.Rows)) {
				return false
			}
		case !g.statistic[in.Out] && gs.leaves(in.Out, g):
			return false // stored in the order of rows
		}
	}
	return gs.liesAcross(g)
}

// liesAcross reports whether there are operands from outside whose elements adjoin along the last dimension that is
// not reduced, and none whose elements adjoin along the last one, unless it is the same for lines that adjoin.
func (gs *Groups) liesAcross(g *group) bool {
	dims := g.key.shape.Dims()
	last, line := 0, 0
	for d, n := range dims {
		switch {
		case n == 1:
		case g.mask[d]:
			last = d
		default:
			line = d
		}
	}
	across := false
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		if g.statistic[in.Out] && !in.Op.Spec().Reduces() {
			continue
		}
		for _, id := range in.Args {
			if gs.pending[id] == g {
				continue
			}
			v := gs.b.Value(id).View.Expand(dims)
			if v.Strides[last] == 1 && v.Strides[line] != 0 || !reducedMerge(&v, &g.mask) {
				return false
			}
			across = across || v.Strides[last] > 1 && v.Strides[line] == 1
		}
	}
	return across
}

// orderFree reports whether the result of a reduction is the same in any order.
func orderFree(p *graph.Program, in *graph.Instr) bool {
	switch in.Op {
	case aten.Any, aten.All:
		return true
	case aten.Sum, aten.Prod:
		return p.Shape(in.Out).DType().IsIntegral()
	}
	return p.Shape(in.Args[0]).DType().IsIntegral()
}
