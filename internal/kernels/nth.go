package kernels

import (
	"math"
	"slices"
	"unsafe"
)

// Nth sets values and indices, one element a line, to the element at a place in the
// ascending order of each line. keys has n elements.
func Nth[T Number](values []T, indices []int64, x []T, n, inner int, wanted Rank, keys []uint64, lo, hi int) {
	var places [fewMost]int32
	s := selection{keys: keys, order: places[:]}
	var ranks ranks
	var zero T
	bits := keyAt != nil && unsafe.Sizeof(zero) <= 4 && n >= keyAtLeast && n <= keyAtMost
	each := !wanted.Median && (n > shortLine || wanted.At < 2) && isFew(n, wanted.At+1)
	for l := lo; l < hi; l++ {
		base := l/inner*n*inner + l%inner
		if each && few(&s, x[base:], n, wanted.At+1, inner, false) {
			i := places[wanted.At]
			values[l], indices[l] = x[base+int(i)*inner], int64(i)
			continue
		}
		if bits {
			i := nthByBits(x[base:], n, inner, wanted, keys)
			values[l], indices[l] = x[base+i*inner], int64(i)
			continue
		}
		numbers := 0
		for i := range n {
			v := x[base+i*inner]
			keys[i] = sortKey(v, false)
			if v == v {
				numbers++
			}
		}
		at := wanted.place(n, numbers)
		if n <= shortLine {
			i := slices.Index(ranks.of(keys[:n]), uint64(at))
			values[l], indices[l] = x[base+i*inner], int64(i)
			continue
		}
		key := nth(keys[:n], at)
		// Of equal keys as many come before the place as are not smaller.
		for _, k := range keys[:n] {
			if k < key {
				at--
			}
		}
		for i := range n {
			if v := x[base+i*inner]; sortKey(v, false) == key {
				if at--; at < 0 {
					values[l], indices[l] = v, int64(i)
					break
				}
			}
		}
	}
}

// Rank says which place Nth is about.
type Rank struct {
	At     int  // the place, unless it is that of a median
	Median bool // the lower median, or the first NaN where there is one
	// SkipNaN makes it the lower median of the elements that are no NaNs; a NaN where all are.
	SkipNaN bool
}

// place returns the place among n elements, so many of which are no NaNs.
func (r Rank) place(n, numbers int) int {
	switch {
	case !r.Median:
		return r.At
	case r.SkipNaN:
		return max(numbers-1, 0) / 2
	case numbers < n:
		return numbers
	}
	return (n - 1) / 2
}

// Lines of elements of at most 32 bits are searched bit by bit, from where that is faster than bringing them in
// order to where the keys leave the caches that are near.
const keyAtLeast, keyAtMost = 128, 1 << 16

// keyStep is of how many keys keyAt takes multiples.
const keyStep = 64

// nthByBits returns the place of the element at a place in the ascending order of a line. room has n elements.
func nthByBits[T Number](x []T, n, inner int, rank Rank, room []uint64) int {
	padded := (n + keyStep - 1) &^ (keyStep - 1)
	keys := unsafe.Slice((*int32)(unsafe.Pointer(&room[0])), 2*len(room))[:padded]
	numbers := signedKeys(keys[:n], x, inner)
	for i := n; i < padded; i++ {
		keys[i] = math.MaxInt32 // behind all others
	}
	at := rank.place(n, numbers)
	key, less := keyAt(&keys[0], padded, at)
	// Of equal keys as many come before the place as are not smaller.
	at -= less
	for i, k := range keys {
		if k == key {
			if at--; at < 0 {
				return i
			}
		}
	}
	return 0 // not reached: there are more than at such keys
}

// signedKeys sets keys to integers of the order of elements that lie inner apart, and returns how many are no NaNs.
func signedKeys[T Number](keys []int32, x []T, inner int) (numbers int) {
	p := 0
	if f, ok := any(x).([]float32); ok {
		for i := range keys {
			v := f[p]
			k := int32(math.Float32bits(v + 0)) // -0 + 0 is +0
			k ^= int32(uint32(k>>31) >> 1)
			if v == v {
				numbers++
			} else {
				k = math.MaxInt32
			}
			keys[i] = k
			p += inner
		}
		return numbers
	}
	for i := range keys {
		keys[i] = int32(sortKey32(x[p], false) ^ 1<<31)
		p += inner
	}
	return len(keys)
}
