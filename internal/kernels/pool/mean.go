package pool

import (
	"math"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Mean is one run of pooling by the mean, as PyTorch's avg_pool and
// adaptive_avg_pool. Dilation is not used.
type Mean[T vec.Element, A tile.Float] struct {
	Geometry
	X, Y             []T
	XLayout, YLayout Layout
	// Padded counts the padding, as far as it was asked for, in the number that
	// sums are divided by; Divisor, unless 0, is that number.
	Padded  bool
	Divisor int
	// Adaptive has windows divide the input evenly, whatever Kernel, Stride and
	// Pad are.
	Adaptive bool
}

// Units returns the number of independent units of work: rows of outputs.
func (m *Mean[T, A]) Units() int { return m.rows() }

// Run computes all units on as many processors as there are.
func (m *Mean[T, A]) Run() {
	window := 1
	for d := range 3 {
		_, n := m.span(d, 0)
		window *= max(n, 1)
	}
	kernels.For(m.Units(), 1+1<<16/max(m.C*m.Out[2]*window, 1), m.Do)
}

// meanRow is the scratch memory of one goroutine.
type meanRow[A tile.Float] struct {
	args    tile.Args[A]
	ones    []A
	offsets []int
	sums    []A
	line    []A
}

var means32, means64 sync.Pool

// span returns the part of window o that is inside, and how many positions
// count.
func (m *Mean[T, A]) span(d, o int) (span, int) {
	if m.Adaptive {
		s := span{o * m.In[d] / m.Out[d], ((o+1)*m.In[d] + m.Out[d] - 1) / m.Out[d], 1}
		return s, s.to - s.from
	}
	from := o*m.Stride[d] - m.Pad[d]
	to := min(from+m.Kernel[d], m.In[d]+m.Pad[d])
	s := span{max(from, 0), min(to, m.In[d]), 1}
	if m.Padded {
		return s, to - from
	}
	return s, s.to - s.from
}

// Do computes units lo..hi-1.
func (m *Mean[T, A]) Do(lo, hi int) {
	p := &means64
	if unsafe.Sizeof(*new(A)) == 4 {
		p = &means32
	}
	r, ok := p.Get().(*meanRow[A])
	if !ok {
		r = new(meanRow[A])
	}
	defer func() {
		r.args = tile.Args[A]{}
		p.Put(r)
	}()
	r.sums = grow(r.sums, m.C)
	for i := lo; i < hi; i++ {
		m.row(r, i/(m.Out[0]*m.Out[1]), [3]int{i / m.Out[1] % m.Out[0], i % m.Out[1], 0})
	}
}

func (m *Mean[T, A]) row(r *meanRow[A], n int, o [3]int) {
	w0, n0 := m.span(0, o[0])
	w1, n1 := m.span(1, o[1])
	for o[2] = 0; o[2] < m.Out[2]; o[2]++ {
		w2, n2 := m.span(2, o[2])
		count := n0 * n1 * n2
		if m.Divisor != 0 {
			count = m.Divisor
		}
		to := m.Y[offset(&m.YLayout, n, o):]
		if w0.len()*w1.len()*w2.len() == 0 {
			clear(r.sums) // PyTorch's too: nothing to sum
		} else {
			m.sum(r, n, w0, w1, w2)
			vec.Scale(r.sums, r.sums, 1/A(count))
		}
		if m.YLayout.Channel == 1 {
			vec.Store(to, r.sums)
			continue
		}
		for c, v := range r.sums {
			to[c*m.YLayout.Channel] = vec.Narrow[T](v)
		}
	}
}

// sum sets the sums of all channels of a window.
func (m *Mean[T, A]) sum(r *meanRow[A], n int, w0, w1, w2 span) {
	l := &m.XLayout
	clear(r.sums)
	wide, same := any(m.X).([]A)
	if same && l.Channel == 1 {
		m.columns(r, wide, n, w0, w1, w2)
		return
	}
	for i0 := w0.from; i0 < w0.to; i0++ {
		for i1 := w1.from; i1 < w1.to; i1++ {
			at := offset(l, n, [3]int{i0, i1, w2.from})
			for c := range r.sums {
				r.sums[c] += m.line(r, at+c*l.Channel, w2.to-w2.from)
			}
		}
	}
}

// line returns the sum of n elements of a row.
func (m *Mean[T, A]) line(r *meanRow[A], at, n int) A {
	step := m.XLayout.Spatial[2]
	if step == 1 {
		x, same := any(m.X[at : at+n]).([]A)
		if !same {
			r.line = grow(r.line, n)
			vec.Load(r.line, m.X[at:at+n])
			x = r.line
		}
		var s [4]A
		for len(x) >= 4 {
			s[0] += x[0]
			s[1] += x[1]
			s[2] += x[2]
			s[3] += x[3]
			x = x[4:]
		}
		for _, v := range x {
			s[0] += v
		}
		return (s[0] + s[1]) + (s[2] + s[3])
	}
	s := A(0)
	for range n {
		s += vec.Wide[A](m.X[at])
		at += step
	}
	return s
}

// columns sums channels that adjoin: whole vectors by a depthwise tile of one
// row whose weights are ones.
func (m *Mean[T, A]) columns(r *meanRow[A], x []A, n int, w0, w1, w2 span) {
	l := &m.XLayout
	set := tile.Best[A]()
	whole := m.C / set.Lanes() * set.Lanes()
	base := offset(l, n, [3]int{w0.from, w1.from, w2.from})
	r.offsets = r.offsets[:0]
	for i0 := range w0.to - w0.from {
		for i1 := range w1.to - w1.from {
			for i2 := range w2.to - w2.from {
				off := i0*l.Spatial[0] + i1*l.Spatial[1] + i2*l.Spatial[2]
				for c := whole; c < m.C; c++ {
					r.sums[c] += x[base+off+c]
				}
				r.offsets = append(r.offsets, off*int(unsafe.Sizeof(x[0])))
			}
		}
	}
	if whole == 0 {
		return
	}
	if len(r.ones) < m.C {
		r.ones = make([]A, m.C)
		for i := range r.ones {
			r.ones[i] = 1
		}
	}
	sums := unsafe.Pointer(unsafe.SliceData(r.sums))
	r.args = tile.Args[A]{
		X: unsafe.Pointer(&x[base]), W: unsafe.Pointer(unsafe.SliceData(r.ones)), Init: sums, C: sums,
		Segs: unsafe.Pointer(&r.offsets[0]), NSegs: len(r.offsets), Run: whole / set.Lanes(),
		Lo: A(math.Inf(-1)), Hi: A(math.Inf(1)),
	}
	set.RunDepthwise(&r.args, 1)
}
