package kernels

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// Selecting elements by their place in the order of Sort, without sorting what is
// not asked for. Keys are those of sortKey; of equal ones the first counts as the
// smaller. Lines are as in Sort.

// TopK sets values and indices, seen as [outer, k, inner], to the first k elements
// of each line in the order of Sort. The scratch slices have TopKScratch elements.
func TopK[T Number](values []T, indices []int64, x []T, n, k, inner int, descending bool, keys []uint64, order []int32, lo, hi int) {
	if k == 0 {
		return
	}
	room := topKRoom(n, k)
	s := selection{keys: keys[:room], order: order[:room], spare: keys[room : 2*room]}
	var zero T
	whole := unsafe.Sizeof(zero) <= 4 && n < radixLeast && n <= room
	var ranks ranks
	each := isFew(n, k) && !(whole && n <= shortLine && k > 1)
	for l := lo; l < hi; l++ {
		base := l/inner*n*inner + l%inner
		at := l/inner*k*inner + l%inner
		first := order[:k]
		switch {
		case each && few(&s, x[base:], n, k, inner, descending):
		case whole:
			for i, packed := range sortPacked(x[base:], n, inner, descending, keys, &ranks)[:k] {
				first[i] = int32(uint32(packed))
			}
		default:
			firstK(&s, x[base:], n, k, inner, descending)
			// The kept keys are in the order of their places, so that a stable sort is
			// the order of Sort.
			first = sortKeys(keys[:2*k], order[:2*k], k, &ranks)
		}
		for _, i := range first {
			values[at], indices[at] = x[base+int(i)*inner], int64(i)
			at += inner
		}
	}
}

// topKRoom is how many elements are kept before those beyond the first k are given
// up.
func topKRoom(n, k int) int { return max(min(n, 2*k+256), 1) }

// TopKScratch returns how many elements the scratch slices of TopK have.
func TopKScratch(n, k int) int { return 2 * topKRoom(n, k) }

// selection has keys and where they were.
type selection struct {
	keys  []uint64
	order []int32
	spare []uint64 // as long as keys
	n     int
}

// The first fewMost elements of a line can be found by putting each among those so far, as
// long as that moves no more than fewMoves elements for each of the line.
const fewMost, fewMoves = 32, 2

// isFew reports whether few is likely to find them in elements that lie in no order: the first k move half of those before
// them, and of the others element i is among the first k with a probability of k/i.
func isFew(n, k int) bool {
	if k > fewMost || k >= n {
		return false
	}
	return float64(k*k)*(0.25+0.5*math.Log(float64(n)/float64(k))) <= float64(fewMoves*n)
}

// few leaves the first k elements of a line in s, in the order of Sort. It reports whether it did: only of
// lines that isFew says, and where most elements are not among the first so far.
func few[T Number](s *selection, x []T, n, k, inner int, descending bool) bool {
	keys, order, left := s.keys[:k], s.order[:k], fewMoves*n
	put := func(have int, key uint64, i int) {
		j := have
		for ; j > 0 && keys[j-1] > key; j-- {
			keys[j], order[j] = keys[j-1], order[j-1]
		}
		keys[j], order[j] = key, int32(i)
		left -= have - j
	}
	for i := range k {
		put(i, sortKey(x[i*inner], descending), i)
	}
	worst := x[int(order[k-1])*inner]
	for i, p := k, k*inner; i < n; i, p = i+1, p+inner {
		v := x[p]
		if descending && v <= worst || !descending && v >= worst {
			continue
		}
		key := sortKey(v, descending)
		if key >= keys[k-1] {
			continue
		}
		if put(k-1, key, i); left < 0 {
			return false
		}
		worst = x[int(order[k-1])*inner]
	}
	return true
}

// firstK leaves the first k elements of a line in s, in the order of their places.
func firstK[T Number](s *selection, x []T, n, k, inner int, descending bool) {
	s.n = 0
	i := 0
	for ; i < n && s.n < len(s.keys); i++ {
		s.keys[s.n], s.order[s.n] = sortKey(x[i*inner], descending), int32(i)
		s.n++
	}
	s.cut(k)
	for i < n {
		// Most of what follows is not better than the k-th so far, nor equal to NaN.
		worst := x[int(s.last(k))*inner]
		for p := i * inner; i < n; i, p = i+1, p+inner {
			v := x[p]
			if descending && v <= worst || !descending && v >= worst {
				continue
			}
			s.keys[s.n], s.order[s.n] = sortKey(v, descending), int32(i)
			if s.n++; s.n == len(s.keys) {
				i++
				break
			}
		}
		s.cut(k)
	}
}

// last returns the place of the greatest of the first k keys.
func (s *selection) last(k int) int32 {
	at := 0
	for i, key := range s.keys[:k] {
		if key >= s.keys[at] {
			at = i
		}
	}
	return s.order[at]
}

// cut drops all but the first k, and keeps those in the order of their places.
func (s *selection) cut(k int) {
	if s.n <= k {
		return
	}
	copy(s.spare, s.keys[:s.n])
	kth := nth(s.spare[:s.n], k-1)
	equal := k
	for _, key := range s.keys[:s.n] {
		if key < kth {
			equal--
		}
	}
	to := 0
	for i, key := range s.keys[:s.n] {
		if key > kth {
			continue
		}
		if key == kth {
			if equal == 0 {
				continue
			}
			equal--
		}
		s.keys[to], s.order[to] = key, s.order[i]
		to++
	}
	s.n = to
}

// nth returns the key at a place in the order of k, whose order it changes. Of many keys those between two of a
// sample, with which the place is likely to be, are looked at alone (Floyd and Rivest, "Expected time bounds for
// selection", 1975).
func nth(k []uint64, at int) uint64 {
	for len(k) >= sampleLeast {
		lo, hi := around(k, at)
		less, within := between(k, lo, hi)
		if at < less || at >= less+within || within > len(k)/2 {
			break // the sample was misleading, or there are many equal keys
		}
		if lo == hi {
			return lo
		}
		k, at = k[:within], at-less
	}
	for rounds := 0; len(k) > 24; rounds++ {
		if rounds == 64 { // an order that defeats the choice of pivots
			break
		}
		p := pivot(k)
		less, equal := partition(k, p)
		switch {
		case at < less:
			k = k[:less]
		case at < less+equal:
			return p
		default:
			at -= less + equal
			k = k[less+equal:]
		}
	}
	if len(k) <= 24 {
		insert(k)
	} else {
		slices.Sort(k)
	}
	return k[at]
}

// sampleLeast is how many keys there are at least of which a sample is taken, sampleMost bounds it.
const sampleLeast, sampleMost = 256, 256

// around returns keys of a sample between which the key at a place is likely to be: two standard deviations of
// the place in the sample from where it is expected.
func around(k []uint64, at int) (lo, hi uint64) {
	var room [sampleMost]uint64
	root := int(math.Sqrt(float64(len(k))))
	n := min(root, sampleMost)
	sample, step := room[:n], len(k)/n
	for i := range sample {
		sample[i] = k[i*step]
	}
	slices.Sort(sample)
	place, off := at*n/len(k), int(math.Sqrt(float64(n)))
	lo, hi = 0, math.MaxUint64
	if place >= off {
		lo = sample[place-off]
	}
	if place+off < n {
		hi = sample[place+off]
	}
	return lo, hi
}

// between puts the keys from lo to hi first, and returns how many are less, and how many these are. It has no
// branch that depends on a key.
func between(k []uint64, lo, hi uint64) (less, within int) {
	width := hi - lo
	for i, x := range k {
		k[i], k[within] = k[within], x
		from, below := bits.Sub64(x, lo, 0)
		_, beyond := bits.Sub64(width, from, 0)
		within += 1 - int(beyond)
		less += int(below)
	}
	return less, within
}

// pivot is the median of three medians of three.
func pivot(k []uint64) uint64 {
	n, e := len(k), len(k)/8
	return median3(median3(k[0], k[e], k[2*e]), median3(k[3*e], k[n/2], k[5*e]), median3(k[6*e], k[7*e], k[n-1]))
}

func median3(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

// partition puts the keys below p first and those equal to it next, and returns how
// many there are of each. It has no branch that depends on a key.
func partition(k []uint64, p uint64) (less, equal int) {
	for i, x := range k {
		k[i], k[less] = k[less], x
		_, below := bits.Sub64(x, p, 0)
		less += int(below)
	}
	rest := k[less:]
	for i, x := range rest {
		rest[i], rest[equal] = rest[equal], x
		_, same := bits.Sub64(x^p, 1, 0)
		equal += int(same)
	}
	return less, equal
}

func insert(k []uint64) {
	for i := 1; i < len(k); i++ {
		x, j := k[i], i
		for ; j > 0 && k[j-1] > x; j-- {
			k[j] = k[j-1]
		}
		k[j] = x
	}
}
