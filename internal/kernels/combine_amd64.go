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
		i64: c{add: addQuadsAVX2}, f32: c{addSinglesAVX2, maxSinglesAVX2, minSinglesAVX2},
		f64: c{addDoublesAVX2, maxDoublesAVX2, minDoublesAVX2},
	}
}
