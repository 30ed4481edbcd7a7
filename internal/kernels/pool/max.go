package pool

import (
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// Max is one run of pooling by the greatest element: Values gets it, and
// Indices, unless nil, where in the plane the first of such is, counted
// row by row; a NaN, the last one, is greatest. A window that is all padding
// gives Least and index 0.
type Max[T kernels.Number] struct {
	Geometry
	Limiter                              *parallel.Limiter // bounds the goroutines of Run; nil stands for any
	X, Values                            []T
	Indices                              []int64
	XLayout, ValuesLayout, IndicesLayout Layout
	Least                                T
}

// Units returns the number of independent units of work: rows of outputs.
func (m *Max[T]) Units() int { return m.rows() }

// Run computes all units on the goroutines that the Limiter allows.
func (m *Max[T]) Run() { m.Limiter.For(m.Units(), m.grain(), m.Do) }

func (m *Max[T]) grain() int {
	return 1 + 1<<15/max(m.C*m.Out[2]*m.Kernel[0]*m.Kernel[1]*m.Kernel[2], 1)
}

// maxRow is the scratch memory of one goroutine: a row of outputs, all channels
// of a position together, and rows of inputs so.
type maxRow[T kernels.Number] struct {
	best  []T
	at    []int32
	wide  []int64
	rows  []T
	first []int // the input row, of all planes, that each part of rows holds, or -1
}

var maxRows sync.Pool // of *maxRow[T] for any T

// Do computes units lo..hi-1.
func (m *Max[T]) Do(lo, hi int) {
	r, ok := maxRows.Get().(*maxRow[T])
	if !ok {
		r = new(maxRow[T])
	}
	defer maxRows.Put(r)
	r.best, r.at = grow(r.best, m.Out[2]*m.C), grow(r.at, m.Out[2]*m.C)
	r.first = r.first[:0]
	for i := lo; i < hi; i++ {
		m.row(r, i/(m.Out[0]*m.Out[1]), [3]int{i / m.Out[1] % m.Out[0], i % m.Out[1], 0})
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (m *Max[T]) row(r *maxRow[T], n int, o [3]int) {
	for i := range r.best {
		r.best[i], r.at[i] = m.Least, -1
	}
	w0, w1 := m.window(0, o[0]), m.window(1, o[1])
	for i0 := w0.from; i0 < w0.to; i0 += w0.step {
		for i1 := w1.from; i1 < w1.to; i1 += w1.step {
			x, col, channel := m.input(r, n, i0, i1)
			for o2 := range m.Out[2] {
				w2 := m.window(2, o2)
				best, at := r.best[o2*m.C:][:m.C], r.at[o2*m.C:][:m.C]
				for i2 := w2.from; i2 < w2.to; i2 += w2.step {
					index := int32((i0*m.In[1]+i1)*m.In[2] + i2)
					if channel == 1 {
						greater(best, at, x[i2*col:][:m.C], index)
						continue
					}
					for c := range best {
						if v := x[i2*col+c*channel]; v > best[c] || v != v || at[c] < 0 {
							best[c], at[c] = v, index
						}
					}
				}
			}
		}
	}
	m.store(r, n, o)
}

// greater takes over what is greater than the best so far, or the first.
func greater[T kernels.Number](best []T, at []int32, x []T, index int32) {
	if b, ok := any(best).([]float32); ok {
		vec.Greater(b, at, any(x).([]float32), index)
		return
	}
	at, x = at[:len(best)], x[:len(best)]
	for c, v := range x {
		if v > best[c] || v != v || at[c] < 0 {
			best[c], at[c] = v, index
		}
	}
}

// input returns a row of inputs and the strides of its columns and channels:
// the row itself, or a transposed copy if its planes are dense.
func (m *Max[T]) input(r *maxRow[T], n, i0, i1 int) (x []T, col, channel int) {
	l := &m.XLayout
	x = m.X[offset(l, n, [3]int{i0, i1, 0}):]
	f, ok := any(x).([]float32)
	if !ok || l.Spatial[2] != 1 || l.Channel == 1 || m.C < 8 {
		return x, l.Spatial[2], l.Channel
	}
	// As many copies are kept as windows have rows, each in the place of its row.
	size := m.In[2] * m.C
	slots := m.Kernel[1]*m.Dilation[1] + m.Stride[1]
	row := (n*m.In[0]+i0)*m.In[1] + i1
	if len(r.first) != slots {
		r.first, r.rows = grow(r.first, slots), grow(r.rows, slots*size)
		for i := range r.first {
			r.first[i] = -1
		}
	}
	slot := row % slots
	part := r.rows[slot*size:][:size]
	if r.first[slot] != row {
		gemm.Transpose(any(part).([]float32), m.C, f, l.Channel, m.C, m.In[2])
		r.first[slot] = row
	}
	return part, m.C, 1
}

// store writes a row of outputs.
func (m *Max[T]) store(r *maxRow[T], n int, o [3]int) {
	r.wide = grow(r.wide, len(r.at))
	for i, v := range r.at {
		r.wide[i] = max(int64(v), 0)
	}
	to := offset(&m.ValuesLayout, n, o)
	put(m.Values[to:], r.best, m.Out[2], m.C, &m.ValuesLayout)
	if m.Indices != nil {
		to = offset(&m.IndicesLayout, n, o)
		put(m.Indices[to:], r.wide, m.Out[2], m.C, &m.IndicesLayout)
	}
}

// put stores cols positions of n channels each.
func put[T any](dst, src []T, cols, n int, l *Layout) {
	switch {
	case l.Channel == 1:
		for i := range cols {
			copy(dst[i*l.Spatial[2]:][:n], src[i*n:])
		}
	case l.Spatial[2] == 1 && unsafe.Sizeof(src[0]) == 8:
		gemm.Transpose(moved[float64](dst), l.Channel, moved[float64](src), n, cols, n)
	case l.Spatial[2] == 1 && unsafe.Sizeof(src[0]) == 4:
		gemm.Transpose(moved[float32](dst), l.Channel, moved[float32](src), n, cols, n)
	default:
		for i := range cols {
			for c := range n {
				dst[i*l.Spatial[2]+c*l.Channel] = src[i*n+c]
			}
		}
	}
}

// moved returns elements as others of their size, which are only moved.
func moved[F gemm.Float, T any](s []T) []F {
	return unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
