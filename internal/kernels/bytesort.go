package kernels

import "unsafe"

// byteLeast is from how many elements of 8 bits on a line is sorted by counting all their values.
const byteLeast = 24

// sortBytes is Sort for a line of n elements of 8 bits, inner apart.
func sortBytes[T Number](values []T, indices []int64, x []T, n, inner int, descending bool) {
	var counts [256]uint32
	flip := byteFlip[T](descending)
	for p := 0; p < n*inner; p += inner {
		counts[uint8(int64(x[p]))^flip]++
	}
	at := uint32(0)
	for d, c := range counts {
		counts[d] = at
		at += c
	}
	i := int64(0)
	for p := 0; p < n*inner; p += inner {
		v := x[p]
		c := &counts[uint8(int64(v))^flip]
		to := int(*c) * inner
		*c++
		values[to], indices[to] = v, i
		i++
	}
}

// byteFlip is what a byte is combined with so that the results, without a sign, are in the order that is asked
// for: the complement is the descending order, and the highest bit of signed elements is turned.
func byteFlip[T Number](descending bool) (flip uint8) {
	var zero T
	if zero-1 < 0 {
		flip = 0x80
	}
	if descending {
		flip = ^flip
	}
	return flip
}

// isByte reports whether elements have 8 bits.
func isByte[T Number]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 1
}
