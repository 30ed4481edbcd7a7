package conv

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Weights are filters packed for the tiles: for each group, phase and panel of
// output channels, a row of the panel's channels for each tap and input
// channel, taps outermost. Missing channels of the last panel are zero.
type Weights[A Float] struct {
	set    *tile.Set[A]
	g      Geometry
	phases []phase
	starts []int // of the phases in a group
	group  int   // elements of a group
	panels int
	data   []A
}

// NewWeights returns memory for filters of the given geometry, of which N, In
// and Out may be unset.
func NewWeights[A Float](g Geometry) *Weights[A] { return newWeights(g, tile.Best[A]()) }

func newWeights[A Float](g Geometry, set *tile.Set[A]) *Weights[A] {
	w := &Weights[A]{set: set, g: g, phases: g.phases(), panels: (g.COut + set.Width - 1) / set.Width}
	for _, p := range w.phases {
		w.starts = append(w.starts, w.group)
		w.group += w.panels * set.Width * p.depth
	}
	w.data = aligned[A](w.group * g.Groups)
	return w
}

// Pack packs filters with the given strides (output or, when transposed, input
// channel first) for the geometry.
func Pack[A Float, T Element](filters []T, strides [5]int, g Geometry) *Weights[A] {
	w := NewWeights[A](g)
	SetWeights(w, filters, strides, 0, w.Units())
	return w
}

// Bytes returns the size of the packed filters.
func (w *Weights[A]) Bytes() int { return len(w.data) * int(unsafe.Sizeof(*new(A))) }

// Units returns the number of independent units of packing.
func (w *Weights[A]) Units() int { return w.g.Groups * w.panels }

// SetWeights packs units lo..hi-1 of w.
func SetWeights[A Float, T Element](w *Weights[A], filters []T, strides [5]int, lo, hi int) {
	for u := lo; u < hi; u++ {
		grp, panel := u/w.panels, u%w.panels
		for i := range w.phases {
			p := &w.phases[i]
			size := w.set.Width * p.depth
			packPanel(w, w.data[grp*w.group+w.starts[i]+panel*size:][:size], filters, strides, p, grp, panel)
		}
	}
}

func packPanel[A Float, T Element](w *Weights[A], dst []A, filters []T, s [5]int, p *phase, grp, panel int) {
	width := w.set.Width
	lo := panel * width
	n := min(width, w.g.COut-lo)
	if n < width {
		clear(dst)
	}
	outer, inner := s[0], s[1] // strides of output and input channels
	base := (grp*w.g.COut + lo) * outer
	if w.g.Transposed {
		outer, inner = s[1], s[0]
		base = lo*outer + grp*w.g.CIn*inner
	}
	at := 0
	for _, t0 := range p.dims[0].taps {
		for _, t1 := range p.dims[1].taps {
			for _, t2 := range p.dims[2].taps {
				from := base + t0.k*s[2] + t1.k*s[3] + t2.k*s[4]
				columns(dst[at:], filters, width, n, w.g.CIn, from, outer, inner)
				at += width * w.g.CIn
			}
		}
	}
}

// columns sets dst[c·width+v] to the element of output channel v and input
// channel c.
func columns[A Float, T Element](dst []A, src []T, width, n, cin, from, outer, inner int) {
	switch s := any(src).(type) {
	case []A:
		for v := range n {
			at := from + v*outer
			for c := range cin {
				dst[c*width+v] = s[at]
				at += inner
			}
		}
	default:
		for v := range n {
			at := from + v*outer
			for c := range cin {
				dst[c*width+v] = vec.Wide[A](src[at])
				at += inner
			}
		}
	}
}

// lineBytes is the alignment of packed memory: a cache line, and a register.
const lineBytes = 64

// aligned returns n zero elements that begin at a cache line.
func aligned[A Float](n int) []A {
	size := int(unsafe.Sizeof(*new(A)))
	b := make([]A, n+lineBytes/size)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % lineBytes); r != 0 {
		skip = (lineBytes - r) / size
	}
	return b[skip : skip+n : skip+n]
}
