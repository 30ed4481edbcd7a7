package strided

import "unsafe"

// Write copies elements lo..hi-1 of src, which is dense, to those of the View of dst. No two
// elements of the View may be the same memory.
func Write[T Bits](dst, src []T, v *View, lo, hi int) {
	if lo >= hi {
		return
	}
	if v.Rank == 0 {
		dst[v.Offset] = src[0]
		return
	}
	last := v.Rank - 1
	n, step := v.Dims[last], v.Strides[last]
	var at [MaxRank]int
	pos := v.Seek(lo, &at)
	src = src[lo:hi]
	for i := at[last]; ; i = 0 {
		if i == 0 && step == 1 && shortRun[T](n) {
			var k int
			if k, pos = writeShort(dst, src, v, &at, pos); k == len(src) {
				return
			}
			src = src[k:]
		}
		k := min(n-i, len(src))
		switch step {
		case 1:
			move(dst[pos:pos+k], src[:k], 2*v.Len()) // there may be another part
		case 2:
			Spread(dst[pos:pos+2*k-1], src[:k])
		default:
			p := pos
			for _, x := range src[:k] {
				dst[p] = x
				p += step
			}
		}
		src = src[k:]
		if len(src) == 0 {
			return
		}
		pos = v.Next(&at, last, pos-i*step)
	}
}

// writeShort is Write, from a coordinate on, while short runs of adjacent elements follow each other. It
// returns how many of src it has written, and the position of the coordinate that it has come to.
func writeShort[T Bits](dst, src []T, v *View, at *[MaxRank]int, pos int) (written, next int) {
	last := v.Rank - 1
	if last == 0 {
		return 0, pos
	}
	n := v.Dims[last]
	if blocks := v.blocks(at, len(src)); blocks > 0 {
		few := v.Dims[last-1]
		v.eachBlock(blocks, n*int(unsafe.Sizeof(src[0])), func(j, first, k int) {
			moveRuns(dst, src, pos+first*v.Strides[last-2]+j*v.Strides[last-1], (first*few+j)*n, v.Strides[last-2], few*n, n, k)
		})
		at[last-2] += blocks
		written, pos = blocks*few*n, pos+blocks*v.Strides[last-2]
		src = src[written:]
	}
	// The last run is left to the caller, who goes on to the next dimension from it.
	up, runs := v.Strides[last-1], min(v.Dims[last-1]-at[last-1]-1, len(src)/n)
	if runs <= 0 {
		return written, pos
	}
	moveRuns(dst, src, pos, 0, up, n, n, runs)
	at[last-1] += runs
	return written + runs*n, pos + runs*up
}
