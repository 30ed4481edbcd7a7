package dense

import "unsafe"

func widened(dst *float64, src *float32, blocks int) {
	to := unsafe.Slice(dst, lanes*blocks)
	for i, v := range unsafe.Slice(src, lanes*blocks) {
		to[i] = float64(v)
	}
}

func narrowed(dst *float32, src *float64, blocks int) {
	to := unsafe.Slice(dst, lanes*blocks)
	for i, v := range unsafe.Slice(src, lanes*blocks) {
		to[i] = float32(v)
	}
}

// Widen converts src to dst, which is as long.
func Widen(dst []float64, src []float32) {
	n := len(src) / lanes * lanes
	if _ = dst[:len(src)]; n > 0 {
		use.widen(&dst[0], &src[0], n/lanes)
	}
	for i, v := range src[n:] {
		dst[n+i] = float64(v)
	}
}

// Narrow converts src to dst, which is as long.
func Narrow(dst []float32, src []float64) {
	n := len(src) / lanes * lanes
	if _ = dst[:len(src)]; n > 0 {
		use.narrow(&dst[0], &src[0], n/lanes)
	}
	for i, v := range src[n:] {
		dst[n+i] = float32(v)
	}
}
