package kernels

// Sorting by the digits of keys, the lowest first. Each pass keeps the order of
// equal digits and leaves out what all keys have in common.

const (
	digitBits = 11
	digits    = 1 << digitBits
	// radixLeast is from how many keys on counting digits is faster than comparing.
	radixLeast = 768
	// bytesLeast is from how many packed keys on counting bytes is: there are fewer counts to add up than of digits.
	bytesLeast = 40
)

// starts turns the counts of a digit into where each begins. It reports whether
// all n keys have the same.
func starts(counts *[digits]uint32, n int) (same bool) {
	at := uint32(0)
	for d, c := range counts {
		if int(c) == n {
			return true
		}
		counts[d] = at
		at += c
	}
	return false
}

// radixPacked sorts k by the high halves; spare has its length. It returns the
// one of the two that has the result.
func radixPacked(k, spare []uint64) []uint64 {
	const passes = 3 // of 32 bits
	var counts [passes][digits]uint32
	for _, x := range k {
		counts[0][x>>32&(digits-1)]++
		counts[1][x>>(32+digitBits)&(digits-1)]++
		counts[2][x>>(32+2*digitBits)]++
	}
	for pass := range counts {
		c := &counts[pass]
		if starts(c, len(k)) {
			continue
		}
		shift := 32 + digitBits*pass
		for _, x := range k {
			d := x >> shift & (digits - 1)
			spare[c[d]] = x
			c[d]++
		}
		k, spare = spare, k
	}
	return k
}

// radixByBytes is radixPacked of fewer keys than radixLeast.
func radixByBytes(k, spare []uint64) []uint64 {
	var counts [4][256]uint16
	for _, x := range k {
		counts[0][uint8(x>>32)]++
		counts[1][uint8(x>>40)]++
		counts[2][uint8(x>>48)]++
		counts[3][uint8(x>>56)]++
	}
	for pass := range counts {
		c, shift := &counts[pass], 32+8*pass
		if int(c[uint8(k[0]>>shift)]) == len(k) {
			continue
		}
		at := uint16(0)
		for d, n := range c {
			c[d] = at
			at += n
		}
		for _, x := range k {
			p := &c[uint8(x>>shift)]
			spare[*p] = x
			*p++
		}
		k, spare = spare, k
	}
	return k
}

// radixKeys is sortKeys for many keys.
func radixKeys(keys []uint64, order []int32, n int) []int32 {
	const passes = (64 + digitBits - 1) / digitBits
	var counts [passes][digits]uint32
	k, k2, o, o2 := keys[:n], keys[n:2*n], order[:n], order[n:2*n]
	for _, x := range k {
		for pass := range counts {
			counts[pass][x>>(digitBits*pass)&(digits-1)]++
		}
	}
	for pass := range counts {
		c := &counts[pass]
		if starts(c, n) {
			continue
		}
		for i, x := range k {
			d := x >> (digitBits * pass) & (digits - 1)
			at := c[d]
			c[d]++
			k2[at], o2[at] = x, o[i]
		}
		k, k2, o, o2 = k2, k, o2, o
	}
	return o
}
