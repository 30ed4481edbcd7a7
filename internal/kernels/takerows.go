package kernels

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/strided"
)

// Rows of few bytes that an index selects are moved without a call for each, which would take longer than they do.

const (
	// shortRowBytes is how many bytes such a row has at most, and vectorRowBytes one that the processor's loop moves.
	shortRowBytes, vectorRowBytes = 64, 512
	// rowCallBytes is the most bytes of one call, some microseconds, in which the runtime can't stop the goroutine.
	rowCallBytes = 256 << 10
)

// rowLoop copies rows of bytes by an index, until one is not that of one of size rows, and returns how many
// those were. It is nil where the processor has none.
var rowLoop = nativeRowLoop()

// takeRows sets each row of dst, of inner elements, to the row of src that index selects of its size.
func takeRows[T strided.Bits](dst, src []T, index []int64, size, inner int) {
	bytes := inner * int(unsafe.Sizeof(*new(T)))
	dst, src = dst[:len(index)*inner], src[:size*inner]
	j := 0
	if bytes <= vectorRowBytes && rowLoop != nil && size > 0 {
		j = takeByVectors(dst, src, index, size, bytes)
	} else if bytes >= 8 && bytes <= shortRowBytes {
		takeInParts(dst, src, index, size, bytes)
		return
	}
	for ; j < len(index); j++ {
		p := checked(index[j], size) * inner
		copy(dst[j*inner:(j+1)*inner], src[p:p+inner])
	}
}

// takeByVectors is takeRows by the processor's loop, until an index is out of range; it returns how many it did.
func takeByVectors[T strided.Bits](dst, src []T, index []int64, size, bytes int) (done int) {
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), (*byte)(unsafe.Pointer(unsafe.SliceData(src)))
	for most := rowCallBytes / bytes; done < len(index); {
		n := min(most, len(index)-done)
		k := rowLoop((*byte)(unsafe.Add(to, done*bytes)), from, &index[done], size, bytes, n)
		if done += k; k < n {
			break
		}
	}
	return done
}

// takeInParts is takeRows of rows of 8 to 64 bytes, of which the last two parts overlap.
func takeInParts[T strided.Bits](dst, src []T, index []int64, size, bytes int) {
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	switch {
	case bytes < 16:
		for j, ix := range index {
			f, t := unsafe.Add(from, checked(ix, size)*bytes), unsafe.Add(to, j*bytes)
			first, last := *(*[8]byte)(f), *(*[8]byte)(unsafe.Add(f, bytes-8))
			*(*[8]byte)(t), *(*[8]byte)(unsafe.Add(t, bytes-8)) = first, last
		}
	case bytes <= 32:
		for j, ix := range index {
			f, t := unsafe.Add(from, checked(ix, size)*bytes), unsafe.Add(to, j*bytes)
			first, last := *(*[16]byte)(f), *(*[16]byte)(unsafe.Add(f, bytes-16))
			*(*[16]byte)(t), *(*[16]byte)(unsafe.Add(t, bytes-16)) = first, last
		}
	default:
		for j, ix := range index {
			f, t := unsafe.Add(from, checked(ix, size)*bytes), unsafe.Add(to, j*bytes)
			first, second := *(*[16]byte)(f), *(*[16]byte)(unsafe.Add(f, 16))
			third, last := *(*[16]byte)(unsafe.Add(f, bytes-32)), *(*[16]byte)(unsafe.Add(f, bytes-16))
			*(*[16]byte)(t), *(*[16]byte)(unsafe.Add(t, 16)) = first, second
			*(*[16]byte)(unsafe.Add(t, bytes-32)), *(*[16]byte)(unsafe.Add(t, bytes-16)) = third, last
		}
	}
}
