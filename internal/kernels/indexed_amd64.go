//go:build amd64 && !noasm

package kernels

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

// nativeIndexLoops returns the loops over an index, which every such processor can run.
func nativeIndexLoops() (l indexLoops) {
	l.take[1], l.take[2], l.take[4], l.take[8] = take1Indexed, take2Indexed, take4Indexed, take8Indexed
	l.takeWrapped[1], l.takeWrapped[2], l.takeWrapped[4], l.takeWrapped[8] = takeWrapped1Indexed, takeWrapped2Indexed, takeWrapped4Indexed, takeWrapped8Indexed
	l.put[1], l.put[2], l.put[4], l.put[8] = put1Indexed, put2Indexed, put4Indexed, put8Indexed
	l.addInts[1], l.addInts[2], l.addInts[4], l.addInts[8] = putSum1Indexed, putSum2Indexed, putSum4Indexed, putSum8Indexed
	l.addSingles, l.addDoubles = putSumSinglesIndexed, putSumDoublesIndexed
	return l
}

// nativeRowLoop returns the loop over rows, which needs masks of bytes.
func nativeRowLoop() func(dst, src *byte, index *int64, size, bytes, n int) int {
	if isa.AVX512() {
		return takeRowsAVX512
	}
	return nil
}

// prefetchMost is how many lines of a row are asked for at a time.
const prefetchMost = 1 << 10

// prefetch asks for the memory of a row that is read soon.
func prefetch[T any](row []T) {
	if n := (len(row)*int(unsafe.Sizeof(*new(T))) + 63) / 64; n > 0 {
		prefetchLines((*byte)(unsafe.Pointer(&row[0])), min(n, prefetchMost))
	}
}
