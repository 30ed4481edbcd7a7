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

// pieces goes through the elements of a slice: the words of each piece from skip on are its elements lo to hi-1.
// It isn't a function that calls another, whose words the compiler would allocate for each slice.
type pieces struct {
	seed, offset, at uint64
	n, skip, lo, hi  int
	words            words
}

// start sets p before the first piece of n elements from start on.
func (p *pieces) start(n int, seed, offset uint64, start int64) {
	p.seed, p.offset, p.at = seed, offset, uint64(start)&^1
	p.n, p.skip, p.lo, p.hi = n, int(start&1), 0, 0
}

// next makes the words of the next piece and reports whether there is one.
func (p *pieces) next() bool {
	if p.hi > 0 {
		p.at += uint64(p.skip + p.hi - p.lo)
		p.lo, p.skip = p.hi, 0
	}
	if p.lo == p.n {
		return false
	}
	p.hi = min(p.n, p.lo+pieceWords-p.skip)
	if left := -p.at; left > 0 && left < pieceWords { // to where indices begin again
		p.hi = min(p.hi, p.lo+int(left)-p.skip)
	}
	p.words.fill(p.skip+p.hi-p.lo, p.seed, p.offset, p.at)
	return true
}

// of returns the words of the piece's elements.
func (p *pieces) of() []uint64 { return p.words[p.skip:][:p.hi-p.lo] }

// Uint64s sets dst[i] to the uint64 element at start+i.
func Uint64s(dst []uint64, seed, offset uint64, start int64) {
	var p pieces
	for p.start(len(dst), seed, offset, start); p.next(); {
		copy(dst[p.lo:p.hi], p.of())
	}
}

// UniformF64 sets dst[i] to the float64 uniform element at start+i.
func UniformF64(dst []float64, seed, offset uint64, start int64) {
	var p pieces
	for p.start(len(dst), seed, offset, start); p.next(); {
		to := dst[p.lo:p.hi]
		for i, x := range p.of() {
			to[i] = float64(int64(x>>11)) * 0x1p-53
		}
	}
}

// IntsBelow sets dst[i] to the integer element at start+i in [0, n), for n > 0, plus low, as a T has it.
func IntsBelow[T int8 | int16 | int32 | int64 | uint8 | float32 | float64](dst []T, seed, offset uint64, start int64, n uint64, low int64) {
	var p pieces
	for p.start(len(dst), seed, offset, start); p.next(); {
		to := dst[p.lo:p.hi]
		for i, x := range p.of() {
			h, _ := bits.Mul64(x, n)
			to[i] = T(low + int64(h))
		}
	}
}

// NormalF64 sets dst[i] to the standard normal element at start+i, within some units in the last
// place of NormFloat64.
func NormalF64(dst []float64, seed, offset uint64, start int64) {
	var p pieces
	for p.start(len(dst), seed, offset, start); p.next(); {
		var z [pieceWords]float64
		normals64(&z, &p.words, p.skip+p.hi-p.lo)
		copy(dst[p.lo:p.hi], z[p.skip:])
	}
}

// NormalF32 sets dst[i] to the standard normal element at start+i, rounded to
// float32.
func NormalF32(dst []float32, seed, offset uint64, start int64) {
	var p pieces
	for p.start(len(dst), seed, offset, start); p.next(); {
		var z [pieceWords]float32
		n := p.skip + p.hi - p.lo
		if s := normalStride(); s > 0 {
			normal32Native(z[:(n+s-1)/s*s], p.words[:])
		} else {
			var wide [pieceWords]float64
			normals64(&wide, &p.words, n)
			for i, x := range wide[:n] {
				z[i] = float32(x)
			}
		}
		copy(dst[p.lo:p.hi], z[p.skip:])
	}
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
