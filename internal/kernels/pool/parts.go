package pool

import "github.com/loris-ml/loris/internal/kernels"

// manyElements is from how many elements of windows on what lies side by side is treated at once, where there
// are fewer than manyPlanes: more are transposed, so that they fill vectors. manyColumns is from how many
// columns a window is treated alone.
const manyElements, manyPlanes, manyColumns = 64, 16, 128

// fewestLanes, mostLanes bound how many columns of a window that is treated alone are lanes.
const fewestLanes, mostLanes = 16, 256

// inParts says that dense rows are split into parts, together of many elements: what is greatest is found first
// for each of some lanes, which lie side by side, then among the lanes of a window.
func (m *Max[T]) inParts() bool {
	return m.Windows[2] != nil && m.N*m.C < manyPlanes && m.XLayout.Spatial[2] == 1 && m.Kernel[0]*m.Kernel[1]*m.Kernel[2] >= manyElements
}

// parts computes rows of outputs lo..hi-1, those of one plane after the other.
func (m *Max[T]) parts(r *maxRow[T], lo, hi int) {
	for i := lo; i < hi; i++ {
		plane, o := i/(m.Out[0]*m.Out[1]), [3]int{i / m.Out[1] % m.Out[0], i % m.Out[1], 0}
		p := partRow[T]{Max: m, x: m.X[plane/m.C*m.XLayout.Batch+plane%m.C*m.XLayout.Channel:], depths: m.window(0, o[0]), rows: m.window(1, o[1])}
		alone := m.Kernel[2] >= manyColumns || m.Kernel[0]*m.Kernel[1] == 1
		if !alone {
			p.together(r)
		}
		for o[2] = range m.Out[2] {
			w := m.window(2, o[2])
			var best T
			var at int32
			if alone {
				best, at = p.alone(r, w)
			} else {
				best, at = p.among(r, w)
			}
			m.Values[offset(&m.ValuesLayout, plane/m.C, o)+plane%m.C*m.ValuesLayout.Channel] = best
			if m.Indices != nil {
				m.Indices[offset(&m.IndicesLayout, plane/m.C, o)+plane%m.C*m.IndicesLayout.Channel] = int64(at)
			}
		}
	}
}

// partRow is a row of outputs: the rows of the plane x that its windows have. Lanes are whole rows of the plane,
// or, where these adjoin, all of a depth.
type partRow[T kernels.Number] struct {
	*Max[T]
	x            []T
	depths, rows span
	lines        int // how many rows the lanes are
}

// together finds what is greatest in each lane.
func (p *partRow[T]) together(r *maxRow[T]) {
	step := p.rows.to - p.rows.from
	if p.XLayout.Spatial[1] != p.In[2] || p.Kernel[0] == 1 {
		step = 1
	}
	p.lines = step
	n, first := step*p.In[2], true
	r.best, r.at = grow(r.best, n), grow(r.at, n)
	for d := p.depths.from; d < p.depths.to; d++ {
		for h := p.rows.from; h < p.rows.to; h += step {
			x, index := p.x[d*p.XLayout.Spatial[0]+h*p.XLayout.Spatial[1]:][:n], int32((d*p.In[1]+h)*p.In[2])
			if first {
				start(r.best, r.at, x, index)
				first = false
				continue
			}
			greater(r.best, r.at, x, index)
		}
	}
}

// start is greater of the first elements.
func start[T kernels.Number](best []T, at []int32, x []T, index int32) {
	copy(best, x)
	for i := range at {
		at[i] = index
	}
}

// among returns what is greatest among the lanes that are columns of a window, and where it is.
func (p *partRow[T]) among(r *maxRow[T], w span) (T, int32) {
	best, at := r.best[w.from], r.at[w.from]+int32(w.from)
	for i := range p.lines {
		from := i*p.In[2] + w.from
		best, at = greatestLane(best, at, r.best[from:from+w.to-w.from], r.at[from:], int32(from))
	}
	return best, at
}

// alone is among of a window of which some columns at a time are lanes.
func (p *partRow[T]) alone(r *maxRow[T], w span) (T, int32) {
	n := min(max((w.to-w.from)/8&^(fewestLanes-1), fewestLanes), mostLanes, w.to-w.from)
	r.best, r.at = grow(r.best, n), grow(r.at, n)
	best, at, first := r.best, r.at, true
	for d := p.depths.from; d < p.depths.to; d++ {
		for h := p.rows.from; h < p.rows.to; h++ {
			x, index := p.x[d*p.XLayout.Spatial[0]+h*p.XLayout.Spatial[1]:], int32((d*p.In[1]+h)*p.In[2])
			for k := w.from; k < w.to; k += n {
				if first {
					start(best, at, x[k:], index+int32(k))
					first = false
					continue
				}
				lanes := min(n, w.to-k)
				greater(best[:lanes], at[:lanes], x[k:][:lanes], index+int32(k))
			}
		}
	}
	return greatestLane(best[0], at[0], best, at, 0)
}

// greatestLane takes the greatest of lanes over; that of lane i was found at[i] + first + i. The first place of
// equal ones counts, and the last of NaNs.
func greatestLane[T kernels.Number](best T, place int32, lanes []T, at []int32, first int32) (T, int32) {
	at = at[:len(lanes)]
	for i, v := range lanes {
		if v < best {
			continue
		}
		p := at[i] + first + int32(i)
		switch {
		case v > best, v != v && (best == best || p > place):
			best, place = v, p
		case v == best:
			place = min(place, p)
		}
	}
	return best, place
}
