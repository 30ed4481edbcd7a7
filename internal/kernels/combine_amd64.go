//go:build amd64 && !noasm

package kernels

import (
	"github.com/loris-ml/loris/internal/isa"
)

// nativeRowLoops returns the loops that this processor can run.
func nativeRowLoops() (l allCombiners) {
	if !isa.AVX2() {
		return l
	}
	type c = combiners
	return allCombiners{
		u8:  c{add: addBytesAVX2, max: maxUnsignedAVX2, min: minUnsignedAVX2},
		i8:  c{add: addBytesAVX2, max: maxBytesAVX2, min: minBytesAVX2},
		i16: c{add: addWordsAVX2, max: maxWordsAVX2, min: minWordsAVX2},
		i32: c{addLongsAVX2, maxLongsAVX2, minLongsAVX2, addLongsRowsAVX2},
		i64: c{addQuadsAVX2, maxQuadsAVX2, minQuadsAVX2, addQuadsRowsAVX2},
		f32: c{addSinglesAVX2, maxSinglesAVX2, minSinglesAVX2, addSinglesRowsAVX2},
		f64: c{addDoublesAVX2, maxDoublesAVX2, minDoublesAVX2, addDoublesRowsAVX2},
	}
}

// hasRamps says whether this processor has loops over equal steps. They are called by name, since memory that
// variables of functions are called with would be allocated for each call.
var hasRamps = isa.AVX2()

// ramp calls the loop over equal steps of integers of a size.
func ramp(size int, dst *byte, first, by *[32]byte, n int) {
	switch size {
	case 1:
		rampBytesAVX2(dst, first, by, n)
	case 2:
		rampWordsAVX2(dst, first, by, n)
	case 4:
		rampLongsAVX2(dst, first, by, n)
	default:
		rampQuadsAVX2(dst, first, by, n)
	}
}

func lineSingles(dst *float32, places *[8]float64, start, step, by float64, n int) {
	lineSinglesAVX2(dst, places, start, step, by, n)
}

func lineDoubles(dst *float64, places *[8]float64, start, step, by float64, n int) {
	lineDoublesAVX2(dst, places, start, step, by, n)
}
