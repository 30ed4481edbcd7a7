package plan

import "slices"

// Fusion merges steps that do not depend on each other into one, horizontally: the updates of the
// parameters of a model, say, which take longer to be launched than to be computed.
type Fusion[P any] struct {
	// Reach is how many steps earlier a step may run than it was emitted. What it writes takes
	// memory from then on.
	Reach int
	// Capacity bounds the sum of the sizes of steps that are merged.
	Capacity int
	// Size returns that of a step; ok is false for one that cannot be merged.
	Size func(s *Step[P]) (n int, ok bool)
	// Moves reports whether a step that cannot be merged may come forward, before merged ones.
	Moves func(s *Step[P]) bool
	// Fence reports whether all later steps must run after a step.
	Fence func(s *Step[P]) bool
	// Merge returns the payload of a step that does what several do. It reads what all of them
	// read, in their order, and writes what all of them write.
	Merge func(members []*Step[P]) P
}

// fusion is the state of fuse: an order of groups of steps.
type fusion[P any] struct {
	*Fusion[P]
	p      *Plan[P]
	groups [][]int // of steps
	before [][]int // by group: the steps that moved before it
	sizes  []int   // by group: the sum of its steps' sizes; 0 if none may join it
	// By buffer: the last group that writes it and the last that uses it, or -1.
	written, used []int
	fence         int // later steps run after this group
}

// fuse merges steps. A step joins an earlier group if nothing that it depends on is between them.
func (p *Plan[P]) fuse(o *Fusion[P]) {
	f := &fusion[P]{Fusion: o, p: p, fence: -1}
	for range p.Buffers {
		f.written, f.used = append(f.written, -1), append(f.used, -1)
	}
	for i := range p.Steps {
		f.add(i)
	}
	var steps []Step[P]
	for g, members := range f.groups {
		for _, i := range f.before[g] {
			steps = append(steps, p.Steps[i])
		}
		steps = append(steps, f.merged(members))
	}
	p.Steps = steps
}

// overwritten calls f for the buffers that a step writes, and for the inputs whose memory they are
// to have: the readers of those run before the step.
func (p *Plan[P]) overwritten(s *Step[P], f func(buf int)) {
	for _, b := range s.Writes {
		f(b)
		if d := p.Buffers[b].Donor; d >= 0 {
			f(d)
		}
	}
}

// add puts a step into an earlier group, before one, or into a new one at the end.
func (f *fusion[P]) add(i int) {
	s := &f.p.Steps[i]
	after := f.fence // the step runs after this group
	for _, bufs := range [][]int{s.Reads, s.Writes} {
		for _, b := range bufs {
			after = max(after, f.written[b])
		}
	}
	f.p.overwritten(s, func(b int) { after = max(after, f.used[b]) })
	size, joins := f.Size(s)
	at := len(f.groups)
	if joins || f.Moves(s) {
		for g := len(f.groups) - 1; g > after && g >= len(f.groups)-f.Reach; g-- {
			if f.sizes[g] > 0 && f.sizes[g]+size <= f.Capacity {
				at = g
				break
			}
		}
	}
	switch {
	case at == len(f.groups):
		f.groups, f.before, f.sizes = append(f.groups, []int{i}), append(f.before, nil), append(f.sizes, size)
	case joins:
		f.groups[at] = append(f.groups[at], i)
		f.sizes[at] += size
	default:
		f.before[at] = append(f.before[at], i)
		at-- // the group may use what the step writes
	}
	for _, b := range s.Reads {
		f.used[b] = max(f.used[b], at)
	}
	f.p.overwritten(s, func(b int) { f.written[b], f.used[b] = max(f.written[b], at), max(f.used[b], at) })
	if f.Fence(s) {
		f.fence = at
	}
}

// merged returns the step that does what the members of a group do.
func (f *fusion[P]) merged(members []int) Step[P] {
	if len(members) == 1 {
		return f.p.Steps[members[0]]
	}
	var list []*Step[P]
	for _, i := range members {
		list = append(list, &f.p.Steps[i])
	}
	all := Step[P]{Instr: list[0].Instr, Payload: f.Merge(list)}
	for _, s := range list {
		all.Ops = append(all.Ops, s.ops()...)
		all.Reads, all.Writes = append(all.Reads, s.Reads...), append(all.Writes, s.Writes...)
		for _, q := range s.InPlace {
			// Another member may read the memory after this one has written it.
			if !slices.ContainsFunc(list, func(o *Step[P]) bool { return o != s && o.uses(q.Read) }) {
				all.InPlace = append(all.InPlace, q)
			}
		}
	}
	return all
}

func (s *Step[P]) uses(buf int) bool {
	return slices.Contains(s.Reads, buf) || slices.Contains(s.Writes, buf)
}
