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

// ToImage sets a plane to the sums of what its columns have of each element. A row of the plane adds up
// rows of sums along the columns, each of which goes through round unless that is nil; line is scratch
// memory of one row.
func ToImage[T float32 | float64](g *Columns, plane, columns, line []T, round func([]T)) {
	clear(plane)
	width := g.In[1]
	for i := range g.Kernel[0] {
		top, bottom, first := g.inside(0, i)
		for window := top; window < bottom; window++ {
			clear(line)
			for j := range g.Kernel[1] {
				lo, hi, at := g.inside(1, j)
				if lo >= hi {
					continue
				}
				row := columns[((i*g.Kernel[1]+j)*g.Windows[0]+window)*g.Windows[1]:][lo:hi]
				if at += lo * g.Stride[1]; g.Stride[1] == 1 {
					kernels.AddRow(line[at:at+len(row)], row)
					continue
				}
				for _, v := range row {
					line[at] += v
					at += g.Stride[1]
				}
			}
			if round != nil {
				round(line)
			}
			kernels.AddRow(plane[(first+window*g.Stride[0])*width:][:width], line)
		}
	}
}
