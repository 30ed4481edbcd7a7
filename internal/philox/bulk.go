package philox

import "math/bits"

// Many elements at once: the words of a few hundred are made by vectors, where the
// processor has them, and then become numbers. What an element is does not depend on
// where a slice begins.

// pieceWords is how many words are made at a time, a multiple of all strides.
const pieceWords = 256

// words is the uint64 elements of a piece of a stream, which begins with a block.
type words [pieceWords]uint64

// fill makes the first n elements from an even one on, or some more of them.
func (w *words) fill(n int, seed, offset, start uint64) {
	if s := wordStride(); s > 0 {
		wordsNative(w[:(n+s-1)/s*s], seed, offset, start>>1)
		return
	}
	for i := 0; i < n; i += 2 {
		h := halves(block(seed, offset, (start+uint64(i))>>1))
		w[i], w[i+1] = h[0], h[1]
	}
}

// eachPiece calls f for the elements from start on, n in all: those of w from skip
// on are for dst elements lo to hi-1.
func eachPiece(n int, seed, offset uint64, start int64, f func(w *words, skip, lo, hi int)) {
	var w words
	at, skip := uint64(start)&^1, int(start&1)
	for lo := 0; lo < n; skip = 0 {
		hi := min(n, lo+pieceWords-skip)
		if left := -at; left > 0 && left < pieceWords { // to where indices begin again
			hi = min(hi, lo+int(left)-skip)
		}
		w.fill(skip+hi-lo, seed, offset, at)
		f(&w, skip, lo, hi)
		at += uint64(skip + hi - lo)
		lo = hi
	}
}

// UniformF64 sets dst[i] to the float64 uniform element at start+i.
func UniformF64(dst []float64, seed, offset uint64, start int64) {
	eachPiece(len(dst), seed, offset, start, func(w *words, skip, lo, hi int) {
		for i, x := range w[skip : skip+hi-lo] {
			dst[lo+i] = float64(int64(x>>11)) * 0x1p-53
		}
	})
}

// IntsBelow sets dst[i] to the integer element at start+i in [0, n), for n > 0, plus low.
func IntsBelow(dst []int64, seed, offset uint64, start int64, n uint64, low int64) {
	eachPiece(len(dst), seed, offset, start, func(w *words, skip, lo, hi int) {
		for i, x := range w[skip : skip+hi-lo] {
			h, _ := bits.Mul64(x, n)
			dst[lo+i] = low + int64(h)
		}
	})
}

// NormalF64 sets dst[i] to the standard normal element at start+i, within some units in the last
// place of NormFloat64.
func NormalF64(dst []float64, seed, offset uint64, start int64) {
	eachPiece(len(dst), seed, offset, start, func(w *words, skip, lo, hi int) {
		var z [pieceWords]float64
		normals64(&z, w, skip+hi-lo)
		copy(dst[lo:hi], z[skip:])
	})
}

// NormalF32 sets dst[i] to the standard normal element at start+i, rounded to
// float32.
func NormalF32(dst []float32, seed, offset uint64, start int64) {
	eachPiece(len(dst), seed, offset, start, func(w *words, skip, lo, hi int) {
		var z [pieceWords]float32
		n := skip + hi - lo
		if s := normalStride(); s > 0 {
			normal32Native(z[:(n+s-1)/s*s], w[:])
		} else {
			var wide [pieceWords]float64
			normals64(&wide, w, n)
			for i, x := range wide[:n] {
				z[i] = float32(x)
			}
		}
		copy(dst[lo:hi], z[skip:])
	})
}

// normals64 makes normal numbers of the first n words.
func normals64(z *[pieceWords]float64, w *words, n int) {
	if s := normalStride(); s > 0 {
		normal64Native(z[:(n+s-1)/s*s], w[:])
		return
	}
	for i := 0; i < n; i += 2 {
		z[i], z[i+1] = boxMuller(w[i], w[i+1])
	}
}
