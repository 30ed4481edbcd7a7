package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// blockGroup emits pointwise instructions over the same dimensions as a step of Go
// kernels. leaves says what is used by other instructions.
func (l *lowering) blockGroup(instrs []int32, leaves func(id graph.ID) bool) {
	b := newBlockBuilder(l, l.Program.Shape(l.Program.Instrs[instrs[0]].Out))
	slots := map[graph.ID]int{}
	for _, i := range instrs {
		in := &l.Program.Instrs[i]
		b.cur = in
		src := make([]int, len(in.Args))
		for k, id := range in.Args {
			s, ok := slots[id]
			if !ok {
				s = b.load(l.Computed(id))
				slots[id] = s
			}
			src[k] = s
		}
		var out *plan.Value
		if leaves(in.Out) {
			l.Values[in.Out] = l.NewValue(l.Program.Shape(in.Out))
			out = &l.Values[in.Out]
		}
		slots[in.Out] = l.addOp(b, in, src, out)
	}
	ops := make([]*graph.Instr, len(instrs))
	for k, i := range instrs {
		ops[k] = &l.Program.Instrs[i]
	}
	b.finish(ops[0])
	l.steps[len(l.steps)-1].Ops = ops
}

// addOp adds one instruction to a step.
func (l *lowering) addOp(b *blockBuilder, in *graph.Instr, src []int, out *plan.Value) int {
	d := l.Program.Shape(in.Out).DType()
	operand := l.Program.Shape(in.Args[len(in.Args)-1]).DType()
	if in.Op == aten.Cast {
		return b.apply(castKernel(loop.ComputeDType(operand), loop.ComputeDType(d)), arithmeticCost, d, false, src, out)
	}
	k := kernelOf(in.Op.Spec(), loop.ComputeDType(operand))
	return b.apply(k.fn, k.cost, d, in.Op.Spec().Exact, src, out)
}

// cast returns v converted to a dtype by a step of its own, or v itself.
func (l *lowering) cast(in *graph.Instr, v plan.Value, d ir.DType) plan.Value {
	from := v.DType()
	if from == d {
		return v
	}
	if view := v.View.Merge(); view.Transposed() {
		v = l.Copied(in, v) // by squares: blocks of a line or less would read its elements one at a time
	}
	out := l.NewValue(v.Shape.WithDType(d))
	if l.engine != nil && v.Shape.Numel() > 0 {
		if k, ok := fuse.Cast(in, d, from, out.Value, v.Value); ok && l.emitKernel(k) {
			return out
		}
	}
	b := newBlockBuilder(l, v.Shape)
	b.cur = in
	b.apply(castKernel(loop.ComputeDType(from), loop.ComputeDType(d)), arithmeticCost, d, true, []int{b.load(v)}, &out) // stored only, which rounds
	b.finish(in)
	return out
}
