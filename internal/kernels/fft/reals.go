package fft

import "sync"

// Reals is the step between the transform of lines of n reals, an even number, and that of n/2 complex
// numbers that lie where the reals do: for lines that Long transforms.
type Reals[T Float] struct {
	kind  Kind
	n     int
	scale float64

	k *kernels[T]

	once sync.Once
	tw   []T
	conj []T
}

// NewReals returns the step after the transform of complex numbers, for RealToHalf, or the one before
// it, for HalfToReal.
func NewReals[T Float](kind Kind, n int, scale float64) *Reals[T] {
	return &Reals[T]{kind: kind, n: n, scale: scale, k: available[T]()[0]}
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
	r.once.Do(func() { r.tw, r.conj = tangles[T](r.n, r.kind == HalfToReal, h), signs[T](false) })
	m, chunks, factor := r.n/2, r.chunks(), T(h)
	for ; lo < hi; lo++ {
		x, y := src[lo/chunks*2*from:][:2*from], dst[lo/chunks*2*to:][:2*to]
		first := lo % chunks * realsChunk
		end := min(first+realsChunk, m/2+1)
		if first == 0 {
			tangleEnds(y, x, m, factor, r.kind == HalfToReal)
			first = 1
		}
		r.k.tangleAlong(y, x, r.tw, r.conj, &factor, m, first, end)
	}
}
