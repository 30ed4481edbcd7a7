package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/internal/plan"
)

// reach is how many steps earlier a kernel may run than it was emitted.
const reach = 16

// plan orders the steps and places their buffers.
func (l *lowering) plan() *plan.Plan[planned] {
	return plan.Make(l.steps, l.Buffers, plan.Options[planned]{
		Alignment: Alignment, Inputs: len(l.Program.Params), Aliases: l.opt.Aliases,
		Fusion: &plan.Fusion[planned]{
			Reach: reach, Capacity: emit.MostSlots,
			Size:  l.slots,
			Moves: func(s *plan.Step[planned]) bool { return s.Payload.Copy > 0 },
			Fence: func(s *plan.Step[planned]) bool { return s.Payload.Call != nil },
			Merge: horizontal,
		},
	})
}

// sequence addresses the operands of the steps.
func (l *lowering) sequence(p *plan.Plan[planned]) *Sequence {
	s := &Sequence{Faults: l.faults, Returned: l.returned, Workspace: p.Workspace, Donors: make([]int, len(l.Program.Returns))}
	for _, q := range l.Program.Params {
		s.Inputs = append(s.Inputs, q.Shape)
	}
	for i, id := range l.Program.Returns {
		s.Outputs = append(s.Outputs, l.Program.Shape(id))
		s.Donors[i] = -1
	}
	for _, st := range p.Storages {
		if st.Output >= 0 {
			s.Donors[st.Output] = st.Donor
		}
	}
	refs := s.refs(p)
	for i := range p.Steps {
		w := &p.Steps[i].Payload
		for _, o := range w.operands {
			r := refs[o.buf]
			r.Offset += o.off
			w.Refs = append(w.Refs, r)
		}
		if w.work >= 0 {
			w.Work = refs[w.work]
		}
		if w.Product != nil || w.Copy > 0 || w.Call != nil || w.Begin != nil || w.Wait != nil || w.Kernels != nil && len(w.Kernels.Launches) > 0 {
			s.Steps = append(s.Steps, w.Step)
		}
	}
	return s
}

// refs returns where each buffer is, and lays out the constants.
func (s *Sequence) refs(p *plan.Plan[planned]) []Ref {
	refs := make([]Ref, len(p.Buffers))
	returned := 0
	for i := range p.Buffers {
		switch b := &p.Buffers[i]; {
		case b.Kind == plan.Input:
			refs[i] = Ref{s.Input(i), 0}
		case b.Kind == plan.Returned:
			refs[i] = Ref{s.Return(returned), 0}
			returned++
		case b.Kind == plan.Constant:
			at := (len(s.Constants) + Alignment - 1) / Alignment * Alignment
			refs[i] = Ref{Constants, at}
			s.Constants = append(append(s.Constants, make([]byte, at-len(s.Constants))...), b.Data...)
		case b.Storage < 0: // no step writes it
		case p.Storages[b.Storage].Output >= 0:
			refs[i] = Ref{s.Output(p.Storages[b.Storage].Output), 0}
		default:
			refs[i] = Ref{Workspace, p.Storages[b.Storage].Offset}
		}
	}
	return refs
}

// slots returns how many slots the parameter of a small kernel has, which others may run beside.
func (l *lowering) slots(s *plan.Step[planned]) (n int, ok bool) {
	p := &s.Payload
	if p.Kernels == nil || len(p.Kernels.Launches) != 1 || p.work >= 0 {
		return 0, false
	}
	k := &p.Kernels.Launches[0]
	if !k.Shares(l.opt.Limits) {
		return 0, false
	}
	return k.Slots(), true
}

// horizontal returns what launches the kernels of some steps at the same time. Operands that are
// written come before those that are read.
func horizontal(members []*plan.Step[planned]) planned {
	all := planned{Step: Step{Instr: members[0].Payload.Instr, Fault: -1}, work: -1}
	var reads []operand
	for _, s := range members {
		p := &s.Payload
		all.operands, reads = append(all.operands, p.operands[:p.writes]...), append(reads, p.operands[p.writes:]...)
		if p.Fault >= 0 {
			all.parts = append(all.parts, p.Step)
		}
	}
	all.writes = len(all.operands)
	all.operands = append(all.operands, reads...)
	if all.parts != nil {
		all.Fault = all.parts[0].Fault // steps come in order, and so do their faults
	}
	var launches []emit.Member
	written, read := 0, all.writes // where the operands of the next are
	for _, s := range members {
		p := &s.Payload
		m := emit.Member{Launch: &p.Kernels.Launches[0], Fault: FaultBytes * max(0, p.Fault-all.Fault), Number: shifted(p.writes, written, read)}
		launches = append(launches, m)
		written, read = written+p.writes, read+len(p.operands)-p.writes
	}
	all.Kernels = &emit.Plan{Launches: []emit.Launch{emit.Horizontal(launches)}}
	return all
}

// shifted returns the numbers of operands: those written, so many, come from
// written on, the others from read on.
func shifted(writes, written, read int) func(operand int) int {
	return func(operand int) int {
		if operand < writes {
			return written + operand
		}
		return read + operand - writes
	}
}
