package fft

import "sync"

// Reals is the step between the transform of lines of n reals, an even number, and that of n/2 complex
// numbers that lie where the reals do: for lines that Long transforms.
type Reals[T Float] struct {
	kind  Kind
	n     int
	scale float64

	once sync.Once
	tw   []T
}

// NewReals returns the step after the transform of complex numbers, for RealToHalf, or the one before
// it, for HalfToReal.
func NewReals[T Float](kind Kind, n int, scale float64) *Reals[T] {
	return &Reals[T]{kind: kind, n: n, scale: scale}
}

// realsChunk is how many pairs of elements a unit of Reals.Run has.
const realsChunk = 2048

// chunks returns how many units a line has.
func (r *Reals[T]) chunks() int { return (r.n/4 + realsChunk) / realsChunk }

// Units returns how many units of Run so many lines have.
func (r *Reals[T]) Units(lines int) int { return lines * r.chunks() }

// Run computes units lo..hi-1, of lines of n/2 complex numbers from or to lines of n/2+1.
func (r *Reals[T]) Run(dst, src []T, lo, hi int) {
	h := r.scale / 2
	from, to := r.n/2, r.n/2+1
	if r.kind == HalfToReal {
		h, from, to = r.scale, to, from
	}
	r.once.Do(func() { r.tw = tangles[T](r.n, r.kind == HalfToReal, h) })
	m, chunks, factor := r.n/2, r.chunks(), T(h)
	for ; lo < hi; lo++ {
		x, y := src[lo/chunks*2*from:][:2*from], dst[lo/chunks*2*to:][:2*to]
		first := lo % chunks * realsChunk
		end := min(first+realsChunk, m/2+1)
		if first == 0 {
			r.ends(y, x, factor)
			first = 1
		}
		if first < end {
			last := 2 * (m + 1 - end)
			tangle(y[2*first:], y[last:], x[2*first:], x[last:], r.tw[2*first:2*end], nil, &factor, 2)
		}
	}
}

// ends computes the elements at both ends of a line, which are reals in the transform of reals.
func (r *Reals[T]) ends(y, x []T, h T) {
	m := r.n / 2
	if r.kind == HalfToReal {
		sum, diff := h*(x[0]+x[2*m]), r.tw[1]*(x[0]-x[2*m])
		y[0], y[1] = sum, diff
		return
	}
	y[0], y[1] = 2*h*(x[0]+x[1]), 0
	y[2*m], y[2*m+1] = 2*h*(x[0]-x[1]), 0
}
