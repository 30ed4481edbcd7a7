package cpu

import (
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// group is a set of pointwise instructions with equal output dimensions that
// will run as one step. It stays open until something else needs one of its
// values; its operands from outside are computed by then, since they are when
// an instruction joins.
type group struct {
	key     ir.Shape
	members []int32
}

// maxGroup bounds the ops of one step, so that its registers stay in the cache.
const maxGroup = 48

// join adds a pointwise instruction to the open group of its dimensions.
func (l *lowering) join(i int32) {
	in := &l.p.Instrs[i]
	key := l.p.Shape(in.Out).WithDType(ir.U8)
	g := l.open[key]
	for _, id := range in.Args {
		if o := l.pending[id]; o != nil && o != g {
			l.close(o)
		}
	}
	if g = l.open[key]; g != nil && len(g.members) == maxGroup {
		l.close(g)
		g = nil
	}
	if g == nil {
		g = &group{key: key}
		l.open[key] = g
	}
	g.members = append(g.members, i)
	l.pending[in.Out] = g
}

// close emits a group as one step.
func (l *lowering) close(g *group) {
	delete(l.open, g.key)
	b := newBlockBuilder(l, g.key)
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
	if l.kept[id] {
		return true
	}
	for _, u := range l.users[id] {
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
	return b.apply(k.fn, k.cost, d, exact[in.Op], src, out)
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
