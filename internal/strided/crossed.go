package strided

import "unsafe"

const (
	// crossedRun is the most bytes of a run that crossed views have, crossedBlock of what is read of one together.
	crossedRun, crossedBlock = 256, 96 << 10
	// crossedLeast is how many runs follow each other at least.
	crossedLeast = 8
)

// Crossed returns how many elements of so many bytes a part of a View has that is read together, as it has short
// runs of adjacent elements that are nearer to those of a dimension further out than to those of the one before
// the last: patches of an image, say, which take a row of each from every row of it. It is 0 for other Views.
func (v *View) Crossed(size int) int {
	dim := v.crossing(size)
	if dim < 0 {
		return 0
	}
	block := 1
	for _, n := range v.Dims[dim:v.Rank] {
		block *= n
	}
	if block*size > crossedBlock {
		return 0
	}
	return block
}

// crossing returns the dimension along which the runs of a View lie nearest to each other, if it is before the
// last two; else -1.
func (v *View) crossing(size int) int {
	last := v.Rank - 1
	if last < 2 || v.Strides[last] != 1 || v.Dims[last]*size > crossedRun || v.Dims[last]*size < 8 {
		return -1
	}
	apart := func(d int) int { return max(v.Strides[d], -v.Strides[d]) }
	dim := last - 1
	for d := last - 2; d >= 0; d-- {
		if s := apart(d); s > 0 && 2*s <= apart(dim) && v.Dims[d] >= crossedLeast {
			dim = d
		}
	}
	if dim == last-1 {
		return -1
	}
	return dim
}

// readCrossed is Read of whole parts of a Crossed View: along the dimension in which runs are near to each other,
// then to the next run of each.
func readCrossed[T Bits](dst, src []T, v *View, start int) bool {
	size := int(unsafe.Sizeof(*new(T)))
	block := v.Crossed(size)
	if block == 0 || start%block != 0 || len(dst)%block != 0 {
		return false
	}
	dim, last := v.crossing(size), v.Rank-1
	n, runs := v.Dims[last], v.Dims[dim]
	apart := block / runs
	var outside [MaxRank]int
	pos := v.Seek(start, &outside)
	for ; len(dst) > 0; dst = dst[block:] {
		var inside [MaxRank]int
		p := pos
		for at := 0; at < apart; at += n {
			moveRuns(dst, src, at, p, apart, v.Strides[dim], n, runs)
			p = v.nextWithin(&inside, dim+1, last, p)
		}
		pos = v.Next(&outside, dim, pos)
	}
	return true
}
