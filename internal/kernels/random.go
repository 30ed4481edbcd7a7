package kernels

import "github.com/loris-ml/loris/internal/philox"

// Randint sets dst[i] to low plus the element lo+i below n, in T.
func Randint[T Number](dst []T, seed, offset uint64, low int64, n uint64, lo int) {
	for i := range dst {
		dst[i] = T(low + int64(philox.Uint64n(seed, offset, int64(lo+i), n)))
	}
}
