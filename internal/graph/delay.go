package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// delay returns a Program in which pointwise values of parameters alone, such as weights that are
// unpacked or scaled, are computed before the first instruction that uses them. It returns p itself if
// they are already.
//
// Instructions over the same dimensions become one kernel, and a kernel is computed as a whole once one
// of its values is needed. A value that is recorded long before its use would be stored until then, and
// what it is computed from is in memory in any case. Only what would come after a reduction or a product
// is moved, so that pointwise instructions among themselves stay in the order of the user, and only what
// has more than one element: numbers are better computed together.
func delay(p *Program) *Program {
	place := delayed(p)
	if place == nil {
		return p
	}
	order := make([]int32, len(p.Instrs))
	for i := range order {
		order[i] = int32(i)
	}
	// What moves comes before the instruction at its new place, in the order that it had.
	slices.SortStableFunc(order, func(x, y int32) int {
		if place[x] != place[y] {
			return int(place[x] - place[y])
		}
		return int(x - y)
	})
	return p.inOrder(order)
}

// delayed returns, by instruction, before which it is to be computed, its own number if it stays; nil if
// all stay.
func delayed(p *Program) (place []int32) {
	early, computed := p.ofParams()
	if !slices.Contains(computed, true) {
		return nil
	}
	first := make([]int32, len(p.Shapes)) // by ID: where it is used first
	for id := range first {
		first[id] = int32(len(p.Instrs))
	}
	for _, id := range p.Returns {
		early[id] = false
	}
	place = make([]int32, len(p.Instrs))
	barrier, moves := int32(len(p.Instrs)), false // the first product or reduction after the instruction
	for i := int32(len(p.Instrs)) - 1; i >= 0; i-- {
		in := &p.Instrs[i]
		place[i] = i
		if at := first[in.Out]; early[in.Out] && computed[in.Out] && at < int32(len(p.Instrs)) && at > barrier && p.Shape(in.Out).Numel() != 1 {
			place[i], moves = at, true
		}
		if !passes(in) {
			barrier = i
		}
		for _, id := range in.Args {
			first[id] = min(first[id], place[i])
		}
	}
	if !moves {
		return nil
	}
	return place
}

// ofParams returns which values are views of parameters and pointwise values of such alone, and which of
// these are computed.
func (p *Program) ofParams() (early, computed []bool) {
	early, computed = make([]bool, len(p.Shapes)), make([]bool, len(p.Shapes))
	for id := range p.Params {
		early[id] = true
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if !passes(in) || in.NOut != 1 {
			continue
		}
		early[in.Out] = !slices.ContainsFunc(in.Args, func(id ID) bool { return !early[id] })
		computed[in.Out] = early[in.Out] && in.Op != aten.Full &&
			(in.Op.Spec().Category == ir.Pointwise || slices.ContainsFunc(in.Args, func(id ID) bool { return computed[id] }))
	}
	return early, computed
}

// passes reports whether an instruction is pointwise, a view or a number.
func passes(in *Instr) bool {
	sp := in.Op.Spec()
	return !sp.Composite() && (sp.Category == ir.Pointwise || sp.Category == ir.View || in.Op == aten.Full)
}

// inOrder returns the Program with its instructions in another order, in which each still uses only what
// came before.
func (p *Program) inOrder(order []int32) *Program {
	w := newWriter(p, 0)
	for _, i := range order {
		w.write(&p.Instrs[i], w.now)
	}
	return w.program()
}
