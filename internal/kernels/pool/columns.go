package pool

import "github.com/loris-ml/loris/internal/kernels"

// Columns is the windows of planes of In rows and columns, padded with Pad zeros on each side, as columns:
// for each place in a window, row by row, the elements there of all windows.
type Columns struct {
	In, Kernel, Dilation, Pad, Stride, Windows [2]int
}

// inside returns which windows have place k of dimension d inside, lo..hi-1, and where that of window 0 is.
func (g *Columns) inside(d, k int) (lo, hi, first int) {
	first = k*g.Dilation[d] - g.Pad[d]
	lo = max(0, (g.Stride[d]-1-first)/g.Stride[d])
	if last := g.In[d] - 1 - first; last >= 0 {
		hi = min(g.Windows[d], last/g.Stride[d]+1)
	}
	return lo, hi, first
}

// Scratch returns how many elements of scratch memory ToImage takes.
func (g *Columns) Scratch() int {
	if g.adjoin() {
		return g.Windows[0] * g.In[1]
	}
	return g.In[1]
}

// adjoin reports whether rows of windows are as long as those of the plane and follow each other, as with padding
// that keeps the size: then all rows of a place in the windows are one line.
func (g *Columns) adjoin() bool {
	return g.Stride == [2]int{1, 1} && g.Windows[1] == g.In[1] && 2*g.edge() < g.In[1]
}

// edge returns how many columns at each side of the plane some places of windows do not reach.
func (g *Columns) edge() int { return max(g.Pad[1], (g.Kernel[1]-1)*g.Dilation[1]-g.Pad[1]) }

// ToImage sets a plane to the sums of what its columns have of each element. A row of the plane adds up
// rows of sums along the columns, each of which goes through round unless that is nil.
func ToImage[T float32 | float64](g *Columns, plane, columns, scratch []T, round func([]T)) {
	clear(plane)
	whole := g.adjoin()
	for i := range g.Kernel[0] {
		top, bottom, first := g.inside(0, i)
		if top >= bottom {
			continue
		}
		at := i * g.Kernel[1] * g.Windows[0]
		if whole {
			sums := scratch[:(bottom-top)*g.In[1]]
			addAdjoining(g, sums, columns[(at+top)*g.In[1]:])
			if round != nil {
				round(sums)
			}
			kernels.AddRow(plane[(first+top)*g.In[1]:][:len(sums)], sums)
			continue
		}
		for window := top; window < bottom; window++ {
			line := scratch[:g.In[1]]
			addColumns(g, line, columns[(at+window)*g.Windows[1]:])
			if round != nil {
				round(line)
			}
			kernels.AddRow(plane[(first+window*g.Stride[0])*g.In[1]:][:len(line)], line)
		}
	}
}

// addColumns sets a row of the plane to the sums of a row of windows, of which columns has the elements of
// the first place at its beginning and those of the others behind.
func addColumns[T float32 | float64](g *Columns, line, columns []T) {
	clear(line)
	for j := range g.Kernel[1] {
		lo, hi, at := g.inside(1, j)
		if lo >= hi {
			continue
		}
		row := columns[j*g.Windows[0]*g.Windows[1]:][lo:hi]
		if at += lo * g.Stride[1]; g.Stride[1] == 1 {
			kernels.AddRow(line[at:at+len(row)], row)
			continue
		}
		for _, v := range row {
			line[at] += v
			at += g.Stride[1]
		}
	}
}

// addAdjoining is addColumns of rows that follow each other. Places beyond one end of a row are added to the
// other end of the next, so the ends are computed again.
func addAdjoining[T float32 | float64](g *Columns, rows, columns []T) {
	clear(rows)
	width, place, n := g.In[1], g.Windows[0]*g.In[1], len(rows)
	for j := range g.Kernel[1] {
		row := columns[j*place:][:n]
		if at := j*g.Dilation[1] - g.Pad[1]; at >= 0 {
			kernels.AddRow(rows[at:], row[:n-at])
		} else {
			kernels.AddRow(rows[:n+at], row[-at:])
		}
	}
	e := g.edge()
	for from := 0; from < n; from += width {
		for x := range 2 * e {
			if x >= e {
				x += width - 2*e
			}
			sum := T(0)
			for j := range g.Kernel[1] {
				if c := x - j*g.Dilation[1] + g.Pad[1]; uint(c) < uint(width) {
					sum += columns[j*place+from+c]
				}
			}
			rows[from+x] = sum
		}
	}
}
