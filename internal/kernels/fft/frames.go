package fft

import "github.com/loris-ml/loris/internal/kernels/gemm"

// Frames is how the frames of signals lie in memory: line u is the one of number u%Count of signal
// u/Count. Signals have Size elements, and their frames begin Hop elements after each other.
type Frames struct{ Count, Hop, Size int }

// NewFrames returns the transform of frames of n reals, to the half of it or to all.
func NewFrames[T Float](kind Kind, n int, in Frames, out Layout, scale float64) *Lines[T] {
	return newFrames(kind, n, in, out, scale, available[T]()[0])
}

func newFrames[T Float](kind Kind, n int, in Frames, out Layout, scale float64, k *kernels[T]) *Lines[T] {
	l := newLines(kind, n, false, Layout{1, n}, out, scale, k)
	l.frames = in
	return l
}

// RunFrames is Run for frames, which are multiplied by the n elements of window.
func (l *Lines[T]) RunFrames(dst, src, window, scratch []T, lines, lo, hi int) {
	l.each(scratch, lines, lo, hi, dst, func(a, b []T, g group) { l.loadFrames(a, b, src, window, g) })
}

// loadFrames fills the rows of a with frames; b is as long.
func (l *Lines[T]) loadFrames(a, b, src, window []T, g group) {
	row := rowFloats[T]()
	if g.n < Lanes[T]() {
		clear(a)
	}
	f := l.frames
	for lane := 0; lane < g.n; {
		u := g.first + lane
		count := min(f.Count-u%f.Count, g.n-lane)
		from := src[u/f.Count*f.Size+u%f.Count*f.Hop:]
		switch {
		case !l.halved():
			gemm.Transpose(a[row/2+lane:], row, from, f.Hop, count, l.n)
		case row == rowBytes/4 && f.Hop%2 == 1: // pairs of some frames lie across those of others
			gemm.Transpose(b, row, from, f.Hop, count, l.n)
			for j := range l.n {
				to, from := a[j/2*row+2*lane+j%2:], b[j*row:j*row+count]
				for c, v := range from {
					to[2*c] = v
				}
			}
		default:
			transpose(l.k, a[2*lane:], row, from, f.Hop, count, l.n/2)
		}
		lane += count
	}
	if l.halved() {
		l.k.window(a[:l.n/2*row], window, row)
		return
	}
	l.k.spread(a[:l.n*row])
	for j, w := range window[:l.n] {
		x := a[j*row : (j+1)*row]
		for i := 0; i < row; i += 2 {
			x[i] *= w
		}
	}
}
