package gemm

import "unsafe"

// MostSmall is the most rows, and the greatest depth, of a product that Small computes.
const MostSmall = 16

// Small computes a product of small matrices that Mul would take longer to plan than to compute: the m×n
// matrix c, which is dense, of a, whose element (i, p) is a[i·aRow+p·aK], and b, whose element (p, j) is
// b[p·bK+j]. The bits are those of Mul. It reports false, and has done nothing, where there is no such
// loop or a size is not for it.
func Small[A Float](c []A, m, n, k int, a []A, aRow, aK int, b []A, bK int) bool {
	var one A
	f := kernelsFor[A]()[0].small
	if f == nil || m < 1 || n < 2 || k < 1 || m > MostSmall || k > MostSmall || n > 64/int(unsafe.Sizeof(one)) || aRow < 0 || aK < 0 || bK < 0 {
		return false
	}
	c, a, b = c[:m*n], a[:(m-1)*aRow+(k-1)*aK+1], b[:(k-1)*bK+n]
	f(m, n, k, unsafe.SliceData(a), aRow, aK, unsafe.SliceData(b), bK, unsafe.SliceData(c))
	return true
}
