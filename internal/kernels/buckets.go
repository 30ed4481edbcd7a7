package kernels

import "math/bits"

// Sorting few keys by where they lie between the least and the greatest, and then by comparing.
const (
	bucketLeast, bucketMost = 64, 2048
	// bucketFull is how many keys of a bucket are too many to be compared.
	bucketFull = 24
)

// bucketKeys is sortKeys where keys are spread, or equal: they are put into about twice as many buckets in
// their order, so that few of each remain to be compared. It returns nil, and has changed nothing but the
// scratch halves, where there are too many different ones in a bucket.
func bucketKeys(keys []uint64, order []int32, n int) []int32 {
	k, sorted, o, places := keys[:n], keys[n:2*n], order[:n], order[n:2*n]
	least, greatest := k[0], k[0]
	for _, x := range k {
		least, greatest = min(least, x), max(greatest, x)
	}
	shift := max(0, bits.Len64(greatest-least)-bits.Len(uint(n)))
	var counts [2 * bucketMost]uint32
	buckets := counts[:(greatest-least)>>shift+1]
	for _, x := range k {
		buckets[(x-least)>>shift]++
	}
	at := uint32(0)
	for i, c := range buckets {
		if c > bucketFull && shift > 0 {
			return nil
		}
		buckets[i] = at
		at += c
	}
	for i, x := range k {
		b := &buckets[(x-least)>>shift]
		sorted[*b], places[*b] = x, o[i]
		*b++
	}
	if shift > 0 {
		insertionSort(sorted, places)
	}
	return places
}
