//go:build amd64 && !noasm

package kernels

import "github.com/loris-ml/loris/internal/isa"

// nativeRowLoops returns the loops that this processor can run.
func nativeRowLoops() (l allCombiners) {
	if !isa.AVX2() {
		return l
	}
	type c = combiners
	return allCombiners{
		u8: c{addBytesAVX2, maxUnsignedAVX2, minUnsignedAVX2}, i8: c{addBytesAVX2, maxBytesAVX2, minBytesAVX2},
		i16: c{addWordsAVX2, maxWordsAVX2, minWordsAVX2}, i32: c{addLongsAVX2, maxLongsAVX2, minLongsAVX2},
		i64: c{addQuadsAVX2, maxQuadsAVX2, minQuadsAVX2}, f32: c{addSinglesAVX2, maxSinglesAVX2, minSinglesAVX2},
		f64: c{addDoublesAVX2, maxDoublesAVX2, minDoublesAVX2},
	}
}

// nativeRamps returns the loops over equal steps that this processor can run.
func nativeRamps() (r rampLoops, l lineLoops) {
	if !isa.AVX2() {
		return r, l
	}
	r.ints[1], r.ints[2], r.ints[4], r.ints[8] = rampBytesAVX2, rampWordsAVX2, rampLongsAVX2, rampQuadsAVX2
	return r, lineLoops{lineSinglesAVX2, lineDoublesAVX2}
}
