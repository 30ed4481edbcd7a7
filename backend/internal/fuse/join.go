package fuse

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// nest is what a group of instructions that will be one kernel has beyond its
// members. The reductions among them all reduce the same dimensions. Row statistics,
// which have one element for each line that is reduced, stay in the group too: the
// results of the reductions, pointwise ops on them, and views of them.
type nest struct {
	reduced   bool
	mask      [ir.MaxRank]bool
	axis      loop.Axis
	beside    bool // lines whose elements adjoin are computed beside each other (Backend.Beside)
	turned    bool // lines of columns were computed so when the group was closed last (turn)
	lines     int  // results of each reduction
	parts     int  // into how many parts lines are cut, if more than 1
	long      bool // lines, or their parts, have more elements than longLine
	statistic map[graph.ID]bool
	// spread has the row statistics that were expanded to the dimensions of the
	// group.
	spread map[graph.ID]bool
	// alias has the views of row statistics, by what they are views of.
	alias map[graph.ID]graph.ID
	// The operands of the kernel are the inputs, which members read from outside, those of their
	// results that are not used by members alone, and lines of scratch memory for what
	// was computed in an earlier pass than a member that uses it. The passes are noted of
	// members after the first.
	inputs  []graph.ID
	results int
	kept    map[graph.ID]bool
	pass    map[graph.ID]int
	// of is the first reduction, whose operand and result say what lines and parts are.
	of *graph.Instr
}

// maxOperands bounds the operands of a kernel that reduces, its results among them.
const maxOperands = loop.MaxArgs - 8

// longLine is how many elements of 16 bits are summed up in f32 at most. Adding up 2¹⁶ of them loses less
// than their own rounding in all but the worst case.
const longLine = 1 << 16

// statisticFits reports whether a row statistic of the group lines up with the group's
// dimensions: it is the same along the reduced ones.
func (g *group) statisticFits(gs *Groups, id graph.ID) bool {
	if g.spread[id] {
		return true
	}
	s := gs.p.Shape(id)
	off := g.key.shape.Rank() - s.Rank()
	if off < 0 {
		return false
	}
	for d := range g.key.shape.Rank() {
		n := 1
		if d >= off {
			n = s.Dim(d - off)
		}
		want := g.key.shape.Dim(d)
		if g.mask[d] {
			want = 1
		}
		if n != want {
			return false
		}
	}
	return true
}

// lineDims returns the dimensions of a group with the reduced ones at size 1.
func (g *group) lineDims() []int {
	dims := g.key.shape.Dims()
	for d := range dims {
		if g.mask[d] {
			dims[d] = 1
		}
	}
	return dims
}

// probeOf asks for a pointwise instruction or a reduction.
func (gs *Groups) probeOf(in *graph.Instr, axis loop.Axis) Probe {
	q := Probe{Op: in.Op, Out: gs.p.Shape(in.Out).DType(), N: uint8(len(in.Args)), Axis: axis}
	for i, id := range in.Args {
		q.In[i] = gs.p.Shape(id).DType()
	}
	return q
}

// native reports whether a pointwise instruction can be part of a kernel.
func (gs *Groups) native(in *graph.Instr) bool {
	if len(in.Args) > 3 {
		return false
	}
	for _, id := range in.Args {
		if gs.p.Shape(id).DType().Size() > 8 {
			return false
		}
	}
	return gs.b.Supports(gs.probeOf(in, loop.None))
}

// joinStatistic adds a pointwise instruction to the group that computes one of its
// operands as a row statistic, if the result is one too.
func (gs *Groups) joinStatistic(i int32) bool {
	in := &gs.p.Instrs[i]
	s := gs.p.Shape(in.Out)
	var g *group
	for _, id := range in.Args {
		if o := gs.pending[id]; o != nil && o.nest != nil && o.statistic[id] && !o.spread[id] && s.Numel() == o.lines && !s.SameDims(o.key.shape) {
			g = o
		}
	}
	if g == nil || !gs.room(g, in, false) {
		return false
	}
	for _, id := range in.Args {
		if gs.pending[id] == g && (!g.statistic[id] || g.spread[id]) {
			return false
		}
	}
	gs.closeOthers(in, g)
	for _, id := range in.Args {
		if gs.pending[id] == nil {
			if _, ok := g.statisticView(gs.b.Value(id).View, s); !ok {
				if gs.records != nil {
					gs.records.never = true // strides decide, which no Template knows
				}
				return false
			}
		}
	}
	g.statistic[in.Out] = true
	gs.addMember(g, i)
	return true
}

// statisticView returns a value, as an operand of an op on row statistics with the
// dimensions of s, as a view with the dimensions of the group: those that are
// reduced have size 1.
func (g *group) statisticView(v strided.View, s ir.Shape) (strided.View, bool) {
	return v.Expand(s.Dims()).Reshape(g.lineDims())
}

// closeOthers closes the groups that compute operands of an instruction, but
// for one.
func (gs *Groups) closeOthers(in *graph.Instr, g *group) {
	for _, id := range in.Args {
		if o := gs.pending[id]; o != nil && o != g {
			gs.close(o)
		}
	}
}

// room reports whether a group can take one more instruction. Kernels that reduce
// keep what later passes need again in scratch memory, so there have to be fewer
// members, and operands.
func (gs *Groups) room(g *group, in *graph.Instr, reduces bool) bool {
	members, operands := maxNest, loop.MaxArgs
	switch {
	case g.nest == nil:
		return len(g.members) < maxGroup
	case g.wide && gs.orderedSum(in) || g.ordered && gs.wide(in):
		return false
	case reduces || g.reduced:
		members, operands = maxGroup, maxOperands
	}
	n := len(g.inputs) + len(g.kept) + g.results + 1
	for _, id := range in.Args {
		if gs.pending[id] != g && !slices.Contains(g.inputs, id) {
			n++
		}
	}
	return len(g.members) < members && n <= operands
}

// wide reports whether a kernel has elements of 64 bits for an instruction.
func (gs *Groups) wide(in *graph.Instr) bool {
	wide := gs.p.Shape(in.Out).DType().Size() == 8
	for _, id := range in.Args {
		wide = wide || gs.p.Shape(id).DType().Size() == 8
	}
	return wide
}

// orderedSum reports whether an instruction is a sum along columns of floats of less than 64 bits.
func (gs *Groups) orderedSum(in *graph.Instr) bool {
	d := gs.p.Shape(in.Out).DType()
	if in.Op != aten.Sum || !d.IsFloat() || d.Size() >= 8 {
		return false
	}
	mask, _ := ir.ReduceDims(gs.p.Args(in))
	axis, _, ok := gs.axisFor(in, mask)
	return ok && axis != loop.Rows
}

// axisFor returns along what a reduction goes, and whether its lines are computed beside each other.
func (gs *Groups) axisFor(in *graph.Instr, mask [ir.MaxRank]bool) (axis loop.Axis, beside, ok bool) {
	axis, ok = axisOf(gs.p.Shape(in.Args[0]), mask)
	if ok && axis == loop.Columns && gs.b.Beside(reductionOf(gs.p, in, mask, axis)) {
		return loop.Rows, true, true
	}
	return axis, false, ok
}

// passOf notes the pass of a member, and which of its operands earlier passes compute.
func (gs *Groups) passOf(g *group, in *graph.Instr) {
	p := 0
	for _, id := range in.Args {
		after := g.pass[id]
		if g.statistic[id] && !g.statistic[in.Out] {
			after++
		}
		p = max(p, after)
	}
	for _, id := range in.Args {
		if gs.pending[id] == g && g.pass[id] < p && !g.statistic[id] {
			g.kept[id] = true
		}
	}
	if p > 0 {
		g.pass[in.Out] = p
	}
}

func (gs *Groups) addMember(g *group, i int32) {
	in := &gs.p.Instrs[i]
	g.members = append(g.members, i)
	gs.pending[in.Out] = g
	if g.nest == nil {
		return
	}
	if gs.byLanes {
		g.wide, g.ordered = g.wide || gs.wide(in), g.ordered || gs.orderedSum(in)
	}
	if g.reduced {
		gs.passOf(g, in)
	}
	g.results++
	for _, id := range in.Args {
		if gs.pending[id] != g {
			if !slices.Contains(g.inputs, id) {
				g.inputs = append(g.inputs, id)
			}
		} else if gs.unused[id]--; gs.unused[id] == 0 && !gs.uses.Kept[id] {
			g.results--
		}
	}
}

// reducesTo reports whether kernels have a reduction to a dtype: sums of bools are
// not bools, and neither any nor all are numbers.
func reducesTo(op ir.Op, out ir.DType) bool {
	switch op {
	case aten.Sum, aten.Prod:
		return out != ir.Bool
	case aten.Any, aten.All:
		return out == ir.Bool
	}
	return true
}

// joinReduce adds a reduction to the open group of its operand's dimensions. It
// reports whether there is code for it; the choice depends on dtypes and
// dimensions alone.
func (gs *Groups) joinReduce(i int32) bool {
	in := &gs.p.Instrs[i]
	if !in.Op.Spec().Reduces() {
		return false
	}
	n, ok := gs.nestOf(in)
	if !ok || !gs.b.Supports(gs.probeOf(in, n.axis)) {
		return false
	}
	x := in.Args[0]
	key := groupKey{gs.p.Shape(x).WithDType(ir.U8), true}
	g := gs.open[key]
	if o := gs.pending[x]; o != nil && (o != g || o.statistic[x]) {
		gs.close(o)
		g = gs.open[key]
	}
	if g != nil && (g.reduced && (g.mask != n.mask || g.axis != n.axis || g.parts != n.parts) || !gs.room(g, in, true)) {
		gs.close(g)
		g = nil
	}
	if g == nil {
		g = gs.newGroup(key, x)
	}
	if !g.reduced {
		n.inputs, n.results = g.inputs, g.results
		*g.nest = *n
	}
	g.statistic[in.Out] = true
	gs.addMember(g, i)
	return true
}

// nestOf returns what a reduction makes of a group; not ok if it can't be part
// of one.
func (gs *Groups) nestOf(in *graph.Instr) (n *nest, ok bool) {
	s, out := gs.p.Shape(in.Args[0]), gs.p.Shape(in.Out)
	n = &nest{reduced: true, of: in, lines: out.Numel(), statistic: map[graph.ID]bool{}, spread: map[graph.ID]bool{}, alias: map[graph.ID]graph.ID{},
		kept: map[graph.ID]bool{}, pass: map[graph.ID]int{}}
	n.mask, _ = ir.ReduceDims(gs.p.Args(in))
	if n.axis, n.beside, ok = gs.axisFor(in, n.mask); !ok || !reducesTo(in.Op, out.DType()) {
		return nil, false
	}
	n.parts = partsOf(gs.p, gs.b, in, n.mask, n.axis)
	n.long = s.Numel()/max(n.lines*n.parts, 1) > longLine
	if gs.records != nil {
		gs.records.cuts = append(gs.records.cuts, cut{in, n.mask, n.axis, n.parts > 1, n.beside})
	}
	return n, !places(in.Op) || n.axis != loop.Both && n.parts < 2
}

// places reports whether a reduction gives places of elements.
func places(op ir.Op) bool { return op == aten.Argmax || op == aten.Argmin }

// joinView keeps a reshaped or expanded row statistic in its group.
func (gs *Groups) joinView(i int32) bool {
	in := &gs.p.Instrs[i]
	if in.Op != aten.Reshape && in.Op != aten.Expand {
		return false
	}
	x := in.Args[0]
	g := gs.pending[x]
	if g == nil || g.nest == nil || !g.statistic[x] || g.spread[x] || !gs.room(g, in, false) {
		return false
	}
	s := gs.p.Shape(in.Out)
	switch {
	case s.Numel() == g.lines && !s.SameDims(g.key.shape):
	case in.Op == aten.Expand && s.SameDims(g.key.shape) && g.parts < 2 && g.statisticFits(gs, x):
		g.spread[in.Out] = true
	default:
		return false
	}
	g.statistic[in.Out] = true
	gs.addMember(g, i)
	root := x
	if r, ok := g.alias[x]; ok {
		root = r
	}
	g.alias[in.Out] = root
	return true
}
