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

// blockPlanes is how many planes are treated together where that is free.
const blockPlanes = 64

// blocks returns how many groups of planes there are, and how many planes each of them has, but for
// the last one: those of an image, or fewer or more of evenly spaced ones.
func (m *Max[T]) blocks() (count, planes int) {
	for _, l := range []*Layout{&m.XLayout, &m.ValuesLayout, &m.IndicesLayout} {
		if l.Channel == 1 || m.N > 1 && l.Batch != m.C*l.Channel {
			return m.N, m.C
		}
	}
	return (m.N*m.C + blockPlanes - 1) / blockPlanes, blockPlanes
}

// block is one of the groups of planes: the first of them is plane at the offset first of a layout.
type block struct{ index, image, plane, planes int }

func (m *Max[T]) block(i int) block {
	_, planes := m.blocks()
	if planes == m.C {
		return block{i, i, 0, m.C}
	}
	return block{i, 0, i * planes, min(planes, m.N*m.C-i*planes)}
}

// offset returns where position at of a block's first plane is.
func (b *block) offset(l *Layout, at [3]int) int {
	return offset(l, b.image, at) + b.plane*l.Channel
}

// Units returns the number of independent units of work: rows of outputs of a block of planes, or
// of one plane, or bands of such, or boxes.
func (m *Max[T]) Units() int {
	if m.C == 0 || m.Out[2] == 0 {
		return 0
	}
	n := m.N * m.C
	switch {
	case m.inBoxes():
		b := m.box()
		planes, depths, rows := m.boxes(&b)
		return planes * depths * rows
	case m.inLines(), m.inRows(), m.inParts():
	case m.separable():
		bands, _ := m.bands()
		return n * m.Out[0] * bands
	default:
		n, _ = m.blocks()
	}
	return n * m.Out[0] * m.Out[1]
}

// Run computes all units on the goroutines that the Limiter allows.
func (m *Max[T]) Run() { m.Limiter.For(m.Units(), m.grain(), m.Do) }

func (m *Max[T]) grain() int {
	planes := 1
	switch {
	case m.inBoxes():
		b := m.box()
		planes = b.planes * b.depths * b.rows
	case m.inLines(), m.inRows(), m.inParts():
	case m.separable():
		_, planes = m.bands()
	default:
		_, planes = m.blocks()
	}
	return 1 + 1<<15/max(planes*m.Out[2]*m.Kernel[0]*m.Kernel[1]*m.Kernel[2], 1)
}

// maxRow is the scratch memory of one goroutine: a row of outputs, all channels
// of a position together, and rows of inputs so.
type maxRow[T kernels.Number] struct {
	best  []T
	at    []int32
	wide  []int64
	rows  []T
	first []int // the input row, of a block of planes, that each part of rows holds, or -1
	parts []T   // an input row by the remainders of its columns by the stride
	along []T   // what is greatest of parts of rows
}

var maxRows sync.Pool // of *maxRow[T] for any T

// Do computes units lo..hi-1.
func (m *Max[T]) Do(lo, hi int) {
	r, ok := maxRows.Get().(*maxRow[T])
	if !ok {
		r = new(maxRow[T])
	}
	defer maxRows.Put(r)
	if m.inBoxes() {
		m.computeBoxes(r, lo, hi)
		return
	}
	if m.inLines() || m.inRows() {
		m.lines(r, lo, hi)
		return
	}
	if m.inParts() {
		m.parts(r, lo, hi)
		return
	}
	if m.separable() {
		m.separate(r, lo, hi)
		return
	}
	r.first = r.first[:0]
	for i := lo; i < hi; i++ {
		m.row(r, m.block(i/(m.Out[0]*m.Out[1])), [3]int{i / m.Out[1] % m.Out[0], i % m.Out[1], 0})
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (m *Max[T]) row(r *maxRow[T], k block, o [3]int) {
	n := m.lanes(k)
	r.best, r.at = grow(r.best, m.Out[2]*n), grow(r.at, m.Out[2]*n)
	for i := range r.best {
		r.best[i], r.at[i] = m.Least, -1
	}
	w0, w1 := m.window(0, o[0]), m.window(1, o[1])
	for i0 := w0.from; i0 < w0.to; i0 += w0.step {
		for i1 := w1.from; i1 < w1.to; i1 += w1.step {
			x, col, channel := m.input(r, k, i0, i1)
			if first := (i0*m.In[1] + i1) * m.In[2]; channel == 1 && m.Windows[2] == nil {
				m.together(r, x, n, col, first)
			} else {
				m.apart(r, x, n, col, channel, first)
			}
		}
	}
	m.store(r, k, o)
}

// together takes a row of inputs, whose planes adjoin, into all windows of a row, an element of each at a time; the row
// begins at place first.
func (m *Max[T]) together(r *maxRow[T], x []T, n, col, first int) {
	for k := range m.Kernel[2] {
		from, to, column := m.inside(k, m.Out[2])
		if from < to {
			greaterEach(r.best[from*n:to*n], r.at[from*n:to*n], x[column*col:], n, m.Stride[2]*col, int32(first+column), int32(m.Stride[2]))
		}
	}
}

// apart is together of any windows and planes.
func (m *Max[T]) apart(r *maxRow[T], x []T, n, col, channel, first int) {
	for o2 := range m.Out[2] {
		w2 := m.window(2, o2)
		best, at := r.best[o2*n:][:n], r.at[o2*n:][:n]
		for i2 := w2.from; i2 < w2.to; i2 += w2.step {
			if index := int32(first + i2); channel == 1 {
				greater(best, at, x[i2*col:][:n], index)
			} else {
				for c := range best {
					if v := x[i2*col+c*channel]; v > best[c] || v != v || at[c] < 0 {
						best[c], at[c] = v, index
					}
				}
			}
		}
	}
}

// greater takes over what is greater than the best so far, or the first.
func greater[T kernels.Number](best []T, at []int32, x []T, index int32) {
	if b, ok := any(best).([]float32); ok {
		vec.Greater(b, at, any(x).([]float32), index)
		return
	}
	vec.GreaterOf(best, at, x, index, 0)
}

// greaterEach is greater of groups of n elements; those of x lie xStep apart, and their indices step.
func greaterEach[T kernels.Number](best []T, at []int32, x []T, n, xStep int, index, step int32) {
	b, ok := any(best).([]float32)
	if !ok {
		vec.GreaterEach(best, at, x, n, xStep, index, step)
		return
	}
	y := any(x).([]float32)
	for g := 0; g*n < len(b); g++ {
		vec.Greater(b[g*n:][:n], at[g*n:][:n], y[g*xStep:][:n], index+int32(g)*step)
	}
}

// transposes says that rows of a block are transposed, so that its planes adjoin.
func (m *Max[T]) transposes(k block) bool {
	var x T
	return unsafe.Sizeof(x) >= 4 && m.XLayout.Spatial[2] == 1 && m.XLayout.Channel != 1 && k.planes >= 4
}

// lanes returns how many planes of a block are treated: those that fill vectors, of which the last may
// hold anything, where memory is ours.
func (m *Max[T]) lanes(k block) int {
	if m.transposes(k) {
		return (k.planes + 7) &^ 7
	}
	return k.planes
}

// input returns a row of inputs and the strides of its columns and channels:
// the row itself, or a transposed copy if its planes are dense.
func (m *Max[T]) input(r *maxRow[T], k block, i0, i1 int) (x []T, col, channel int) {
	l := &m.XLayout
	x = m.X[k.offset(l, [3]int{i0, i1, 0}):]
	if !m.transposes(k) {
		return x, l.Spatial[2], l.Channel
	}
	n := m.lanes(k)
	// As many copies are kept as windows have rows, each in the place of its row.
	size := m.In[2] * n
	near0, near1 := m.Kernel[0]*m.Dilation[0]+m.Stride[0], m.Kernel[1]*m.Dilation[1]+m.Stride[1]
	near0, near1 = min(near0, m.In[0]), min(near1, m.In[1])
	row := (k.index*m.In[0]+i0)*m.In[1] + i1
	if slots := near0 * near1; len(r.first) != slots || len(r.rows) != slots*size {
		r.first, r.rows = grow(r.first, slots), grow(r.rows, slots*size)
		for i := range r.first {
			r.first[i] = -1
		}
	}
	slot := i0%near0*near1 + i1%near1
	part := r.rows[slot*size:][:size]
	if r.first[slot] != row {
		if unsafe.Sizeof(x[0]) == 4 {
			gemm.Transpose(moved[float32](part), n, moved[float32](x), l.Channel, k.planes, m.In[2])
		} else {
			gemm.Transpose(moved[float64](part), n, moved[float64](x), l.Channel, k.planes, m.In[2])
		}
		r.first[slot] = row
	}
	return part, n, 1
}

// store writes a row of outputs.
func (m *Max[T]) store(r *maxRow[T], k block, o [3]int) {
	n := m.lanes(k)
	put(m.Values[k.offset(&m.ValuesLayout, o):], r.best, m.Out[2], k.planes, n, &m.ValuesLayout)
	if m.Indices != nil {
		r.wide = grow(r.wide, len(r.at))
		widen(r.wide, r.at)
		put(m.Indices[k.offset(&m.IndicesLayout, o):], r.wide, m.Out[2], k.planes, n, &m.IndicesLayout)
	}
}

// widen returns places, 0 for those of windows that are all padding.
func widen(dst []int64, at []int32) {
	for i, v := range at {
		dst[i] = max(int64(v), 0)
	}
}

// put stores cols positions of n channels each, of which src has room for lanes.
func put[T any](dst, src []T, cols, n, lanes int, l *Layout) {
	switch {
	case l.Channel == 1:
		for i := range cols {
			copy(dst[i*l.Spatial[2]:][:n], src[i*lanes:])
		}
	case l.Spatial[2] == 1 && unsafe.Sizeof(src[0]) == 8:
		gemm.Transpose(moved[float64](dst), l.Channel, moved[float64](src), lanes, cols, n)
	case l.Spatial[2] == 1 && unsafe.Sizeof(src[0]) == 4:
		gemm.Transpose(moved[float32](dst), l.Channel, moved[float32](src), lanes, cols, n)
	default:
		for i := range cols {
			for c := range n {
				dst[i*l.Spatial[2]+c*l.Channel] = src[i*lanes+c]
			}
		}
	}
}

// moved returns elements as others of their size, which are only moved.
func moved[F gemm.Float, T any](s []T) []F {
	return unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
