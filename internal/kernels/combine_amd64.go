//go:build amd64 && !noasm

package kernels

import (
	"math"
	"unsafe"

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

// hasOuter says whether Outer has loops for this processor.
var hasOuter = isa.AVX2()

// Outer sets dst to 0 plus f times each of row, rounded once as a product of matrices does it. It reports
// false, and does nothing, where there are no loops for that.
func Outer[T float32 | float64](dst, row []T, f T) bool {
	if !hasOuter {
		return false
	}
	dst = dst[:len(row)]
	per := 32 / int(unsafe.Sizeof(f))
	n := len(row) / per
	if n > 0 {
		outerVectors(dst, row, f, n)
	}
	if per == 8 {
		for i := n * per; i < len(row); i++ {
			dst[i] = T(float64(f)*float64(row[i]) + 0) // the product of singles is exact, and no zero is negative
		}
	} else {
		for i := n * per; i < len(row); i++ {
			dst[i] = T(math.FMA(float64(f), float64(row[i]), 0))
		}
	}
	return true
}

func outerVectors[T float32 | float64](dst, row []T, f T, n int) {
	to, from := unsafe.Pointer(&dst[0]), unsafe.Pointer(&row[0])
	if unsafe.Sizeof(f) == 4 {
		outerSinglesAVX2((*float32)(to), (*float32)(from), float32(f), n)
	} else {
		outerDoublesAVX2((*float64)(to), (*float64)(from), float64(f), n)
	}
}
