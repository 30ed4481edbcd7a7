package cpu

import (
	"slices"

	"github.com/loris-ml/loris/backend"
)

// storage is memory that buffers use one after another: a part of the
// workspace, or an output.
type storage struct {
	bytes  int
	first  int // the steps from the first write
	last   int // to the last use
	off    int // in the workspace
	output int // or -1
	donor  int // the parameter whose memory the output may take, or -1
	root   int // the buffer that was first
}

// layout is the memory plan of a model.
type layout struct {
	storages  []storage
	workspace int // bytes
}

// lineBytes is the alignment of everything in the workspace: a cache line.
const lineBytes = 64

// assign gives each written buffer a storage. A buffer takes over that of an
// operand which dies in the step where the buffer is made, if the step can
// write in place; the rest get one of their own.
func (l *lowering) assign(aliases []backend.Alias) *layout {
	lay := &layout{}
	for i := range l.steps {
		s := &l.steps[i]
		for _, w := range s.writes {
			b := &l.bufs[w]
			if b.storage >= 0 {
				continue
			}
			if !l.hasDonor(i, w) {
				b.storage = l.takeOver(s, i, w)
			}
			if b.storage < 0 {
				b.storage = len(lay.storages)
				lay.storages = append(lay.storages, storage{bytes: b.bytes, first: i, output: -1, donor: -1, root: w})
			}
			st := &lay.storages[b.storage]
			st.last = max(st.last, b.last)
			if b.output >= 0 {
				st.output = b.output
			}
		}
	}
	for _, a := range aliases {
		lay.donate(l, a)
	}
	lay.place()
	return lay
}

// hasDonor reports whether buffer w, first written by step i, is a result that may
// have the memory of the parameter that it replaces. Then it must not have that
// of another operand, which would be kept instead.
func (l *lowering) hasDonor(i, w int) bool {
	d := l.bufs[w].donor
	return d >= 0 && (l.bufs[d].last < i || l.bufs[d].last == i && slices.Contains(l.steps[i].inPlace, pair{w, d}))
}

// takeOver returns the storage that buffer w can take over in step i, or -1.
func (l *lowering) takeOver(s *step, i, w int) int {
	for _, p := range s.inPlace {
		r := &l.bufs[p.r]
		if p.w == w && r.kind == workBuffer && r.last == i && r.output < 0 && !r.taken && r.bytes == l.bufs[w].bytes {
			r.taken = true
			return r.storage
		}
	}
	return -1
}

// donate lets an output take the memory of a parameter, if the parameter is
// dead when the output's storage is first written, or dies in that step and the
// step can write in place.
func (lay *layout) donate(l *lowering, a backend.Alias) {
	if a.Input < 0 || a.Input >= len(l.p.Params) {
		return
	}
	for i := range lay.storages {
		st := &lay.storages[i]
		if st.donor == a.Input {
			return
		}
	}
	p := &l.bufs[a.Input]
	for i := range lay.storages {
		st := &lay.storages[i]
		if st.output < 0 || st.output != a.Output || st.bytes != p.bytes {
			continue
		}
		if p.last < st.first || (p.last == st.first && slices.Contains(l.steps[st.first].inPlace, pair{st.root, a.Input})) {
			st.donor = a.Input
		}
		return
	}
}

// place lays the storages that are not outputs out in the workspace: each in
// the smallest gap between those that are in use when it is first written.
func (lay *layout) place() {
	var active []int // by offset
	for i := range lay.storages {
		st := &lay.storages[i]
		if st.output >= 0 || st.bytes == 0 {
			continue
		}
		size := (st.bytes + lineBytes - 1) &^ (lineBytes - 1)
		active = slices.DeleteFunc(active, func(k int) bool { return lay.storages[k].last < st.first })
		at, off, best := len(active), 0, -1
		end := 0
		for k, a := range active {
			o := &lay.storages[a]
			if gap := o.off - end; gap >= size && (best < 0 || gap < best) {
				at, off, best = k, end, gap
			}
			end = o.off + (o.bytes+lineBytes-1)&^(lineBytes-1)
		}
		if best < 0 {
			off = end
		}
		st.off = off
		active = slices.Insert(active, at, i)
		lay.workspace = max(lay.workspace, off+size)
	}
}
