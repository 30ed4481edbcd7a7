package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// nest is what a group of instructions that will be one kernel has beyond its
// members: the reductions among them all fold the same dimensions, and what has
// one element for each line of those, a *line value*, stays in the group too:
// the reductions' results, pointwise ops on them, and views of them.
type nest struct {
	reduced bool
	mask    [ir.MaxRank]bool
	axis    loop.Axis
	lines   int // results of each reduction
	parts   int // into how many parts lines are cut, if more than 1
	line    map[graph.ID]bool
	// spread has the line values that were expanded to the dimensions of the
	// group.
	spread map[graph.ID]bool
	// alias has the views of line values, by what they are views of.
	alias    map[graph.ID]graph.ID
	operands int // at most so many, whatever joins or does not
	// While nothing is reduced the operands are known: what members read from
	// outside, and those of their results that are not used by members alone.
	outside []graph.ID
	results int
}

// maxOperands bounds the operands of a kernel, its results among them.
const maxOperands = loop.MaxArgs - 8

// lineFits reports whether a line value of the group lines up with the group's
// dimensions: it is the same along the reduced ones.
func (g *group) lineFits(l *lowering, id graph.ID) bool {
	if g.spread[id] {
		return true
	}
	s := l.p.Shape(id)
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

// probeOf says what a pointwise instruction or a reduction needs of the engine.
func (l *lowering) probeOf(in *graph.Instr, axis loop.Axis) fuse.Probe {
	q := fuse.Probe{Op: in.Op, Out: l.p.Shape(in.Out).DType(), N: uint8(len(in.Args)), Axis: axis}
	for i, id := range in.Args {
		q.In[i] = l.p.Shape(id).DType()
	}
	return q
}

// native reports whether a pointwise instruction can be part of a kernel.
func (l *lowering) native(in *graph.Instr) bool {
	if l.engine == nil || len(in.Args) > 3 {
		return false
	}
	for _, id := range in.Args {
		if l.p.Shape(id).DType().Size() > 8 {
			return false
		}
	}
	return l.engine.supports(l.probeOf(in, loop.None))
}

// joinLine adds a pointwise instruction to the group that computes one of its
// operands as a line value, if the result is one too.
func (l *lowering) joinLine(i int32) bool {
	in := &l.p.Instrs[i]
	s := l.p.Shape(in.Out)
	var g *group
	for _, id := range in.Args {
		if o := l.pending[id]; o != nil && o.nest != nil && o.line[id] && !o.spread[id] && s.Numel() == o.lines && !s.SameDims(o.key.shape) {
			g = o
		}
	}
	if g == nil || !g.room(in, false) {
		return false
	}
	for _, id := range in.Args {
		if l.pending[id] == g && (!g.line[id] || g.spread[id]) {
			return false
		}
	}
	l.closeOthers(in, g)
	for _, id := range in.Args {
		if l.pending[id] == nil {
			if _, ok := g.lineView(l.vals[id], s); !ok {
				return false
			}
		}
	}
	l.addMember(g, i)
	g.line[in.Out] = true
	return true
}

// lineView returns a value, as an operand of an op on line values with the
// dimensions of s, as a view with the dimensions of the group: those that are
// reduced have size 1.
func (g *group) lineView(v value, s ir.Shape) (kernels.View, bool) {
	e := expand(v, s)
	return reshapeView(e, e.shape.WithDims(g.lineDims()...))
}

// closeOthers closes the groups that compute operands of an instruction, but
// for one.
func (l *lowering) closeOthers(in *graph.Instr, g *group) {
	for _, id := range in.Args {
		if o := l.pending[id]; o != nil && o != g {
			l.close(o)
		}
	}
}

// room reports whether a group can take one more instruction. Kernels that reduce
// keep what later passes need again in scratch memory, so there have to be fewer
// members.
func (g *group) room(in *graph.Instr, reduces bool) bool {
	switch {
	case g.nest == nil:
		return len(g.members) < maxGroup
	case reduces || g.reduced:
		return len(g.members) < maxGroup && g.operands+len(in.Args)+1 <= maxOperands
	}
	n := len(g.outside) + g.results + 1
	for _, id := range in.Args {
		if !slices.Contains(g.outside, id) {
			n++
		}
	}
	return len(g.members) < maxNest && n <= maxOperands
}

func (l *lowering) addMember(g *group, i int32) {
	in := &l.p.Instrs[i]
	g.members = append(g.members, i)
	l.pending[in.Out] = g
	if g.nest == nil {
		return
	}
	g.operands++
	g.results++
	for _, id := range in.Args {
		if l.pending[id] != g {
			g.operands++
			if !slices.Contains(g.outside, id) {
				g.outside = append(g.outside, id)
			}
		} else if l.unused[id]--; l.unused[id] == 0 && !l.Kept[id] {
			g.results--
		}
	}
}

// foldsOf has the reductions that kernels may hold.
var foldsOf = map[ir.Op]bool{}

func init() {
	for _, op := range []ir.Op{ir.OpSum, ir.OpProd, ir.OpAmax, ir.OpAmin, ir.OpAny, ir.OpAll, ir.OpArgmax, ir.OpArgmin} {
		foldsOf[op] = true
	}
}

// foldsTo reports whether kernels have a reduction to a dtype: sums of bools are
// not bools, and neither any nor all are numbers.
func foldsTo(op ir.Op, out ir.DType) bool {
	switch op {
	case ir.OpSum, ir.OpProd:
		return out != ir.Bool
	case ir.OpAny, ir.OpAll:
		return out == ir.Bool
	}
	return true
}

// joinReduce adds a reduction to the open group of its operand's dimensions. It
// reports whether there is code for it; the choice depends on dtypes and
// dimensions alone.
func (l *lowering) joinReduce(i int32) bool {
	in := &l.p.Instrs[i]
	if l.engine == nil || !foldsOf[in.Op] {
		return false
	}
	n, ok := l.nestOf(in)
	if !ok || !l.engine.supports(l.probeOf(in, n.axis)) {
		return false
	}
	x := in.Args[0]
	key := groupKey{l.p.Shape(x).WithDType(ir.U8), true}
	g := l.open[key]
	if o := l.pending[x]; o != nil && (o != g || o.line[x]) {
		l.close(o)
		g = l.open[key]
	}
	if g != nil && (g.reduced && g.mask != n.mask || !g.room(in, true)) {
		l.close(g)
		g = nil
	}
	if g == nil {
		g = l.newGroup(key)
	}
	if !g.reduced {
		n.operands, n.outside, n.results = g.operands, g.outside, g.results
		*g.nest = *n
	}
	l.addMember(g, i)
	g.line[in.Out] = true
	return true
}

// nestOf returns what a reduction makes of a group; not ok if it can't be part
// of one.
func (l *lowering) nestOf(in *graph.Instr) (n *nest, ok bool) {
	s, out := l.p.Shape(in.Args[0]), l.p.Shape(in.Out)
	n = &nest{reduced: true, lines: out.Numel(), line: map[graph.ID]bool{}, spread: map[graph.ID]bool{}, alias: map[graph.ID]graph.ID{}}
	n.mask, _ = ir.ReduceDims(l.p.Args(in))
	if n.axis, ok = fuse.AxisOf(s, n.mask); !ok || !foldsTo(in.Op, out.DType()) {
		return nil, false
	}
	n.parts = l.partsOf(s, n)
	index := in.Op == ir.OpArgmax || in.Op == ir.OpArgmin
	return n, !index || n.axis != loop.Both && n.parts < 2
}

// joinView keeps a reshaped or expanded line value in its group.
func (l *lowering) joinView(i int32) bool {
	in := &l.p.Instrs[i]
	if in.Op != ir.OpReshape && in.Op != ir.OpExpand {
		return false
	}
	x := in.Args[0]
	g := l.pending[x]
	if g == nil || g.nest == nil || !g.line[x] || g.spread[x] || !g.room(in, false) {
		return false
	}
	s := l.p.Shape(in.Out)
	switch {
	case s.Numel() == g.lines && !s.SameDims(g.key.shape):
	case in.Op == ir.OpExpand && s.SameDims(g.key.shape) && g.parts < 2 && g.lineFits(l, x):
		g.spread[in.Out] = true
	default:
		return false
	}
	l.addMember(g, i)
	g.line[in.Out] = true
	root := x
	if r, ok := g.alias[x]; ok {
		root = r
	}
	g.alias[in.Out] = root
	return true
}

// fewLines is when the lines of a reduction give the processors too little to
// share.
const fewLines = 16

// mostStrips bounds the parts of a tall reduction.
const mostStrips = 128

// partsOf returns into how many parts the lines of a reduction are cut: where
// there are few of them, and where lines are tall columns, which are better read
// in strips of rows. The number depends on the dimensions alone, and so do
// results.
func (l *lowering) partsOf(s ir.Shape, n *nest) int {
	first := 1 // the size of the first run of reduced dimensions
	started := false
	for d, size := range s.Dims() {
		if n.mask[d] {
			first *= size
			started = started || size > 1
		} else if started && size > 1 {
			break
		}
	}
	t := &l.tune
	switch {
	case n.lines < fewLines:
		return max(1, min(s.Numel()/t.part, first, maxParts))
	case n.axis == loop.Rows && s.Numel() >= t.tall && first >= 4*t.strip:
		return min(first/t.strip, mostStrips)
	}
	return 1
}
