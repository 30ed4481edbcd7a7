package pool

import "github.com/loris-ml/loris/internal/kernels"

// MaximaOf finds the greatest element, the first of equal ones or NaNs, of windows of one plane of in
// elements, whose windows of kernel elements begin at starts[i] along dimension i, and where in the plane
// it is.
func MaximaOf[T kernels.Number](values []T, indices []int64, x []T, in, kernel [3]int, starts [3][]int) {
	at := 0
	for _, d := range starts[0] {
		for _, h := range starts[1] {
			for _, w := range starts[2] {
				first := (d*in[1]+h)*in[2] + w
				best, place := x[first], first
				for i := range kernel[0] {
					for j := range kernel[1] {
						from := first + (i*in[1]+j)*in[2]
						for k, v := range x[from : from+kernel[2]] {
							if v > best || v != v && best == best {
								best, place = v, from+k
							}
						}
					}
				}
				values[at], indices[at] = best, int64(place)
				at++
			}
		}
	}
}
