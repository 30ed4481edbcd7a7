package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
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
	members []int32
	*nest   // of native groups
}

// maxGroup bounds the ops of one step, so that its registers stay in the cache.
// Kernels without reductions keep their registers in the processor's.
const maxGroup, maxNest = 48, 256

func (l *lowering) newGroup(key groupKey) *group {
	g := &group{key: key}
	if key.native {
		g.nest = &nest{}
	}
	l.open[key] = g
	return g
}

// join adds a pointwise instruction to the open group of its dimensions, or to
// one whose reductions it continues.
func (l *lowering) join(i int32) {
	in := &l.p.Instrs[i]
	key := groupKey{l.p.Shape(in.Out).WithDType(ir.U8), l.native(in)}
	if key.native && l.joinLine(i) {
		return
	}
	g := l.open[key]
	l.closeOthers(in, g)
	if g = l.open[key]; g != nil && (!g.room(in, false) || !l.linesFit(g, in)) {
		l.close(g)
		g = nil
	}
	if g == nil {
		g = l.newGroup(key)
	}
	l.addMember(g, i)
}

// linesFit reports whether an instruction over the dimensions of a group can
// use the group's line values that are among its operands.
func (l *lowering) linesFit(g *group, in *graph.Instr) bool {
	if g.nest == nil || !g.reduced {
		return true
	}
	for _, id := range in.Args {
		if l.pending[id] == g && g.line[id] && (g.parts > 1 || !g.lineFits(l, id)) {
			return false
		}
	}
	return true
}

// close emits a group.
func (l *lowering) close(g *group) {
	delete(l.open, g.key)
	if g.nest == nil {
		l.closeBlocks(g)
		return
	}
	if !l.closeNest(g) {
		l.closeEach(g)
	}
}

// closeEach emits each instruction of a group by itself.
func (l *lowering) closeEach(g *group) {
	for _, i := range g.members {
		l.pending[l.p.Instrs[i].Out] = nil
	}
	for _, i := range g.members {
		in := &l.p.Instrs[i]
		one := &group{key: g.key, members: []int32{i}}
		switch {
		case lowerings[in.Op] == nil:
			one.key.shape = l.p.Shape(in.Out).WithDType(ir.U8) // a line value has not the group's
			one.nest = &nest{}
			if !l.closeNest(one) {
				l.closeBlocks(one)
			}
		case !l.closeFold(one, in):
			l.lower(in, in, nil)
		}
	}
}

// closeFold emits a group of one reduction as a kernel, if there is code.
func (l *lowering) closeFold(g *group, in *graph.Instr) bool {
	if !foldsOf[in.Op] {
		return false
	}
	n, _ := l.nestOf(in)
	n.line[in.Out] = true
	g.nest = n
	return l.closeNest(g)
}

// closeBlocks emits a group of pointwise instructions as a step of Go kernels.
func (l *lowering) closeBlocks(g *group) {
	b := newBlockBuilder(l, g.key.shape)
	slots := map[graph.ID]int{}
	for _, i := range g.members {
		in := &l.p.Instrs[i]
		b.cur = in
		src := make([]int, len(in.Args))
		for k, id := range in.Args {
			s, ok := slots[id]
			if !ok {
				s = b.load(l.vals[id])
				slots[id] = s
			}
			src[k] = s
		}
		var out *value
		if l.leaves(in.Out, g) {
			l.vals[in.Out] = l.newValue(l.p.Shape(in.Out))
			out = &l.vals[in.Out]
		}
		slots[in.Out] = l.addOp(b, in, src, out)
	}
	ops := make([]*graph.Instr, len(g.members))
	for k, i := range g.members {
		ops[k] = &l.p.Instrs[i]
		l.pending[ops[k].Out] = nil
	}
	b.finish(ops[0])
	l.steps[len(l.steps)-1].ops = ops
}

// leaves reports whether a value is used outside its group.
func (l *lowering) leaves(id graph.ID, g *group) bool {
	if l.Kept[id] {
		return true
	}
	for _, u := range l.Users[id] {
		if l.pending[l.p.Instrs[u].Out] != g {
			return true
		}
	}
	return false
}

// addOp adds one instruction to a step.
func (l *lowering) addOp(b *blockBuilder, in *graph.Instr, src []int, out *value) int {
	d := l.p.Shape(in.Out).DType()
	operand := l.p.Shape(in.Args[len(in.Args)-1]).DType()
	if in.Op == ir.OpCast {
		return b.apply(castKernel(computeDType(operand), computeDType(d)), arithmeticCost, d, false, src, out)
	}
	k := kernelOf(in.Op.Spec(), computeDType(operand))
	return b.apply(k.fn, k.cost, d, fuse.Exact(in.Op), src, out)
}

// cast returns v converted to a dtype by a step of its own, or v itself.
func (l *lowering) cast(in *graph.Instr, v value, d ir.DType) value {
	from := v.dtype()
	if from == d {
		return v
	}
	b := newBlockBuilder(l, v.shape)
	b.cur = in
	out := l.newValue(v.shape.WithDType(d))
	b.apply(castKernel(computeDType(from), computeDType(d)), arithmeticCost, d, true, []int{b.load(v)}, &out) // stored only, which rounds
	b.finish(in)
	return out
}
