package pool

import "github.com/loris-ml/loris/internal/kernels"

// sumsBlock is how many sums are computed together, about: so many that loops pay, and few enough for the
// first-level cache.
const sumsBlock = 4096

// Sums sets dst to the sums of windows of planes one after another, dense. Each adds up its elements in the
// order of their places. Rows of windows follow each other, so that the elements of a place are one line, with
// a few between the rows that are no windows; a line goes on across small planes. Planes with padding are
// padded in scratch memory. Columns are split by their remainders by the stride, so that the windows of a row
// adjoin; of rows and depths, those where no window begins are computed for nothing.
func Sums[T float32 | float64](w *Windows, dst, src []T) {
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	if out == 0 {
		return
	}
	s := sums[T]{Windows: w}
	for d := range s.wide {
		s.wide[d] = (w.Out[d]-1)*w.Stride[d] + w.Kernel[d]
	}
	s.wide[2] = (s.wide[2] + w.Stride[2] - 1) / w.Stride[2] * w.Stride[2]
	s.row = s.wide[2] / w.Stride[2]
	size := s.wide[0] * s.wide[1] * s.wide[2]
	together := min(max(sumsBlock/size, 1), len(dst)/out)
	var padded []T
	if s.wide != w.In || w.Pad != [3]int{} {
		padded = make([]T, together*size)
	}
	for ; len(dst) >= out; dst, src = dst[together*out:], src[together*in:] {
		together = min(together, len(dst)/out)
		planes := src[:together*in]
		if padded != nil {
			planes = padded[:together*size]
			for i := range together {
				padPlane(w, planes[i*size:][:size], src[i*in:][:in], s.wide)
			}
		}
		if together > 1 {
			s.small(dst, planes, together)
		} else {
			s.large(dst, planes)
		}
	}
}

// sums is the state of Sums: wide are the positions that windows have, a multiple of the stride of columns,
// and row is how many of a row have the same remainder by that stride.
type sums[T float32 | float64] struct {
	*Windows
	wide        [3]int
	row         int
	line, parts []T
}

// places is where the elements of windows are: that of place k of the first window is k[0]·depth +
// k[2]%stride·part + k[1]·row + k[2]/stride.
type places[T float32 | float64] struct {
	data        []T
	depth, part int
}

// split returns rows with their columns split by remainders.
func (s *sums[T]) split(rows []T) []T {
	if s.Stride[2] == 1 {
		return rows
	}
	s.parts = grow(s.parts, len(rows))
	split(s.parts, rows, s.Stride[2], len(rows)/s.Stride[2])
	return s.parts
}

// small computes planes together.
func (s *sums[T]) small(dst, planes []T, together int) {
	part := len(planes) / s.Stride[2]
	size, depth := part/together, s.wide[1]*s.row
	s.line = grow(s.line, part-size+(s.Out[0]-1)*s.Stride[0]*depth+s.rowsLine(s.Out[1]))
	s.add(s.line, places[T]{s.split(planes), depth, part})
	for i := range together {
		for d := range s.Out[0] {
			s.take(dst[(i*s.Out[0]+d)*s.Out[1]*s.Out[2]:], s.line[i*size+d*s.Stride[0]*depth:], s.Out[1])
		}
	}
}

// large computes some rows at a time of a plane.
func (s *sums[T]) large(dst, plane []T) {
	rows := min(max(sumsBlock/(s.row*s.Stride[1]), 1), s.Out[1])
	for d := range s.Out[0] {
		for from := 0; from < s.Out[1]; from += rows {
			n := min(rows, s.Out[1]-from)
			s.line = grow(s.line, s.rowsLine(n))
			s.add(s.line, s.strip(plane[(d*s.Stride[0]*s.wide[1]+from*s.Stride[1])*s.wide[2]:], n))
			s.take(dst[(d*s.Out[1]+from)*s.Out[2]:], s.line, n)
		}
	}
}

// strip returns the places of n rows of windows that begin where plane does.
func (s *sums[T]) strip(plane []T, n int) places[T] {
	depth := s.wide[1] * s.wide[2]
	if s.Stride[2] == 1 {
		return places[T]{plane, depth, 0}
	}
	size := ((n-1)*s.Stride[1] + s.Kernel[1]) * s.wide[2]
	s.parts = grow(s.parts, s.Kernel[0]*size)
	for k := range s.Kernel[0] {
		split(s.parts[k*size:][:size], plane[k*depth:][:size], s.Stride[2], size/s.Stride[2])
	}
	return places[T]{s.parts, size, size / s.Stride[2]}
}

// rowsLine returns how long a line of n rows of windows is.
func (s *sums[T]) rowsLine(n int) int { return (n-1)*s.Stride[1]*s.row + s.Out[2] }

// take copies n rows of windows out of a line.
func (s *sums[T]) take(dst, line []T, n int) {
	for i := range n {
		copy(dst[i*s.Out[2]:][:s.Out[2]], line[i*s.Stride[1]*s.row:])
	}
}

// add sets a line to the sums of the windows that begin where the places do and behind them.
func (s *sums[T]) add(line []T, at places[T]) {
	clear(line)
	for k0 := range s.Kernel[0] {
		for k1 := range s.Kernel[1] {
			for k2 := range s.Kernel[2] {
				i := k0*at.depth + k2%s.Stride[2]*at.part + k1*s.row + k2/s.Stride[2]
				kernels.AddRow(line, at.data[i:][:len(line)])
			}
		}
	}
}

// padPlane copies the positions of a plane that windows have, with zeros outside.
func padPlane[T float32 | float64](w *Windows, dst, src []T, wide [3]int) {
	clear(dst)
	left, n := w.Pad[2], min(w.In[2], wide[2]-w.Pad[2])
	for d := range min(w.In[0], wide[0]-w.Pad[0]) {
		for h := range min(w.In[1], wide[1]-w.Pad[1]) {
			copy(dst[((d+w.Pad[0])*wide[1]+h+w.Pad[1])*wide[2]+left:][:max(n, 0)], src[(d*w.In[1]+h)*w.In[2]:])
		}
	}
}
