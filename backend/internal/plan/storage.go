package plan

import (
	"slices"

	"github.com/loris-ml/loris/backend"
)

// findDonors notes which inputs the outputs may take the memory of: the first of each output's
// aliases that has its size.
func (p *Plan[P]) findDonors(o *Options[P]) {
	outputs := map[int]*Buffer{}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Output >= 0 {
			outputs[b.Output] = b
		}
	}
	for _, a := range o.Aliases {
		if a.Input < 0 || a.Input >= o.Inputs {
			continue
		}
		if b := outputs[a.Output]; b != nil && b.Donor < 0 && p.Buffers[a.Input].Bytes == b.Bytes {
			b.Donor = a.Input
		}
	}
}

// lifetimes finds the first write and the last use of each buffer.
func (p *Plan[P]) lifetimes() {
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, r := range s.Reads {
			p.Buffers[r].Last = i
		}
		for _, w := range s.Writes {
			b := &p.Buffers[w]
			if b.First < 0 {
				b.First = i
			}
			b.Last = i
		}
	}
	for i := range p.Buffers {
		if b := &p.Buffers[i]; b.Output >= 0 {
			b.Last = len(p.Steps)
		}
	}
}

// assign gives each written buffer a storage. A buffer takes over that of an operand whose last
// use is the step that writes the buffer first, if the step can work in place; other buffers get
// a storage of their own.
func (p *Plan[P]) assign() {
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, w := range s.Writes {
			b := &p.Buffers[w]
			if b.Storage >= 0 || b.Kind == Returned {
				continue
			}
			if !p.awaitsDonor(i, w) {
				b.Storage = p.takeOver(i, w)
			}
			if b.Storage < 0 {
				b.Storage = len(p.Storages)
				p.Storages = append(p.Storages, Storage{Bytes: b.Bytes, First: i, Output: -1, Donor: -1, Root: w})
			}
			st := &p.Storages[b.Storage]
			st.Last = max(st.Last, b.Last)
			if b.Output >= 0 {
				st.Output = b.Output
			}
		}
	}
}

// awaitsDonor reports whether buffer w, first written by step i, may have the memory of the input
// that it replaces. Then it must not take that of another operand, which would be kept instead.
func (p *Plan[P]) awaitsDonor(i, w int) bool {
	d := p.Buffers[w].Donor
	return d >= 0 && p.freeFor(i, Pair{w, d})
}

// freeFor reports whether step i may write over what the pair reads: nothing uses it any more, or
// the step itself does for the last time, in place.
func (p *Plan[P]) freeFor(i int, q Pair) bool {
	last := p.Buffers[q.Read].Last
	return last < i || last == i && slices.Contains(p.Steps[i].InPlace, q)
}

// takeOver returns the storage that buffer w takes over in step i, or -1.
func (p *Plan[P]) takeOver(i, w int) int {
	b := &p.Buffers[w]
	if b.Strided {
		return -1
	}
	for _, q := range p.Steps[i].InPlace {
		r := &p.Buffers[q.Read]
		if q.Write == w && r.Kind == Work && r.Last == i && r.Output < 0 && !r.taken && r.Bytes == b.Bytes {
			r.taken = true
			return r.Storage
		}
	}
	return -1
}

// donate lets an output take the memory of an input that is free when the storage of the output
// is first written. No two outputs take the same.
func (p *Plan[P]) donate(o *Options[P], a backend.Alias) {
	taken := slices.ContainsFunc(p.Storages, func(st Storage) bool { return st.Donor == a.Input })
	if a.Input < 0 || a.Input >= o.Inputs || taken {
		return
	}
	for i := range p.Storages {
		st := &p.Storages[i]
		if st.Output >= 0 && st.Output == a.Output && st.Bytes == p.Buffers[a.Input].Bytes && p.freeFor(st.First, Pair{st.Root, a.Input}) {
			st.Donor = a.Input
		}
	}
}
