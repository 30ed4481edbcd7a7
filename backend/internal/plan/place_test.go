package plan

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Storages are where a search through all that are in use puts them.
func TestPlace(t *testing.T) {
	const alignment = 64
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p Plan[int]
		for first := 0; len(p.Storages) < 60; first += r.IntN(3) {
			p.Storages = append(p.Storages, Storage{
				Bytes: r.IntN(5) * (1 + r.IntN(100)), First: first, Last: first + r.IntN(1+r.IntN(20)), Output: r.IntN(8) - 7,
			})
		}
		want := slices.Clone(p.Storages)
		size := search(want, alignment)
		p.place(alignment)
		if !slices.Equal(p.Storages, want) || p.Workspace != size {
			t.Fatalf("seed %d: %v in %d bytes, want %v in %d", seed, p.Storages, p.Workspace, want, size)
		}
	}
}

// search is place in as many steps as the square of the number of storages.
func search(all []Storage, alignment int) (size int) {
	var active []int // by offset
	for i := range all {
		st := &all[i]
		if st.Output >= 0 || st.Bytes == 0 {
			continue
		}
		active = slices.DeleteFunc(active, func(k int) bool { return all[k].Last < st.First })
		at, best, end := len(active), -1, 0
		for k, a := range active {
			o := &all[a]
			if gap := o.Offset - end; gap >= st.Bytes && (best < 0 || gap < best) {
				at, st.Offset, best = k, end, gap
			}
			end = (o.Offset + o.Bytes + alignment - 1) / alignment * alignment
		}
		if best < 0 {
			st.Offset = end
		}
		active = slices.Insert(active, at, i)
		size = max(size, st.Offset+st.Bytes)
	}
	return size
}
