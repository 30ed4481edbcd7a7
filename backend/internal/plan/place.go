package plan

import (
	"cmp"
	"slices"
	"sort"
)

// place lays the storages that are no outputs out in the workspace: each in the smallest gap
// between those that are in use when it is first written, the first one of several.
func (p *Plan[P]) place(alignment int) {
	var placed []int // in the order of their first writes, as Storages are
	for i := range p.Storages {
		if st := &p.Storages[i]; st.Output < 0 && st.Bytes > 0 {
			placed = append(placed, i)
		}
	}
	ends := slices.Clone(placed)
	slices.SortStableFunc(ends, func(a, b int) int { return cmp.Compare(p.Storages[a].Last, p.Storages[b].Last) })
	var free gaps
	extent := func(st *Storage) int { return (st.Bytes + alignment - 1) / alignment * alignment }
	for _, i := range placed {
		st := &p.Storages[i]
		for len(ends) > 0 && p.Storages[ends[0]].Last < st.First {
			over := &p.Storages[ends[0]]
			free.release(over.Offset, over.Offset+extent(over))
			ends = ends[1:]
		}
		st.Offset = free.take(extent(st))
		p.Workspace = max(p.Workspace, st.Offset+st.Bytes)
	}
}

// gaps are the free ranges of a workspace, in order and apart from each other, and the end of what
// is in use, behind which all is free. The zero value is an empty workspace.
type gaps struct {
	ranges []gap
	end    int
}

type gap struct{ from, to int }

// take returns the place of n bytes, which are in use from then on: the smallest gap that has them,
// the first one of several, or the end.
func (g *gaps) take(n int) int {
	best := -1
	for i, r := range g.ranges {
		if size := r.to - r.from; size >= n && (best < 0 || size < g.ranges[best].to-g.ranges[best].from) {
			best = i
		}
	}
	if best < 0 {
		g.end += n
		return g.end - n
	}
	r := &g.ranges[best]
	at := r.from
	if r.from += n; r.from == r.to {
		g.ranges = slices.Delete(g.ranges, best, best+1)
	}
	return at
}

// release frees a range that is in use.
func (g *gaps) release(from, to int) {
	i := sort.Search(len(g.ranges), func(i int) bool { return g.ranges[i].from >= to })
	j := i
	if i > 0 && g.ranges[i-1].to == from {
		i--
		from = g.ranges[i].from
	}
	if j < len(g.ranges) && g.ranges[j].from == to {
		to = g.ranges[j].to
		j++
	}
	if to == g.end {
		g.end = from
		g.ranges = slices.Delete(g.ranges, i, j)
		return
	}
	g.ranges = slices.Replace(g.ranges, i, j, gap{from, to})
}
