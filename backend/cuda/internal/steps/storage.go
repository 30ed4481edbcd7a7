package steps

import (
	"slices"

	"github.com/loris-ml/loris/backend"
)

// storage is memory that buffers use one after another: a part of the workspace,
// or an output.
type storage struct {
	bytes       int
	first, last int // steps
	off         int // in the workspace
	output      int // or -1
	root        int // the buffer that was first
}

// sequence gives everything its place.
func (l *lowering) sequence() *Sequence {
	s := &Sequence{Constants: l.constants, Faults: l.faults, Returned: l.returned, Donors: make([]int, len(l.p.Returns))}
	for _, q := range l.p.Params {
		s.Inputs = append(s.Inputs, q.Shape)
	}
	for i, id := range l.p.Returns {
		s.Outputs = append(s.Outputs, l.p.Shape(id))
		s.Donors[i] = -1
	}
	l.lifetimes()
	l.findDonors()
	storages := l.assign()
	for _, a := range l.opt.Aliases {
		l.donate(s, storages, a)
	}
	s.Workspace = place(storages)
	for i := range l.steps {
		p := &l.steps[i]
		for _, o := range p.operands {
			r := l.ref(s, storages, o.buf)
			r.Offset += o.off
			p.Refs = append(p.Refs, r)
		}
		if p.work >= 0 {
			p.Work = l.ref(s, storages, p.work)
		}
		if p.Product != nil || p.Copy > 0 || p.Call != nil || p.Kernels != nil && len(p.Kernels.Launches) > 0 {
			s.Steps = append(s.Steps, p.Step)
		}
	}
	return s
}

// ref returns where a buffer is.
func (l *lowering) ref(s *Sequence, storages []storage, buf int) Ref {
	b := &l.bufs[buf]
	switch b.kind {
	case inputBuffer:
		return Ref{s.Input(b.input), 0}
	case constBuffer:
		return Ref{Constants, b.offset}
	case returnBuffer:
		return Ref{s.Return(b.input), 0}
	}
	st := &storages[b.storage]
	if st.output >= 0 {
		return Ref{s.Output(st.output), 0}
	}
	return Ref{Workspace, st.off}
}

// lifetimes finds the first and last uses of buffers. Results live on.
func (l *lowering) lifetimes() {
	for i := range l.steps {
		p := &l.steps[i]
		for k, o := range p.operands {
			b := &l.bufs[o.buf]
			if k < p.writes && b.first < 0 {
				b.first = i
			}
			b.last = i
		}
		if p.work >= 0 {
			l.bufs[p.work].first, l.bufs[p.work].last = i, i
		}
	}
	for i := range l.bufs {
		if l.bufs[i].output >= 0 {
			l.bufs[i].last = len(l.steps)
		}
	}
}

// findDonors notes which inputs the results may take the memory of.
func (l *lowering) findDonors() {
	for _, a := range l.opt.Aliases {
		if a.Input < 0 || a.Input >= len(l.p.Params) {
			continue
		}
		for i := range l.bufs {
			b := &l.bufs[i]
			if b.output >= 0 && b.output == a.Output && b.donor < 0 && l.bufs[a.Input].bytes == b.bytes {
				b.donor = a.Input
			}
		}
	}
}

// written lists the buffers that a step writes.
func (p *planned) written() (all []int) {
	for _, o := range p.operands[:p.writes] {
		all = append(all, o.buf)
	}
	if p.work >= 0 {
		all = append(all, p.work)
	}
	return all
}

// assign gives each written buffer a storage. A buffer takes over that of an
// operand which dies in the step where the buffer is made, if the step can write in
// place; the rest get one of their own.
func (l *lowering) assign() (storages []storage) {
	for i := range l.steps {
		p := &l.steps[i]
		for _, w := range p.written() {
			b := &l.bufs[w]
			if b.storage >= 0 {
				continue
			}
			if !l.hasDonor(i, w) {
				b.storage = l.takeOver(p, i, w)
			}
			if b.storage < 0 {
				b.storage = len(storages)
				storages = append(storages, storage{bytes: b.bytes, first: i, output: -1, root: w})
			}
			st := &storages[b.storage]
			st.last = max(st.last, b.last)
			if b.output >= 0 {
				st.output = b.output
			}
		}
	}
	return storages
}

// hasDonor reports whether buffer w, first written by step i, is a result that may
// have the memory of the input that it replaces.
func (l *lowering) hasDonor(i, w int) bool {
	d := l.bufs[w].donor
	return d >= 0 && (l.bufs[d].last < i || l.bufs[d].last == i && slices.Contains(l.steps[i].inPlace, pair{w, d}))
}

// takeOver returns the storage that buffer w can take over in step i, or -1.
func (l *lowering) takeOver(p *planned, i, w int) int {
	if l.bufs[w].apart {
		return -1
	}
	for _, q := range p.inPlace {
		r := &l.bufs[q.r]
		if q.w == w && r.kind == workBuffer && r.last == i && r.output < 0 && !r.taken && r.bytes == l.bufs[w].bytes {
			r.taken = true
			return r.storage
		}
	}
	return -1
}

// donate lets an output take the memory of an input that is dead when the output is
// first written, or dies in that step if it can write in place.
func (l *lowering) donate(s *Sequence, storages []storage, a backend.Alias) {
	if a.Input < 0 || a.Input >= len(l.p.Params) || slices.Contains(s.Donors, a.Input) {
		return
	}
	in := &l.bufs[a.Input]
	for i := range storages {
		st := &storages[i]
		if st.output < 0 || st.output != a.Output || st.bytes != in.bytes {
			continue
		}
		if in.last < st.first || in.last == st.first && slices.Contains(l.steps[st.first].inPlace, pair{st.root, a.Input}) {
			s.Donors[a.Output] = a.Input
		}
	}
}

// place lays the storages that are not outputs out in the workspace: each in the
// smallest gap between those that are in use when it is first written. It returns
// the bytes of all.
func place(storages []storage) (total int) {
	var active []int // by offset
	for i := range storages {
		st := &storages[i]
		if st.output >= 0 || st.bytes == 0 {
			continue
		}
		active = slices.DeleteFunc(active, func(k int) bool { return storages[k].last < st.first })
		k, off, best, end := len(active), 0, -1, 0
		for j, a := range active {
			o := &storages[a]
			if gap := o.off - end; gap >= st.bytes && (best < 0 || gap < best) {
				k, off, best = j, end, gap
			}
			end = (o.off + o.bytes + Alignment - 1) / Alignment * Alignment
		}
		if best < 0 {
			off = end
		}
		st.off = off
		active = slices.Insert(active, k, i)
		total = max(total, off+st.bytes)
	}
	return total
}
