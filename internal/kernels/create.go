package kernels

import "unsafe"

// ArangeInt sets dst[i] = start + (lo+i)·step, computed in int64.
func ArangeInt[T Number](dst []T, start, step int64, lo int) {
	for i := rampVectors(dst, start+int64(lo)*step, step); i < len(dst); i++ {
		dst[i] = T(start + int64(lo+i)*step)
	}
}

// ArangeFloat sets dst[i] = start + (lo+i)·step, computed in float64.
func ArangeFloat[T Number](dst []T, start, step float64, lo int) {
	for i := lineVectors(dst, start, step, lo, 1); i < len(dst); i++ {
		dst[i] = T(start + float64(lo+i)*step)
	}
}

// Linspace sets dst[i] to element lo+i of n evenly spaced numbers from start to
// end, counted from the nearer end, in float64.
func Linspace[T float32 | float64](dst []T, start, end float64, n, lo int) {
	if n == 1 {
		for i := range dst {
			dst[i] = T(start)
		}
		return
	}
	step := (end - start) / float64(n-1)
	first := dst[:max(0, min(len(dst), n/2-lo))]
	ArangeFloat(first, start, step, lo)
	lo, dst = lo+len(first), dst[len(first):]
	// The negative step gives the same bits as a difference.
	for i := lineVectors(dst, end, -step, n-1-lo, -1); i < len(dst); i++ {
		dst[i] = T(end - float64(n-1-lo-i)*step)
	}
}

// rampVectors is ArangeInt of whole vectors of integers, from an element on. It returns how many elements
// these have.
func rampVectors[T Number](dst []T, start, step int64) int {
	var x T
	size := int(unsafe.Sizeof(x))
	per := 32 / size
	half := 0.5
	if n := len(dst) / per; hasRamps && n > 0 && T(half) == 0 {
		var first, by [32]byte
		a, b := unsafe.Slice((*T)(unsafe.Pointer(&first)), per), unsafe.Slice((*T)(unsafe.Pointer(&by)), per)
		for i := range per {
			a[i], b[i] = T(start+int64(i)*step), T(int64(per)*step)
		}
		ramp(size, (*byte)(unsafe.Pointer(&dst[0])), &first, &by, n)
		return n * per
	}
	return 0
}

// lineVectors sets whole vectors of floats to start + place·step for places from first on, each by more
// than the one before. It returns how many elements these have.
func lineVectors[T Number](dst []T, start, step float64, first, by int) int {
	n := len(dst) / 8
	if n == 0 || !hasRamps {
		return 0
	}
	var places [8]float64
	for i := range places {
		places[i] = float64(first + i*by)
	}
	switch to := any(&dst[0]).(type) {
	case *float32:
		lineSingles(to, &places, start, step, float64(8*by), n)
		return 8 * n
	case *float64:
		lineDoubles(to, &places, start, step, float64(8*by), n)
		return 8 * n
	}
	return 0
}
