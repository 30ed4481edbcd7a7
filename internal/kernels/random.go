package kernels

import "github.com/loris-ml/loris/internal/philox"

// Randint sets dst[i] to low plus the element lo+i below n, in T.
func Randint[T Number](dst []T, seed, offset uint64, low int64, n uint64, lo int) {
	var piece [256]int64
	for len(dst) > 0 {
		k := min(len(dst), len(piece))
		philox.IntsBelow(piece[:k], seed, offset, int64(lo), n, low)
		for i, x := range piece[:k] {
			dst[i] = T(x)
		}
		dst, lo = dst[k:], lo+k
	}
}
