package pool

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels"
)

// MaximaOf finds the greatest element, the first of equal ones or NaNs, of windows of one plane of in
// elements, whose windows of kernel elements begin at starts[i] along dimension i, and where in the plane
// it is.
func MaximaOf[T kernels.Number](values []T, indices []int64, x []T, in, kernel [3]int, starts [3][]int) {
	offsets := make([]int, 0, kernel[0]*kernel[1]*kernel[2])
	for i := range kernel[0] {
		for j := range kernel[1] {
			for k := range kernel[2] {
				offsets = append(offsets, (i*in[1]+j)*in[2]+k)
			}
		}
	}
	at := 0
	for _, d := range starts[0] {
		for _, h := range starts[1] {
			for _, w := range starts[2] {
				first := (d*in[1]+h)*in[2] + w
				place, best := first, sortable(x[first])
				for _, off := range offsets[1:] {
					// There is no branch, since which is greatest cannot be foreseen.
					v, more := sortable(x[first+off]), 0
					if v > best {
						more = 1
					}
					place += (first + off - place) & -more
					best = max(best, v)
				}
				values[at], indices[at] = x[place], int64(place)
				at++
			}
		}
	}
}

// sortable returns an integer that is greater for greater numbers and the same for equal ones, of which NaN is
// the greatest.
func sortable[T kernels.Number](v T) int64 {
	if one := T(1); one/2 == 0 {
		return int64(v)
	}
	if v != v {
		return math.MaxInt64
	}
	b := int64(math.Float64bits(float64(v) + 0)) // which makes -0 +0
	return b ^ b>>63&math.MaxInt64
}
