package conv

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/tile"
)

// Weights are filters packed for the tiles: for each group, phase and panel of
// output channels, a row of the panel's channels for each tap and input
// channel, taps outermost. Those for Winograd's convolution have coefficients in
// the place of taps, those in pairs a word for two input channels. Missing channels
// of the last panel are zero.
type Weights[A Float] struct {
	set    *tile.Set[A]
	g      Geometry
	form   Form
	phases []phase
	starts []int // of the phases in a group
	group  int   // elements of a group, or of a depthwise convolution
	panels int
	data   []A
}

// NewWeights returns memory for filters of the given geometry, of which N, In
// and Out may be unset, in the form that a plan has chosen.
func NewWeights[A Float](g Geometry, form Form) *Weights[A] {
	w := WeightsWithout[A](g, form)
	w.Use(aligned[A](w.Len()))
	return w
}

// WeightsWithout is NewWeights without the memory, which Use must set.
func WeightsWithout[A Float](g Geometry, form Form) *Weights[A] {
	return newWeights(g, form, tile.Best[A]())
}

func newWeights[A Float](g Geometry, form Form, set *tile.Set[A]) *Weights[A] {
	if form == Pairs {
		set = any(tile.Pairs()).(*tile.Set[A])
	}
	words := g
	words.CIn = form.depth(g.CIn)
	w := &Weights[A]{set: set, g: g, form: form, phases: words.phases(), panels: (g.COut + set.Width - 1) / set.Width}
	if form == Winograd {
		w.phases[0].depth = winogradDepth(g.CIn)
	}
	if g.depthwise() {
		for _, p := range w.phases {
			w.starts = append(w.starts, w.group)
			w.group += padded(set, g.Groups) * p.depth
		}
		return w
	}
	for _, p := range w.phases {
		w.starts = append(w.starts, w.group)
		w.group += w.panels * set.Width * p.depth
	}
	return w
}

// Len returns the elements of the packed filters.
func (w *Weights[A]) Len() int {
	if w.g.depthwise() {
		return w.group
	}
	return w.group * w.g.Groups
}

// Use sets the memory of the packed filters: Len elements, which should begin
// at a cache line.
func (w *Weights[A]) Use(data []A) { w.data = data[:w.Len()] }

// Pack packs filters with the given strides (output or, when transposed, input
// channel first) for the geometry and form.
func Pack[A Float, T Element](filters []T, strides [5]int, g Geometry, form Form) *Weights[A] {
	w := NewWeights[A](g, form)
	SetWeights(w, filters, strides, 0, w.Units())
	return w
}

// Bytes returns the size of the packed filters.
func (w *Weights[A]) Bytes() int { return w.Len() * int(unsafe.Sizeof(*new(A))) }

// Units returns the number of independent units of packing.
func (w *Weights[A]) Units() int {
	if w.g.depthwise() {
		return 1
	}
	return w.g.Groups * w.panels
}

// ScaleWeights multiplies what units lo..hi-1 have packed by a factor for each
// output channel. Those in pairs stay as they are, since they would be rounded: a Call
// multiplies its sums instead.
func ScaleWeights[A Float](w *Weights[A], scale []A, lo, hi int) {
	if w.form == Pairs {
		return
	}
	if w.g.depthwise() {
		if lo < hi {
			gemm.ScaleRows(w.data, scale, padded(w.set, w.g.Groups))
		}
		return
	}
	width := w.set.Width
	for u := lo; u < hi; u++ {
		grp, panel := u/w.panels, u%w.panels
		n := min(width, w.g.COut-panel*width)
		part := scale[grp*w.g.COut+panel*width:][:n]
		for i := range w.phases {
			size := width * w.phases[i].depth
			gemm.ScaleRows(w.data[grp*w.group+w.starts[i]+panel*size:][:size], part, width)
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
