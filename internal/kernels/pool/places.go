package pool

import (
	"sync"

	"github.com/loris-ml/loris/internal/kernels"
)

// Placed is windows of planes of In elements that begin anywhere, Out of them along each dimension.
type Placed struct {
	In, Kernel, Out [3]int
	offsets         []int // how far the elements of a window lie behind its first one, row by row
}

// NewPlaced returns such windows.
func NewPlaced(in, kernel, out [3]int) *Placed {
	w := &Placed{In: in, Kernel: kernel, Out: out}
	for i := range kernel[0] {
		for j := range kernel[1] {
			for k := range kernel[2] {
				w.offsets = append(w.offsets, (i*in[1]+j)*in[2]+k)
			}
		}
	}
	return w
}

// placedTogether is how many windows are treated at once: so many that loops pay, and few enough for the
// first-level cache.
const placedTogether = 256

// placedRow is the scratch memory of one goroutine: of some windows where they begin, the greatest element so
// far and how far it is behind that, and their elements of one place.
type placedRow[T kernels.Number] struct {
	first, at  [placedTogether]int32
	best, line [placedTogether]T
	starts     []int
	along      [3][]int // starts by dimension
}

var placedRows sync.Pool // of *placedRow[T] for any T

// MaximaOf finds the greatest element, the first of equal ones or NaNs, of the windows of planes lo..hi-1 of x,
// and where in its plane it is. For each plane begin sets where windows begin along each dimension.
func MaximaOf[T kernels.Number](w *Placed, values []T, indices []int64, x []T, begin func(plane int, starts *[3][]int), lo, hi int) {
	r, ok := placedRows.Get().(*placedRow[T])
	if !ok {
		r = new(placedRow[T])
	}
	defer placedRows.Put(r)
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	r.starts = grow(r.starts, w.Out[0]+w.Out[1]+w.Out[2])
	depths, rest := r.starts[:w.Out[0]], r.starts[w.Out[0]:]
	r.along = [3][]int{depths, rest[:w.Out[1]], rest[w.Out[1]:]}
	for p := lo; p < hi; p++ {
		begin(p, &r.along)
		r.plane(w, values[p*out:][:out], indices[p*out:][:out], x[p*in:][:in])
	}
}

// plane finds those of one plane.
func (r *placedRow[T]) plane(w *Placed, values []T, indices []int64, x []T) {
	n := 0
	for _, d := range r.along[0] {
		for _, h := range r.along[1] {
			row := (d*w.In[1] + h) * w.In[2]
			for _, column := range r.along[2] {
				r.first[n] = int32(row + column)
				if n++; n == len(r.first) {
					r.find(w.offsets, values[:n], indices[:n], x)
					values, indices, n = values[n:], indices[n:], 0
				}
			}
		}
	}
	if n > 0 {
		r.find(w.offsets, values, indices, x)
	}
}

// find finds those of as many windows as values, place by place of their elements.
func (r *placedRow[T]) find(offsets []int, values []T, indices []int64, x []T) {
	n := len(values)
	first, best, line, at := r.first[:n], r.best[:n], r.line[:n], r.at[:n]
	clear(at)
	for i, f := range first {
		best[i] = x[f]
	}
	for _, off := range offsets[1:] {
		from := x[off:]
		for i, f := range first {
			line[i] = from[f]
		}
		greater(best, at, line, int32(off))
	}
	for i, f := range first {
		place, v := int(f+at[i]), best[i]
		if v != v { // it is the last one
			place = firstNaN(x, int(f), offsets)
			v = x[place]
		}
		values[i], indices[i] = v, int64(place)
	}
}

// firstNaN returns where the first NaN of the window that begins at first is.
func firstNaN[T kernels.Number](x []T, first int, offsets []int) int {
	for _, off := range offsets {
		if v := x[first+off]; v != v {
			return first + off
		}
	}
	return first
}
