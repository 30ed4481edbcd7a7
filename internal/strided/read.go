package strided

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Read fills dst with the elements start, start+1, … of the View of src.
func Read[T Bits](dst, src []T, v *View, start int) {
	if len(dst) == 0 {
		return
	}
	if v.Rank == 0 {
		fill(dst, src[v.Offset])
		return
	}
	if readTransposed(dst, src, v, start) || readCrossed(dst, src, v, start) || repeatTransposed(dst, src, v, start) {
		return
	}
	last := v.Rank - 1
	n, step := v.Dims[last], v.Strides[last]
	var at [MaxRank]int
	pos := v.Seek(start, &at)
	for i := at[last]; ; i = 0 {
		if i == 0 && step == 0 && n <= fewRepeats {
			if k := readRepeated(dst, src, v, &at, pos); k > 0 {
				dst = dst[k:]
				pos += k / n * v.Strides[last-1]
			}
			if len(dst) == 0 {
				return
			}
		}
		if i == 0 && step == 1 && shortRun[T](n) {
			var k int
			if k, pos = readShort(dst, src, v, &at, pos); k == len(dst) {
				return
			}
			dst = dst[k:]
		}
		if i == 0 && step != 1 {
			k := readFew(dst, src, v, &at, pos)
			if k > 0 {
				dst = dst[k:]
				pos += k / n * v.Strides[last-1]
			}
			if len(dst) == 0 {
				return
			}
		}
		k := min(n-i, len(dst))
		if step == 1 {
			move(dst[:k], src[pos:pos+k], v.Len())
		} else {
			readRun(dst[:k], src, pos, step)
		}
		dst = dst[k:]
		if len(dst) == 0 {
			return
		}
		pos -= i * step
		pos = v.Next(&at, last, pos)
	}
}

const (
	// moveMost is the bytes of a copy that the runtime makes through the cache: from 1 MiB on it stores past it.
	moveMost = 512 << 10
	// moveTogether is up to where the bytes on both sides are better kept in the cache of all processors.
	moveTogether = 20 << 20
)

// move sets dst to src, which is as long, as a part of moving so many elements. What fits the cache is
// stored there: whoever uses it next finds it, and two processors store past the cache no faster than one.
func move[T Bits](dst, src []T, elements int) {
	var x T
	size := int(unsafe.Sizeof(x))
	if most := moveMost / size; len(dst) > most && 2*elements*size <= moveTogether {
		for ; len(dst) > most; dst, src = dst[most:], src[most:] {
			copy(dst[:most], src[:most])
		}
	}
	copy(dst, src)
}

func readRun[T Bits](dst, src []T, pos, step int) {
	switch step {
	case 1:
		copy(dst, src[pos:pos+len(dst)])
	case 0:
		fill(dst, src[pos])
	case -1:
		Reverse(dst, src[pos-len(dst)+1:pos+1])
	case 2:
		Every(dst, src[pos:pos+2*len(dst)-1])
	case 3:
		third(dst, src[pos:pos+3*len(dst)-2])
	default:
		for i := range dst {
			dst[i] = src[pos]
			pos += step
		}
	}
}

// Reverse sets dst to src, which is as long and not empty, from its end, narrow elements at least eight
// bytes at a time.
func Reverse[T Bits](dst, src []T) {
	size := int(unsafe.Sizeof(src[0]))
	if reverseVectors(dst, src, len(dst), 1, 0) {
		return
	}
	if each := 8 / size; size <= 4 {
		to, from := unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), len(dst)*size), unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), len(src)*size)
		for ; len(dst) >= each; dst, src = dst[each:], src[:len(src)-each] {
			w := binary.LittleEndian.Uint64(from[len(from)-8:])
			switch size {
			case 4:
				w = bits.RotateLeft64(w, 32)
			case 2:
				const low = 0x00ff00ff00ff00ff
				w = bits.ReverseBytes64(w)
				w = w&low<<8 | w>>8&low
			default:
				w = bits.ReverseBytes64(w)
			}
			binary.LittleEndian.PutUint64(to, w)
			to, from = to[8:], from[:len(from)-8]
		}
	}
	for i := range dst {
		dst[i] = src[len(src)-1-i]
	}
}

// readRepeated is Read from a coordinate on while elements follow each other that are each repeated along
// the last dimension. It returns how many of dst it has set.
func readRepeated[T Bits](dst, src []T, v *View, at *[MaxRank]int, pos int) int {
	last := v.Rank - 1
	if last == 0 || v.Strides[last] != 0 {
		return 0
	}
	n, step := v.Dims[last], v.Strides[last-1]
	most := min(v.Dims[last-1]-at[last-1]-1, len(dst)/n)
	first := 0
	if n == 2 && step == 1 {
		first = twiceVectors(dst[:2*most], src[pos:pos+most])
	}
	first += repeatWords(dst[first*n:], src, pos+first*step, n, step, most-first)
	for i := first; i < most; i++ {
		x := src[pos+i*step]
		to := dst[i*n : (i+1)*n]
		for j := range to {
			to[j] = x
		}
	}
	at[last-1] += most
	return most * n
}

// readShort is Read from a coordinate on while short runs of adjacent elements follow each other. It returns how many of
// dst it has set, and the position of the coordinate that it has come to.
func readShort[T Bits](dst, src []T, v *View, at *[MaxRank]int, pos int) (set, next int) {
	last := v.Rank - 1
	if last == 0 {
		return 0, pos
	}
	n := v.Dims[last]
	if blocks := v.blocks(at, len(dst)); blocks > 0 {
		few := v.Dims[last-1]
		v.eachBlock(blocks, n*int(unsafe.Sizeof(dst[0])), func(j, first, k int) {
			moveRuns(dst, src, (first*few+j)*n, pos+first*v.Strides[last-2]+j*v.Strides[last-1], few*n, v.Strides[last-2], n, k)
		})
		at[last-2] += blocks
		set, pos = blocks*few*n, pos+blocks*v.Strides[last-2]
		dst = dst[set:]
	}
	// The last run is left to the caller, who goes on to the next dimension from it.
	down, most := v.Strides[last-1], min(v.Dims[last-1]-at[last-1]-1, len(dst)/n)
	if most <= 0 {
		return set, pos
	}
	i := readWhole(dst, src, pos, n, down, most)
	if i == 0 && down < 0 { // src ends with the first run
		moveRuns(dst, src, 0, pos, n, down, n, 1)
		i = 1 + readWhole(dst[n:], src, pos+down, n, down, most-1)
	}
	if i < most {
		moveRuns(dst, src, i*n, pos+i*down, n, down, n, most-i)
	}
	at[last-1] += most
	return set + most*n, pos + most*down
}

// shortRun reports whether readShort is for runs of n adjacent elements.
func shortRun[T Bits](n int) bool {
	var one T
	bytes := n * int(unsafe.Sizeof(one))
	return 1 < n && n <= fewElements || 8 <= bytes && bytes <= fewBytes
}

// repeatTransposed is Read of a View that repeats the elements of a Transposed one, which are read first.
func repeatTransposed[T Bits](dst, src []T, v *View, start int) bool {
	n := v.Dims[v.Rank-1]
	if v.Strides[v.Rank-1] != 0 || n < 2 || n > fewRepeats || start%n != 0 || len(dst)%n != 0 {
		return false
	}
	once := *v
	once.Rank--
	if !once.Transposed() {
		return false
	}
	// They are put at the end of what they will fill, from its start on.
	single := dst[len(dst)-len(dst)/n:]
	Read(single, src, &once, start/n)
	for i, x := range single {
		to := dst[i*n : (i+1)*n]
		for j := range to {
			to[j] = x
		}
	}
	return true
}

// fewRepeats is how often elements are repeated at most for a call of fill for each to cost more than
// the elements do.
const fewRepeats = 16

// fewElements is how long runs of adjacent elements are at most for a call of copy for each to cost more
// than a loop.
const fewElements = 4

// fewBytes is how long runs are at most for what is done for each to cost more than a copy of it.
const fewBytes = 1024

// readTransposed is Read by squares.
func readTransposed[T Bits](dst, src []T, v *View, start int) bool {
	if v.Rank < 2 {
		return false
	}
	width, down := v.Dims[v.Rank-1], v.Strides[v.Rank-2]
	return v.Squares(start, len(dst), func(at, pos, rows, cols, step int) {
		for k := range rows {
			row := dst[at+k*width:][:cols]
			p := pos + k*down
			for i := range row {
				row[i] = src[p]
				p += step
			}
		}
	})
}
