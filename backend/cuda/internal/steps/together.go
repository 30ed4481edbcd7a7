package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend/cuda/internal/emit"
)

// reach is how many steps earlier a kernel may run than it was emitted: what it
// writes takes memory from then on.
const reach = 16

// schedule is the order of steps in the making. A step joins an earlier one if
// both are small kernels, and nothing that it depends on is between them: then
// they share a launch. The updates of the parameters of a model are such, which
// take longer to be launched than to be computed.
type schedule struct {
	l      *lowering
	groups [][]int // of steps
	before [][]int // by group: copies that come before it
	slots  []int   // by group: of its parameters; 0 if none may join it
	// By buffer: the last group that writes it and the last that uses it, or -1.
	written, used []int
	fence         int // what comes from now on runs after this group
}

// together has kernels that do not depend on each other share launches.
func (l *lowering) together() {
	s := &schedule{l: l, fence: -1}
	for range l.bufs {
		s.written, s.used = append(s.written, -1), append(s.used, -1)
	}
	l.findDonors()
	for i := range l.steps {
		s.add(i)
	}
	var steps []planned
	for g, members := range s.groups {
		for _, i := range s.before[g] {
			steps = append(steps, l.steps[i])
		}
		steps = append(steps, l.shared(members))
	}
	l.steps = steps
}

// writes calls f for the buffers that a step writes, and for inputs whose memory
// its results are to have: what reads those runs before.
func (s *schedule) writes(p *planned, f func(buf int)) {
	for _, b := range p.written() {
		f(b)
		if d := s.l.bufs[b].donor; d >= 0 {
			f(d)
		}
	}
}

// add puts a step into a group that is there, or into a new one at the end. A copy,
// which is often of something to itself, goes before a group.
func (s *schedule) add(i int) {
	p := &s.l.steps[i]
	after := s.fence // the group runs after this one
	for _, o := range p.operands {
		after = max(after, s.written[o.buf])
	}
	s.writes(p, func(b int) { after = max(after, s.used[b]) })
	slots, joins := s.joins(p)
	at := len(s.groups)
	if joins || p.Copy > 0 {
		for g := len(s.groups) - 1; g > after && g >= len(s.groups)-reach; g-- {
			if s.slots[g] > 0 && s.slots[g]+slots <= emit.MostSlots {
				at = g
				break
			}
		}
	}
	switch {
	case at == len(s.groups):
		s.groups, s.before, s.slots = append(s.groups, []int{i}), append(s.before, nil), append(s.slots, slots)
	case joins:
		s.groups[at] = append(s.groups[at], i)
		s.slots[at] += slots
	default:
		s.before[at] = append(s.before[at], i)
		at-- // so that what it copied may be used by the group
	}
	for _, o := range p.operands {
		s.used[o.buf] = max(s.used[o.buf], at)
	}
	s.writes(p, func(b int) { s.written[b], s.used[b] = max(s.written[b], at), max(s.used[b], at) })
	if p.Call != nil {
		s.fence = at
	}
}

// joins reports whether a step is a small kernel that others may run beside, and
// how many slots its parameter has.
func (s *schedule) joins(p *planned) (slots int, ok bool) {
	if p.Kernels == nil || len(p.Kernels.Launches) != 1 || p.work >= 0 {
		return 0, false
	}
	l := &p.Kernels.Launches[0]
	if !l.Shares(s.l.opt.Limits) {
		return 0, false
	}
	return l.Slots(), true
}

// shared returns the step that does what some steps do at the same time.
func (l *lowering) shared(members []int) planned {
	if len(members) == 1 {
		return l.steps[members[0]]
	}
	all := planned{Step: Step{Instr: l.steps[members[0]].Instr, Fault: -1}, work: -1}
	var reads []operand
	for _, i := range members {
		p := &l.steps[i]
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
	for _, i := range members {
		p := &l.steps[i]
		m := emit.Member{Launch: &p.Kernels.Launches[0], Fault: FaultBytes * max(0, p.Fault-all.Fault), Number: shifted(p.writes, written, read)}
		launches = append(launches, m)
		written, read = written+p.writes, read+len(p.operands)-p.writes
	}
	all.Kernels = &emit.Plan{Launches: []emit.Launch{emit.Together(launches)}}
	for _, i := range members {
		for _, q := range l.steps[i].inPlace {
			alone := !slices.ContainsFunc(members, func(k int) bool {
				return k != i && slices.ContainsFunc(l.steps[k].operands, func(o operand) bool { return o.buf == q.r })
			})
			if alone { // nobody else reads it meanwhile
				all.inPlace = append(all.inPlace, q)
			}
		}
	}
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
