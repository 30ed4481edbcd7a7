package cpu

import (
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// blockGroup emits pointwise instructions over the same dimensions as a step of Go
// kernels. leaves says what is used by other instructions.
func (l *lowering) blockGroup(instrs []int32, leaves func(id graph.ID) bool) {
	b := newBlockBuilder(l, l.p.Shape(l.p.Instrs[instrs[0]].Out))
	slots := map[graph.ID]int{}
	for _, i := range instrs {
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
		if leaves(in.Out) {
			l.vals[in.Out] = l.newValue(l.p.Shape(in.Out))
			out = &l.vals[in.Out]
		}
		slots[in.Out] = l.addOp(b, in, src, out)
	}
	ops := make([]*graph.Instr, len(instrs))
	for k, i := range instrs {
		ops[k] = &l.p.Instrs[i]
	}
	b.finish(ops[0])
	l.steps[len(l.steps)-1].Ops = ops
}

// addOp adds one instruction to a step.
func (l *lowering) addOp(b *blockBuilder, in *graph.Instr, src []int, out *value) int {
	d := l.p.Shape(in.Out).DType()
	operand := l.p.Shape(in.Args[len(in.Args)-1]).DType()
	if in.Op == ir.OpCast {
		return b.apply(castKernel(loop.ComputeDType(operand), loop.ComputeDType(d)), arithmeticCost, d, false, src, out)
	}
	k := kernelOf(in.Op.Spec(), loop.ComputeDType(operand))
	return b.apply(k.fn, k.cost, d, in.Op.Spec().Exact, src, out)
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
	b.apply(castKernel(loop.ComputeDType(from), loop.ComputeDType(d)), arithmeticCost, d, true, []int{b.load(v)}, &out) // stored only, which rounds
	b.finish(in)
	return out
}
