package fuse

import (
	"slices"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// groupKey says which instructions may share a group: those over the same
// dimensions that either all can be part of a kernel or all can't.
type groupKey struct {
	shape  ir.Shape // with dtype u8
	native bool
}

// group is a set of instructions over the same dimensions that will run as one
// step. It stays open until another instruction needs one of its values. Its
// operands from outside are computed when an instruction joins.
type group struct {
	key     groupKey
	members []int32 // in the order of the Program
	*nest           // of native groups
	// wide says that there are elements of 64 bits, ordered that there are sums whose order these would change: of a backend
	// that orders sums by lanes.
	wide, ordered bool
	// over is a value with the dimensions of the group, and number the group's among those made.
	over   graph.ID
	number int32
	// template and outside are what the structure of the group says, once that is known.
	template *template
	outside  []graph.ID
	// chosen are the values from outside that the kernel reads by their indices.
	chosen map[graph.ID]Chosen
	// sinks are what the kernel stores elsewhere; sunk marks members that only they need outside.
	sinks []*Sink
	sunk  map[graph.ID]bool
}

// maxGroup bounds the ops of one step, so that its registers stay in the cache.
// Kernels without reductions keep their registers in the processor's.
const maxGroup, maxNest = 48, 256

func (gs *Groups) newGroup(key groupKey, over graph.ID) *group {
	g := &group{key: key, over: over, number: int32(len(gs.made))}
	if gs.records != nil {
		gs.made = append(gs.made, g)
	}
	if key.native {
		g.nest = &nest{}
	}
	gs.open[key] = g
	return g
}

// join adds a pointwise instruction to the open group of its dimensions, or to
// one whose reductions it continues.
func (gs *Groups) join(i int32) {
	in := &gs.p.Instrs[i]
	key := groupKey{gs.p.Shape(in.Out).WithDType(ir.U8), gs.native(in)}
	if key.native && gs.joinStatistic(i) {
		return
	}
	g := gs.open[key]
	gs.closeOthers(in, g)
	if g = gs.open[key]; g != nil && (!gs.room(g, in, false) || !gs.statisticsFit(g, in) || gs.reducedElsewhere(g, in)) {
		gs.close(g)
		g = nil
	}
	if g == nil {
		g = gs.newGroup(key, in.Out)
	}
	gs.addMember(g, i)
}

// reducedElsewhere reports whether an instruction that needs nothing of a group serves reductions alone that can't be in
// it: in the group of these its result need not leave it.
func (gs *Groups) reducedElsewhere(g *group, in *graph.Instr) bool {
	if g.nest == nil || !g.reduced || slices.ContainsFunc(in.Args, func(id graph.ID) bool { return gs.pending[id] == g }) {
		return false
	}
	left := mostVisited
	var only func(id graph.ID) bool
	only = func(id graph.ID) bool {
		users := gs.uses.Users[id]
		if left -= len(users); left < 0 || len(users) == 0 || gs.uses.Kept[id] {
			return false
		}
		for _, i := range users {
			u := &gs.p.Instrs[i]
			switch {
			case !gs.p.InKernel(u, id):
				return false
			case !u.Op.Spec().Reduces():
				if !only(u.Out) {
					return false
				}
			default:
				if mask, _ := ir.ReduceDims(gs.p.Args(u)); mask == g.mask {
					return false
				}
			}
		}
		return true
	}
	return only(in.Out)
}

// mostVisited bounds how many uses reducedElsewhere looks at.
const mostVisited = 64

// statisticsFit reports whether an instruction over the dimensions of a group can
// use the group's row statistics that are among its operands.
func (gs *Groups) statisticsFit(g *group, in *graph.Instr) bool {
	if g.nest == nil || !g.reduced {
		return true
	}
	for _, id := range in.Args {
		if gs.pending[id] == g && g.statistic[id] && (g.parts > 1 || !g.statisticFits(gs, id)) {
			return false
		}
	}
	return true
}

// close emits a group.
func (gs *Groups) close(g *group) {
	if gs.records != nil && gs.adding >= 0 && gs.closing == 0 {
		gs.records.closes[gs.adding] = append(gs.records.closes[gs.adding], g.number)
	}
	gs.closing++
	defer func() { gs.closing-- }()
	delete(gs.open, g.key)
	if g.nest == nil {
		gs.unfused(g)
		return
	}
	if gs.closeNest(g) {
		return
	}
	gs.closeEach(g)
	for _, s := range g.sinks {
		gs.b.(Storer).Store(s)
	}
}

// closeEach emits each instruction of a group by itself.
func (gs *Groups) closeEach(g *group) {
	gs.forget(g)
	for _, i := range g.members {
		in := &gs.p.Instrs[i]
		one := &group{key: g.key, members: []int32{i}}
		switch {
		case in.Op.Spec().Category == ir.Pointwise:
			one.key.shape = gs.p.Shape(in.Out).WithDType(ir.U8) // a row statistic has other dimensions than the group
			one.nest = &nest{}
		case in.Op.Spec().Reduces():
			one.nest, _ = gs.nestOf(in)
			one.statistic[in.Out] = true
		}
		if one.nest == nil || !gs.closeNest(one) {
			gs.unfused(one)
		}
	}
}

// unfused has the backend emit a group without a kernel. The backend may Need the
// members.
func (gs *Groups) unfused(g *group) {
	gs.forget(g)
	gs.b.Unfused(g.members, func(id graph.ID) bool {
		return gs.uses.Kept[id] || slices.ContainsFunc(gs.uses.Users[id], func(u int32) bool {
			_, inside := slices.BinarySearch(g.members, u)
			return !inside
		})
	})
}

// forget notes that no open group computes the values of a group.
func (gs *Groups) forget(g *group) {
	for _, i := range g.members {
		gs.pending[gs.p.Instrs[i].Out] = nil
	}
}

// leaves reports whether a value is used outside its group.
func (gs *Groups) leaves(id graph.ID, g *group) bool {
	if g.sunk[id] {
		return false
	}
	if gs.uses.Kept[id] {
		return true
	}
	for _, u := range gs.uses.Users[id] {
		if gs.pending[gs.p.Instrs[u].Out] != g {
			return true
		}
	}
	return false
}
