package conv

import (
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// SetWeights packs units lo..hi-1 of w.
func SetWeights[A Float, T Element](w *Weights[A], filters []T, strides [5]int, lo, hi int) {
	if w.g.depthwise() {
		if lo < hi {
			setDepthwise(w, filters, strides)
		}
		return
	}
	scratch := borrow[A]()
	defer scratch.release()
	for u := lo; u < hi; u++ {
		grp, panel := u/w.panels, u%w.panels
		p := packing[A, T]{w: w, scratch: scratch, src: filters, n: min(w.set.Width, w.g.COut-panel*w.set.Width)}
		p.outer, p.inner, p.taps = strides[0], strides[1], [3]int(strides[2:])
		p.base = (grp*w.g.COut + panel*w.set.Width) * p.outer
		if w.g.Transposed {
			p.outer, p.inner = p.inner, p.outer
			p.base = panel*w.set.Width*p.outer + grp*w.g.CIn*p.inner
		}
		for i := range w.phases {
			size := w.set.Width * w.phases[i].depth
			dst := w.data[grp*w.group+w.starts[i]+panel*size:][:size]
			switch w.form {
			case Winograd:
				p.winograd(dst, &w.phases[i])
			case Pairs:
				p.pairs(dst, &w.phases[i])
			default:
				p.phase(dst, &w.phases[i])
			}
		}
	}
}

// packing is the packing of one panel.
type packing[A Float, T Element] struct {
	w            *Weights[A]
	scratch      *worker[A]
	src          []T
	base         int    // of the panel's first filter
	outer, inner int    // strides of output and input channels
	taps         [3]int // strides of the kernel's dimensions
	n            int    // filters
}

func (p *packing[A, T]) phase(dst []A, ph *phase) {
	if p.n < p.w.set.Width {
		clear(dst)
	}
	if len(dst) == 0 {
		return
	}
	k := p.w.g.Kernel
	volume := k[0] * k[1] * k[2]
	dense := p.taps == [3]int{k[1] * k[2], k[2], 1}
	switch {
	case volume > 1 && dense && p.inner == volume:
		p.filters(dst, ph, volume)
	case volume > 1 && dense && p.outer == volume:
		p.channels(dst, ph, volume)
	default:
		at := 0
		p.each(ph, func(k int) {
			p.columns(dst[at:], p.base+k)
			at += p.w.set.Width * p.w.g.CIn
		})
	}
}

// each calls f with the offset of each tap of a phase, in the order of packing.
func (p *packing[A, T]) each(ph *phase, f func(k int)) {
	for _, t0 := range ph.dims[0].taps {
		for _, t1 := range ph.dims[1].taps {
			for _, t2 := range ph.dims[2].taps {
				f(t0.k*p.taps[0] + t1.k*p.taps[1] + t2.k*p.taps[2])
			}
		}
	}
}

// chunkElements bounds what is transposed before it is put in order.
const chunkElements = 4096

// filters packs filters whose input channels follow each other, each with all
// its taps, as dense ones do: some channels of all filters are transposed into
// rows, which are then put in the order of the taps.
func (p *packing[A, T]) filters(dst []A, ph *phase, volume int) {
	width, cin := p.w.set.Width, p.w.g.CIn
	step := max(chunkElements/(width*volume), 1)
	for c := 0; c < cin; c += step {
		n := min(step, cin-c)
		rows := p.rows(n * volume)
		p.transpose(rows, width, p.base+c*p.inner, p.outer, p.n, n*volume)
		p.order(dst[c*width:], ph, rows, n, volume)
	}
}

// channels packs filters whose output channels follow each other so, as dense
// transposed ones do.
func (p *packing[A, T]) channels(dst []A, ph *phase, volume int) {
	width := p.w.set.Width
	for c := range p.w.g.CIn {
		rows := p.rows(volume)
		p.transpose(rows, width, p.base+c*p.inner, p.outer, p.n, volume)
		p.order(dst[c*width:], ph, rows, 1, volume)
	}
}

func (p *packing[A, T]) rows(n int) []A {
	p.scratch.sums = grow(p.scratch.sums, n*p.w.set.Width)
	return p.scratch.sums
}

// order copies rows, volume for each of n channels, to where their taps are.
func (p *packing[A, T]) order(dst []A, ph *phase, rows []A, n, volume int) {
	width := p.w.set.Width
	at := 0
	p.each(ph, func(k int) {
		for c := range n {
			copy(dst[at+c*width:][:p.n], rows[(c*volume+k)*width:])
		}
		at += width * p.w.g.CIn
	})
}

// columns sets dst[c·width+v] to the element of input channel c and filter v.
func (p *packing[A, T]) columns(dst []A, from int) {
	width, cin := p.w.set.Width, p.w.g.CIn
	if p.inner == 1 {
		p.transpose(dst, width, from, p.outer, p.n, cin)
		return
	}
	for v := range p.n {
		at := from + v*p.outer
		for c := range cin {
			dst[c*width+v] = vec.Wide[A](p.src[at])
			at += p.inner
		}
	}
}

// transpose sets dst[j·width+i] = src[from+i·stride+j] for i < rows, j < cols.
func (p *packing[A, T]) transpose(dst []A, width, from, stride, rows, cols int) {
	src := p.src[from:]
	if wide, ok := any(src).([]A); ok {
		gemm.Transpose(dst, width, wide, stride, rows, cols)
		return
	}
	p.scratch.line = grow(p.scratch.line, rows*cols)
	for i := range rows {
		vec.Load(p.scratch.line[i*cols:], src[i*stride:][:cols])
	}
	gemm.Transpose(dst, width, p.scratch.line, cols, rows, cols)
}
