package pool

import (
	"sync"

	"github.com/loris-ml/loris/internal/kernels"
)

// sumsBlock is how many sums are computed together, about: so many that loops pay, and few enough for the
// first-level cache.
const sumsBlock = 4096

// Sums sets dst to the sums of windows of planes one after another, dense. Each adds up its elements along
// depths, then these sums along rows, then along columns. Rows of windows follow each other, so that the elements of a place are one line, with
// a few between the rows that are no windows; a line goes on across small planes. Planes with padding are
// padded in scratch memory. Columns are split by their remainders by the stride, so that the windows of a row
// adjoin; of rows and depths, those where no window begins are computed for nothing.
func Sums[T float32 | float64](w *Windows, dst, src []T) {
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	if out == 0 {
		return
	}
	s, ok := sumsMemory.Get().(*sums[T])
	if !ok {
		s = new(sums[T])
	}
	defer sumsMemory.Put(s)
	s.Windows = w
	for d := range s.wide {
		s.wide[d] = (w.Out[d]-1)*w.Stride[d] + w.Kernel[d]
		if w.Pad[d] == 0 && (d < 2 || w.In[d]%w.Stride[d] == 0) {
			s.wide[d] = max(s.wide[d], w.In[d]) // what no window has need not be cut off
		}
	}
	s.wide[2] = (s.wide[2] + w.Stride[2] - 1) / w.Stride[2] * w.Stride[2]
	s.row = s.wide[2] / w.Stride[2]
	size := s.wide[0] * s.wide[1] * s.wide[2]
	together := min(max(sumsBlock/size, 1), len(dst)/out)
	var padded []T
	if s.wide != w.In || w.Pad != [3]int{} {
		s.padded = grow(s.padded, together*size)
		padded = s.padded
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
	wide                             [3]int
	row                              int
	line, depths, rows, part, padded []T // scratch memory, as large as it was needed
}

var sumsMemory sync.Pool // of *sums[T] for any T

// small computes planes together.
func (s *sums[T]) small(dst, planes []T, together int) {
	size, depth := len(planes)/together/s.Stride[2], s.wide[1]*s.row
	line := s.add(planes, s.wide[1]*s.wide[2], (together-1)*size+(s.Out[0]-1)*s.Stride[0]*depth+s.rowsLine(s.Out[1]))
	for i := range together {
		for d := range s.Out[0] {
			s.take(dst[(i*s.Out[0]+d)*s.Out[1]*s.Out[2]:], line[i*size+d*s.Stride[0]*depth:], s.Out[1])
		}
	}
}

// large computes some rows at a time of a plane.
func (s *sums[T]) large(dst, plane []T) {
	rows := min(max(sumsBlock/(s.row*s.Stride[1]), 1), s.Out[1])
	depth := s.wide[1] * s.wide[2]
	for d := range s.Out[0] {
		for from := 0; from < s.Out[1]; from += rows {
			n := min(rows, s.Out[1]-from)
			line := s.add(plane[(d*s.Stride[0]*s.wide[1]+from*s.Stride[1])*s.wide[2]:], depth, s.rowsLine(n))
			s.take(dst[(d*s.Out[1]+from)*s.Out[2]:], line, n)
		}
	}
}

// rowsLine returns how long a line of n rows of windows is.
func (s *sums[T]) rowsLine(n int) int { return (n-1)*s.Stride[1]*s.row + s.Out[2] }

// take copies n rows of windows out of a line.
func (s *sums[T]) take(dst, line []T, n int) {
	down := s.Stride[1] * s.row
	if s.Out[2] == 4 {
		for i := range n {
			*(*[4]T)(dst[4*i:]) = *(*[4]T)(line[i*down:])
		}
		return
	}
	for i := range n {
		copy(dst[i*s.Out[2]:][:s.Out[2]], line[i*down:])
	}
}

// add returns the sums of the n windows that begin in the first rows of data and behind them, by remainders of
// columns: those along depths, of which one is so many elements from the next, then of these along rows, then
// along columns.
func (s *sums[T]) add(data []T, depth, n int) []T {
	k, by := s.Kernel, s.Stride[2]
	ends := (n + (k[2]-1)/by) * by // of columns with all remainders
	if k[0] > 1 {
		s.depths = grow(s.depths, ends+(k[1]-1)*s.wide[2])
		data = addUp(s.depths, data, k[0], depth)
	}
	if k[1] > 1 {
		s.rows = grow(s.rows, ends)
		data = addUp(s.rows, data, k[1], s.wide[2])
	}
	part := 0
	if by > 1 {
		part = ends / by
		s.part = grow(s.part, ends)
		split(s.part, data[:ends], by, part)
		data = s.part
	}
	s.line = grow(s.line, n)
	clear(s.line)
	for k2 := range k[2] {
		kernels.AddRow(s.line, data[k2%by*part+k2/by:][:n])
	}
	return s.line
}

// addUp sets dst to the sums of n elements of src each, from step elements apart, and returns it.
func addUp[T float32 | float64](dst, src []T, n, step int) []T {
	copy(dst, src)
	for k := 1; k < n; k++ {
		kernels.AddRow(dst, src[k*step:][:len(dst)])
	}
	return dst
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
