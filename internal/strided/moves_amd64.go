//go:build amd64 && !noasm

package strided

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../moves_amd64.s -stubs ../moves_stubs_amd64.go -pkg strided

// vectors says whether the processor has vectors of 32 bytes; tests clear it.
var vectors = isa.AVX2()

// callMost is the most bytes of one call, some microseconds, in which the runtime can't stop the
// goroutine.
const callMost = 256 << 10

// turns has the masks that reverse the elements of half a vector, by their size.
var turns = func() (m [9][32]byte) {
	for _, size := range []int{1, 2, 4, 8} {
		for i := range m[size] {
			m[size][i] = byte((15-i%16)/size*size + i%size)
		}
	}
	return m
}()

// reverseVectors sets rows of n elements, one behind the other from the beginning of dst on, to those of src, from their
// ends; that of the first is where src ends, and others are down elements apart. It reports whether it did.
func reverseVectors[T Bits](dst, src []T, n, rows, down int) bool {
	size := int(unsafe.Sizeof(dst[0]))
	bytes := n * size
	if !vectors || size > 8 || bytes < 32 {
		return false
	}
	to, end := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Add(unsafe.Pointer(unsafe.SliceData(src)), len(src)*size)
	for ; rows > 0 && bytes <= callMost; rows -= callMost / bytes {
		k := min(rows, callMost/bytes)
		reverseAVX2((*byte)(to), (*byte)(end), &turns[size], bytes, k, bytes, down*size)
		if k == rows {
			return true
		}
		to, end = unsafe.Add(to, k*bytes), unsafe.Add(end, k*down*size)
	}
	for r := range rows {
		for at := 0; at < bytes; at += callMost { // the last part is at least a vector, and perhaps there already
			k := min(callMost, bytes-at)
			from := min(at, bytes-max(k, 32))
			reverseAVX2((*byte)(unsafe.Add(to, r*bytes+from)), (*byte)(unsafe.Add(end, r*down*size-from)), &turns[size], max(k, 32), 1, 0, 0)
		}
	}
	return true
}

// runVectors is moveRuns of runs of so many bytes, up and down bytes apart, and reports whether it has moved
// them.
func runVectors(dst, src unsafe.Pointer, up, down, bytes, runs int) bool {
	if !vectors || bytes < 32 {
		return false
	}
	for most := max(1, callMost/bytes); runs > 0; runs -= most {
		k := min(most, runs)
		runsAVX2((*byte)(dst), (*byte)(src), up, down, bytes, k)
		if k == runs {
			break
		}
		dst, src = unsafe.Add(dst, k*up), unsafe.Add(src, k*down)
	}
	return true
}

// transposeVectors is TransposeNarrow of a multiple of 8 rows and of 16 columns, of which it returns how
// many there were.
func transposeVectors[T uint8 | uint16](dst []T, width int, src []T, step, rows, cols int) (moved, movedCols int) {
	rows, cols = rows&^7, cols&^15
	if !vectors || rows == 0 || cols == 0 {
		return 0, 0
	}
	_, _ = dst[(rows-1)*width+cols-1], src[(cols-1)*step+rows-1]
	for c := 0; c < cols; c += 16 {
		to, from := unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c*step])
		if unsafe.Sizeof(dst[0]) == 1 {
			transpose8AVX2((*uint8)(to), (*uint8)(from), width, step, rows)
		} else {
			transpose16AVX2((*uint16)(to), (*uint16)(from), width, step, rows)
		}
	}
	return rows, cols
}

// transposeFew is TransposeNarrow of fewer than 8 rows, and returns how many columns it has moved: those
// that it can read 8 elements of without leaving src.
func transposeFew[T uint8 | uint16](dst []T, width int, src []T, step, rows, cols int) int {
	if !vectors {
		return 0
	}
	if n := cols &^ 15; rows == 3 && step == 3 && n > 0 && unsafe.Sizeof(src[0]) == 1 {
		_, _ = dst[2*width+n-1], src[3*n-1]
		thirds1AVX2((*uint8)(unsafe.Pointer(&dst[0])), (*uint8)(unsafe.Pointer(&src[0])), width, n)
		return n
	}
	var block [8 * 16]T
	to, c := unsafe.Pointer(&block), 0
	for ; c+16 <= cols && (c+15)*step+8 <= len(src); c += 16 {
		from := unsafe.Pointer(&src[c*step])
		if unsafe.Sizeof(block[0]) == 1 {
			transpose8AVX2((*uint8)(to), (*uint8)(from), 16, step, 8)
		} else {
			transpose16AVX2((*uint16)(to), (*uint16)(from), 16, step, 8)
		}
		for k := range rows {
			*(*[16]T)(dst[k*width+c:]) = *(*[16]T)(block[k*16:])
		}
	}
	return c
}

// A secondLoop moves n bytes, a multiple of 32 above zero, between elements that adjoin and every second one.
type secondLoop = func(dst, src *byte, n int)

var (
	everies = [9]secondLoop{1: every1AVX2, 2: every2AVX2, 4: every4AVX2, 8: every8AVX2}
	spreads = [9]secondLoop{1: spread1AVX2, 2: spread2AVX2, 4: spread4AVX2, 8: spread8AVX2}
	twices  = [9]secondLoop{1: twice1AVX2, 2: twice2AVX2, 4: twice4AVX2, 8: twice8AVX2}
)

// everyVectors is Every of a multiple of vectors, of which it returns the elements. It leaves the last
// element, behind which src may end.
func everyVectors[T Bits](dst, src []T) int {
	n := wholeVectors(dst)
	if n > 0 {
		size := int(unsafe.Sizeof(dst[0]))
		everies[size]((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[:2*n][0])), n*size)
	}
	return n
}

// thirdVectors sets whole vectors at the beginning of dst to every third element of src, and returns how many
// elements that were. It leaves the last element, behind which src may end.
func thirdVectors[T Bits](dst, src []T) int {
	n := wholeVectors(dst)
	if n == 0 {
		return 0
	}
	switch unsafe.Sizeof(dst[0]) {
	case 1:
		third1AVX2((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[:3*n][0])), n)
	case 4:
		third4AVX2((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[:3*n][0])), n*4)
	default:
		return 0
	}
	return n
}

// spreadVectors is Spread of a multiple of vectors, of which it returns the elements.
func spreadVectors[T Bits](dst, src []T) int {
	n := wholeVectors(src)
	if n > 0 {
		size := int(unsafe.Sizeof(src[0]))
		spreads[size]((*byte)(unsafe.Pointer(&dst[:2*n][0])), (*byte)(unsafe.Pointer(&src[0])), n*size)
	}
	return n
}

// twiceVectors sets dst to the elements of src, each of them twice, of a multiple of vectors, of which it
// returns the elements.
func twiceVectors[T Bits](dst, src []T) int {
	n := wholeVectors(src)
	if n > 0 {
		size := int(unsafe.Sizeof(src[0]))
		twices[size]((*byte)(unsafe.Pointer(&dst[:2*n][0])), (*byte)(unsafe.Pointer(&src[0])), n*size)
	}
	return n
}

// wholeVectors returns how many elements of all but the last are whole vectors.
func wholeVectors[T Bits](list []T) int {
	if !vectors || len(list) == 0 {
		return 0
	}
	size := int(unsafe.Sizeof(list[0]))
	if size > 8 {
		return 0
	}
	return (len(list) - 1) * size / 32 * 32 / size
}
