package fuse

import (
	"slices"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// groupKey says which instructions may share a group: those over the same
// dimensions that either all can be part of a kernel or all can't.
type groupKey struct {
	shape  ir.Shape // with dtype u8
	native bool
}

// group is a set of instructions over the same dimensions that will run as one
// step. It stays open until something else needs one of its values; its
// operands from outside are computed by then, since they are when an
// instruction joins.
type group struct {
	key     groupKey
	members []int32 // in the order of the Program
	*nest           // of native groups
}

// maxGroup bounds the ops of one step, so that its registers stay in the cache.
// Kernels without reductions keep their registers in the processor's.
const maxGroup, maxNest = 48, 256

func (pl *Plan) newGroup(key groupKey) *group {
	g := &group{key: key}
	if key.native {
		g.nest = &nest{}
	}
	pl.open[key] = g
	return g
}

// join adds a pointwise instruction to the open group of its dimensions, or to
// one whose reductions it continues.
func (pl *Plan) join(i int32) {
	in := &pl.p.Instrs[i]
	key := groupKey{pl.p.Shape(in.Out).WithDType(ir.U8), pl.native(in)}
	if key.native && pl.joinLine(i) {
		return
	}
	g := pl.open[key]
	pl.closeOthers(in, g)
	if g = pl.open[key]; g != nil && (!g.room(in, false) || !pl.linesFit(g, in)) {
		pl.close(g)
		g = nil
	}
	if g == nil {
		g = pl.newGroup(key)
	}
	pl.addMember(g, i)
}

// linesFit reports whether an instruction over the dimensions of a group can
// use the group's line values that are among its operands.
func (pl *Plan) linesFit(g *group, in *graph.Instr) bool {
	if g.nest == nil || !g.reduced {
		return true
	}
	for _, id := range in.Args {
		if pl.pending[id] == g && g.line[id] && (g.parts > 1 || !g.lineFits(pl, id)) {
			return false
		}
	}
	return true
}

// close emits a group.
func (pl *Plan) close(g *group) {
	delete(pl.open, g.key)
	if g.nest == nil {
		pl.unfused(g)
		return
	}
	if !pl.closeNest(g) {
		pl.closeEach(g)
	}
}

// closeEach emits each instruction of a group by itself.
func (pl *Plan) closeEach(g *group) {
	pl.forget(g)
	for _, i := range g.members {
		in := &pl.p.Instrs[i]
		one := &group{key: g.key, members: []int32{i}}
		switch {
		case in.Op.Spec().Category == ir.Pointwise:
			one.key.shape = pl.p.Shape(in.Out).WithDType(ir.U8) // a line value has not the group's
			one.nest = &nest{}
		case reduces(in.Op):
			one.nest, _ = pl.nestOf(in)
			one.line[in.Out] = true
		}
		if one.nest == nil || !pl.closeNest(one) {
			pl.unfused(one)
		}
	}
}

// unfused has the backend emit a group without a kernel. It may Need the members.
func (pl *Plan) unfused(g *group) {
	pl.forget(g)
	pl.b.Unfused(g.members, func(id graph.ID) bool {
		return pl.uses.Kept[id] || slices.ContainsFunc(pl.uses.Users[id], func(u int32) bool {
			_, inside := slices.BinarySearch(g.members, u)
			return !inside
		})
	})
}

// forget ends the waiting for a group's values.
func (pl *Plan) forget(g *group) {
	for _, i := range g.members {
		pl.pending[pl.p.Instrs[i].Out] = nil
	}
}

// leaves reports whether a value is used outside its group.
func (pl *Plan) leaves(id graph.ID, g *group) bool {
	if pl.uses.Kept[id] {
		return true
	}
	for _, u := range pl.uses.Users[id] {
		if pl.pending[pl.p.Instrs[u].Out] != g {
			return true
		}
	}
	return false
}
