package pool

import (
	"sync"

	"github.com/loris-ml/loris/internal/kernels"
)

// partsElements is how many elements of padded windows are treated together, about, and mostPartsElements of how
// many a plane may be: the parts stay in the second-level cache.
const partsElements, mostPartsElements = 2 << 10, 32 << 10

// spreading is the state of spreadParts. Position p of a dimension is the part (p+Pad) mod Stride and there the
// element h = (p+Pad) / Stride, which windows h, h−1, … reach: as many as before and one more. So wide windows of
// a dimension have zeros in front of them, and as many behind as elements lie beyond the last window.
type spreading[T float32 | float64] struct {
	*Windows
	before, wide  [3]int
	padded, parts []T
	part          int   // the elements of one part
	rows          []int // where in the parts each row of a plane begins
}

var spreadMemory sync.Pool // of *spreading[T] for any T

// spreadParts is Spread by parts of the positions, those of one remainder by the stride: the windows at a place
// that is in these adjoin over all rows and planes, as the positions do. It reports whether planes are small
// enough.
func spreadParts[T float32 | float64](w *Windows, dst, src []T) bool {
	s, ok := spreadMemory.Get().(*spreading[T])
	if !ok {
		s = new(spreading[T])
	}
	defer spreadMemory.Put(s)
	s.Windows = w
	size, apart := 1, 1
	for d := range w.In {
		s.before[d] = (w.Kernel[d] - 1) / w.Stride[d]
		s.wide[d] = s.before[d] + max((w.In[d]-1+w.Pad[d])/w.Stride[d]+1, w.Out[d])
		size *= s.wide[d]
		apart *= w.Stride[d]
	}
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	if size*apart > mostPartsElements || in*out == 0 {
		return false
	}
	together := max(partsElements/size, 1)
	s.padded = grow(s.padded, together*size)
	clear(s.padded)
	for ; len(src) >= out; dst, src = dst[together*in:], src[together*out:] {
		together = min(together, len(src)/out)
		s.pad(src, together, size)
		s.part = together*size - s.place(s.before)
		s.parts = grow(s.parts, apart*s.part)
		s.add()
		s.take(dst, together, size)
	}
	return true
}

// place returns where an element of a padded plane is.
func (s *spreading[T]) place(at [3]int) int { return (at[0]*s.wide[1]+at[1])*s.wide[2] + at[2] }

// pad copies planes of windows between their zeros.
func (s *spreading[T]) pad(src []T, planes, size int) {
	n := s.Out[2]
	for p := range planes {
		for d := range s.Out[0] {
			for h := range s.Out[1] {
				at := p*size + s.place([3]int{s.before[0] + d, s.before[1] + h, s.before[2]})
				copy(s.padded[at:][:n], src[((p*s.Out[0]+d)*s.Out[1]+h)*n:])
			}
		}
	}
}

// add sets the parts to the sums of their windows, in the order of the places in these.
func (s *spreading[T]) add() {
	clear(s.parts)
	for k0 := range s.Kernel[0] {
		for k1 := range s.Kernel[1] {
			for k2 := range s.Kernel[2] {
				k, back := [3]int{k0, k1, k2}, [3]int{}
				for d := range k {
					back[d] = s.before[d] - k[d]/s.Stride[d]
				}
				kernels.AddRow(s.of(k), s.padded[s.place(back):][:s.part])
			}
		}
	}
}

// of returns the part of the positions with the remainders of k.
func (s *spreading[T]) of(k [3]int) []T {
	i := (k[0]%s.Stride[0]*s.Stride[1]+k[1]%s.Stride[1])*s.Stride[2] + k[2]%s.Stride[2]
	return s.parts[i*s.part:][:s.part]
}

// places sets rows to where the elements of the rows of a plane begin, those of the first columns' part.
func (s *spreading[T]) places() {
	s.rows = s.rows[:0]
	for d := range s.In[0] {
		for h := range s.In[1] {
			at := [3]int{d + s.Pad[0], h + s.Pad[1], 0}
			part := (at[0]%s.Stride[0]*s.Stride[1] + at[1]%s.Stride[1]) * s.Stride[2]
			s.rows = append(s.rows, part*s.part+s.place([3]int{at[0] / s.Stride[0], at[1] / s.Stride[1], 0}))
		}
	}
}

// take puts together planes of size elements each in the parts.
func (s *spreading[T]) take(dst []T, planes, size int) {
	n := s.In[2]
	s.places()
	for i := range planes {
		for _, from := range s.rows {
			interleave(dst[:n], s.parts[i*size+from:], s.part, s.Stride[2], s.Pad[2])
			dst = dst[n:]
		}
	}
}

// interleave sets element p of a row to that of part (p+pad) mod by; parts begin so many elements apart.
func interleave[T float32 | float64](row, parts []T, apart, by, pad int) {
	switch by {
	case 1:
		copy(row, parts[pad:])
	case 2:
		if pad%2 == 1 {
			row[0] = parts[apart+pad/2]
			row, pad = row[1:], pad+1
		}
		even, odd := parts[pad/2:], parts[apart+pad/2:]
		i := 0
		for ; len(row) >= 2 && i < len(even) && i < len(odd); row, i = row[2:], i+1 {
			row[0], row[1] = even[i], odd[i]
		}
		if len(row) == 1 {
			row[0] = even[i]
		}
	default:
		for first := range min(by, len(row)) {
			part := parts[(first+pad)%by*apart+(first+pad)/by:]
			for i, p := 0, first; p < len(row); i, p = i+1, p+by {
				row[p] = part[i]
			}
		}
	}
}
