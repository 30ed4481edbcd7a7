package kernels

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/strided"
)

// An indexLoop goes through n elements of an index, until one is not that of one of size elements, and
// returns how many those were.
type indexLoop = func(dst, src *byte, index *int64, size, n int) int

// indexLoops are the processor's loops by the size of elements, nil where it has none.
type indexLoops struct {
	take, takeWrapped      [9]indexLoop
	put, addInts           [9]indexLoop
	addSingles, addDoubles indexLoop
}

var indexed = nativeIndexLoops()

// indexMost is the most elements of one call, some tens of microseconds, in which the runtime can't stop
// the goroutine.
const indexMost = 1 << 16

// through runs a loop for the elements of an index, and returns how many it did: all, or those before one
// that is out of range. src is as long as index where selects is dst, and dst otherwise.
func through[T any](f indexLoop, dst, src []T, index []int64, size int, putting bool) (done int) {
	if f == nil || size == 0 {
		return 0
	}
	var x T
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	for done < len(index) {
		n := min(indexMost, len(index)-done)
		off := done * int(unsafe.Sizeof(x))
		var k int
		if putting {
			k = f((*byte)(to), (*byte)(unsafe.Add(from, off)), &index[done], size, n)
		} else {
			k = f((*byte)(unsafe.Add(to, off)), (*byte)(from), &index[done], size, n)
		}
		if done += k; k < n {
			break
		}
	}
	return done
}

// takeEach sets each of dst to the element of row that index selects.
func takeEach[T strided.Bits](dst, row []T, index []int64) {
	dst = dst[:len(index)]
	var x T
	i := 0
	if size := unsafe.Sizeof(x); size <= 8 {
		i = through(indexed.take[size], dst, row, index, len(row), false)
	}
	for ; i < len(index); i++ {
		dst[i] = row[checked(index[i], len(row))]
	}
}

// TakeWrapped sets each of dst to the element of row that index selects, from the end of it where that is negative.
func TakeWrapped[T strided.Bits](dst, row []T, index []int64) {
	dst = dst[:len(index)]
	var x T
	i := 0
	if size := unsafe.Sizeof(x); size <= 8 {
		i = through(indexed.takeWrapped[size], dst, row, index, len(row), false)
	}
	for ; i < len(index); i++ {
		dst[i] = row[checked(fromEnd(index[i], len(row)), len(row))]
	}
}

// putEach sets the elements of row that index selects to those of src, in the order of the index.
func putEach[T strided.Bits](row []T, index []int64, src []T) {
	src = src[:len(index)]
	var x T
	i := 0
	if size := unsafe.Sizeof(x); size <= 8 {
		i = through(indexed.put[size], row, src, index, len(row), true)
	}
	for ; i < len(index); i++ {
		row[checked(index[i], len(row))] = src[i]
	}
}

// addEach adds each element of src to the one of row that index selects, in the order of the index.
func addEach[T Number](row []T, index []int64, src []T) {
	src = src[:len(index)]
	if inRuns(index) {
		addRuns(row, index, src)
		return
	}
	var f indexLoop
	var x T
	switch any(x).(type) {
	case float32:
		f = indexed.addSingles
	case float64:
		f = indexed.addDoubles
	default:
		f = indexed.addInts[unsafe.Sizeof(x)]
	}
	for i := through(f, row, src, index, len(row), true); i < len(index); i++ {
		row[checked(index[i], len(row))] += src[i]
	}
}

// runSamples is how many elements inRuns looks at.
const runSamples = 16

// inRuns reports whether most elements of an index are those before them, as where the gradient of running maxima
// goes: an element that is added to again and again is not to wait for its own memory. It looks in the middle only,
// since the index may not be in a cache yet.
func inRuns(index []int64) bool {
	if len(index) < 2*runSamples {
		return false
	}
	same := 0
	some := index[len(index)/2:]
	for i, v := range some[1:runSamples] {
		if v == some[i] {
			same++
		}
	}
	return same >= runSamples*3/4
}

// addRuns is addEach with what one element is set to in a register.
func addRuns[T Number](row []T, index []int64, src []T) {
	for i := 0; i < len(index); {
		at := index[i]
		p := checked(at, len(row))
		sum := row[p]
		for ; i < len(index) && index[i] == at; i++ {
			sum += src[i]
		}
		row[p] = sum
	}
}
