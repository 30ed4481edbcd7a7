package gemm

import "unsafe"

// Transpose sets dst[j·dstStride+i] = src[i·srcStride+j] for i < rows and
// j < cols. It panics if a slice is too short.
func Transpose[A Float](dst []A, dstStride int, src []A, srcStride, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	dst, src = dst[:(cols-1)*dstStride+rows], src[:(rows-1)*srcStride+cols]
	if t := kernelsFor[A]()[0].transpose; t != nil {
		t(unsafe.SliceData(dst), dstStride, unsafe.SliceData(src), srcStride, rows, cols)
		return
	}
	packStrided(dst, dstStride, src, srcStride, 1, rows, cols)
}
