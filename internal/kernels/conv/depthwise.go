package conv

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// A depthwise convolution, whose groups have one channel each way, multiplies
// column by column: a tile holds some positions of a vector of channels, whose
// taps are read where they lie. Its Plan has the channels of all groups as those
// of one, and images whose channels do not adjoin are transposed into scratch
// memory and back.

func (g *Geometry) depthwise() bool { return g.CIn == 1 && g.COut == 1 && g.Groups > 1 }

// depthwiseElements bounds the elements of a unit of a depthwise convolution.
const depthwiseElements = 32 << 10

// padded returns the channels of a depthwise convolution in whole vectors.
func padded[A Float](set *tile.Set[A], channels int) int {
	return ceil(channels, set.Lanes()) * set.Lanes()
}

// depthwiseTable lists the taps of a member of a phase.
func (p *Plan[A]) depthwiseTable(ph *planPhase, m *member) {
	r := &p.region
	for _, t0 := range ph.dims[0].taps {
		for _, t1 := range ph.dims[1].taps {
			for _, t2 := range m.taps {
				off := (t0.off-ph.min[0])*r.Spatial[0] + (t1.off-ph.min[1])*r.Spatial[1] + (t2.off-ph.min[2])*r.Spatial[2]
				m.segs = append(m.segs, off*p.size)
			}
		}
	}
}

// depthwise computes a unit whose part of the image begins at x.
func (c *Call[T, A]) depthwise(w *worker[A], u *unit, x unsafe.Pointer, imageStep int) {
	p := c.Plan
	n := padded(p.set, p.g.COut)
	s := c.sink(w, u, 0, n)
	w.bias = grow(w.bias, n)
	clear(w.bias)
	if c.Bias != nil {
		vec.Load(w.bias, c.Bias[:p.g.COut])
	}
	a := &w.args
	a.Init = unsafe.Pointer(unsafe.SliceData(w.bias))
	a.Lo, a.Hi = s.lo, s.hi
	a.Run, a.WStep = n/p.set.Lanes(), n*p.size
	from := place{x, imageStep, 0, p.g.inStep(1) * p.region.Spatial[1] * p.size, p.g.inStep(2) * p.region.Spatial[2] * p.size}
	a.XStep, a.CStep = from.col, s.done.col
	for i := range u.ph.members {
		m := &u.ph.members[i]
		a.W = tile.Zeros
		if a.NSegs = len(m.segs); a.NSegs > 0 {
			a.W = unsafe.Pointer(&c.Weights.data[c.Weights.starts[m.index]])
			a.Segs = unsafe.Pointer(&m.segs[0])
		}
		done := s.done
		done.at = unsafe.Add(done.at, i*n*p.size)
		depthwiseTiles(a, p, u, &from, &done)
	}
	if !s.direct {
		c.finish(w, u, 0, p.g.COut, n)
	}
}

// depthwiseTiles computes the unit's positions of a member of its phase.
func depthwiseTiles[A Float](a *tile.Args[A], p *Plan[A], u *unit, from, to *place) {
	tiles := ceil(u.wn, p.set.DepthwiseRows())
	for img := range u.nn {
		for row := range u.hn {
			for t, col := 0, 0; t < tiles; t++ {
				end := (t + 1) * u.wn / tiles
				a.X, a.C = from.of(img, row, col), to.of(img, row, col)
				p.set.RunDepthwise(a, end-col)
				col = end
			}
		}
	}
}

// setDepthwise packs the filters of a depthwise convolution: for each phase and
// tap the channels.
func setDepthwise[A Float, T Element](w *Weights[A], filters []T, s [5]int) {
	n := padded(w.set, w.g.Groups)
	clear(w.data)
	scratch := borrow[A]()
	defer scratch.release()
	k := w.g.Kernel
	whole := !w.g.Transposed && s[4] == 1 && (k[1] == 1 || s[3] == k[2]) && (k[0] == 1 || s[2] == k[1]*k[2])
	for i := range w.phases {
		at := w.starts[i]
		ph := &w.phases[i]
		if whole {
			depthwiseRow(scratch, w.data[at:], n, filters, s[0], w.g.Groups, ph.depth)
			continue
		}
		for _, t0 := range ph.dims[0].taps {
			for _, t1 := range ph.dims[1].taps {
				row := filters[t0.k*s[2]+t1.k*s[3]:]
				if !w.g.Transposed && s[4] == 1 {
					depthwiseRow(scratch, w.data[at:], n, row, s[0], w.g.Groups, k[2])
					at += n * k[2]
					continue
				}
				for _, t2 := range ph.dims[2].taps {
					for c := range w.g.Groups {
						w.data[at+c] = vec.Wide[A](row[t2.k*s[4]+c*s[0]])
					}
					at += n
				}
			}
		}
	}
}

// depthwiseRow packs adjoining taps of filters that are stride elements apart, chunkElements at a time.
func depthwiseRow[A Float, T Element](scratch *worker[A], dst []A, n int, src []T, stride, filters, taps int) {
	wide, same := any(src).([]A)
	step := max(chunkElements/filters, 1)
	for from := 0; from < taps; from += step {
		some := min(step, taps-from)
		if same {
			gemm.Transpose(dst[from*n:], n, wide[from:], stride, filters, some)
			continue
		}
		scratch.line = grow(scratch.line, filters*some)
		for c := range filters {
			vec.Load(scratch.line[c*some:], src[c*stride+from:][:some])
		}
		gemm.Transpose(dst[from*n:], n, scratch.line, some, filters, some)
	}
}
