package kernels

import "math/bits"

// Random permutations: the order of random words.

const (
	// wordBits are the bits of a word that decide its place in the order, those of a uniform f64 number.
	wordBits = 53
	// splitBits is into how many parts, as bits, words are split at a time at most.
	splitBits = 10
	// partBits are the bits that a part is sorted by, which has no more than partMost words.
	partBits, partMost = 9, 1024
)

// permutation is a line that Permute sorts.
type permutation[T Number] struct {
	mask uint64                 // where the places of words are
	word func(place int) uint64 // a word as it was
}

// Permute sets dst to the order of random words: their places, by the upper 53 bits, and of equal ones the first
// before. It changes words; spare has their length. word returns a word as it was.
//
// The lower bits of a word make room for its place. Words are split by their upper bits until few remain in a part:
// since they are random, all parts have about as many, and a few more bits put a part almost in order.
func Permute[T Number](dst []T, words, spare []uint64, word func(place int) uint64) {
	low := max(64-wordBits, bits.Len(uint(len(words))))
	p := permutation[T]{1<<low - 1, word}
	for i, x := range words {
		words[i] = x&^p.mask | uint64(i)
	}
	p.sort(dst, words, spare, 64)
}

// sort writes the places of k to dst in the order of the bits below top, which is all that words differ in.
func (p *permutation[T]) sort(dst []T, k, spare []uint64, top int) {
	if len(k) <= partMost || top < splitBits+partBits {
		p.sortPart(dst, k, spare, top)
		return
	}
	digit := min(splitBits, bits.Len(uint(len(k)))-partBits)
	top -= digit
	var parts [1 << splitBits]uint32
	splitWords(spare, k, parts[:1<<digit], uint(top))
	from := uint32(0)
	for _, to := range parts[:1<<digit] {
		p.sort(dst[from:to], spare[from:to], k[from:to], top)
		from = to
	}
}

// splitWords writes k to dst in the order of the bits from shift on of which there are as many values as ends, which
// begin as zeros, and sets these to where the words of each value end. Equal ones stay in order.
func splitWords(dst, k []uint64, ends []uint32, shift uint) {
	most := len(ends) - 1
	for _, x := range k {
		ends[int(x>>(shift%64))&most]++
	}
	sum := uint32(0)
	for i, c := range ends {
		ends[i] = sum
		sum += c
	}
	moveWords(dst, k, ends, shift)
}

// moveWords is splitWords once it is known where the words of each value begin.
func moveWords(dst, k []uint64, starts []uint32, shift uint) {
	most := len(starts) - 1
	for _, x := range k {
		start := &starts[int(x>>(shift%64))&most]
		at := *start
		*start = at + 1
		dst[at] = x
	}
}

// sortPart is sort of few words.
func (p *permutation[T]) sortPart(dst []T, k, spare []uint64, top int) {
	var ends [1 << partBits]uint32
	splitWords(spare, k, ends[:], uint(top-partBits))
	spare = spare[:len(k)]
	if settle(spare, p.mask) && p.mask>>(64-wordBits) > 0 {
		p.settleEqual(spare)
	}
	for i, x := range spare {
		dst[i] = T(int64(x & p.mask))
	}
}

// settle moves words that are almost in order to their places, and reports whether two are equal but for the bits of
// mask. Most that are not in order have one of their neighbours before them, so that these change places without a branch.
func settle(k []uint64, mask uint64) (equal bool) {
	if len(k) == 0 {
		return false
	}
	last, held := uint64(0), k[0]
	for i, x := range k[1:] {
		least := min(held, x)
		held = max(held, x)
		if least > last|mask {
			k[i], last = least, least
			continue
		}
		equal = settleWord(k, i, least, mask) || equal
		last = k[i]
	}
	return settleWord(k, len(k)-1, held, mask) || equal
}

// settleWord puts x among k[:n], which is in order, and reports whether it is equal to one of them but for the bits of mask.
func settleWord(k []uint64, n int, x, mask uint64) (equal bool) {
	j := n
	for ; j > 0 && k[j-1] > x; j-- {
		k[j] = k[j-1]
	}
	k[j] = x
	return j > 0 && (k[j-1]^x)&^mask == 0 || j < n && (k[j+1]^x)&^mask == 0
}

// settleEqual orders words that are equal but for their places by the bits that these replaced.
func (p *permutation[T]) settleEqual(k []uint64) {
	full := func(x uint64) uint64 { return p.word(int(x&p.mask)) >> (64 - wordBits) }
	for i := 1; i < len(k); i++ {
		x := k[i]
		j := i
		for ; j > 0 && (k[j-1]^x)&^p.mask == 0 && full(k[j-1]) > full(x); j-- {
			k[j] = k[j-1]
		}
		k[j] = x
	}
}
