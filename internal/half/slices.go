package half

// F16sToF32s sets dst[i] = F16ToF32(src[i]).
func F16sToF32s(dst []float32, src []uint16) {
	dst = first(dst, len(src))
	for i := widenF16(dst, src); i < len(src); i++ {
		dst[i] = F16ToF32(src[i])
	}
}

// F32sToF16s sets dst[i] = F32ToF16(src[i]).
func F32sToF16s(dst []uint16, src []float32) {
	dst = first(dst, len(src))
	for i := narrowF16(dst, src); i < len(src); i++ {
		dst[i] = F32ToF16(src[i])
	}
}

// BF16sToF32s sets dst[i] = BF16ToF32(src[i]).
func BF16sToF32s(dst []float32, src []uint16) {
	dst = first(dst, len(src))
	for i := widenBF16(dst, src); i < len(src); i++ {
		dst[i] = BF16ToF32(src[i])
	}
}

// F32sToBF16s sets dst[i] = F32ToBF16(src[i]).
func F32sToBF16s(dst []uint16, src []float32) {
	dst = first(dst, len(src))
	for i := narrowBF16(dst, src); i < len(src); i++ {
		dst[i] = F32ToBF16(src[i])
	}
}

// E4M3sToF32s sets dst[i] = E4M3ToF32(src[i]).
func E4M3sToF32s(dst []float32, src []uint8) {
	dst = first(dst, len(src))
	for i := widenE4M3(dst, src); i < len(src); i++ {
		dst[i] = E4M3ToF32(src[i])
	}
}

// F32sToE4M3s sets dst[i] = F32ToE4M3(src[i]).
func F32sToE4M3s(dst []uint8, src []float32) {
	dst = first(dst, len(src))
	for i := narrowE4M3(dst, src); i < len(src); i++ {
		dst[i] = F32ToE4M3(src[i])
	}
}

// E5M2sToF32s sets dst[i] = E5M2ToF32(src[i]).
func E5M2sToF32s(dst []float32, src []uint8) {
	dst = first(dst, len(src))
	for i := widenE5M2(dst, src); i < len(src); i++ {
		dst[i] = E5M2ToF32(src[i])
	}
}

// F32sToE5M2s sets dst[i] = F32ToE5M2(src[i]).
func F32sToE5M2s(dst []uint8, src []float32) {
	dst = first(dst, len(src))
	for i := narrowE5M2(dst, src); i < len(src); i++ {
		dst[i] = F32ToE5M2(src[i])
	}
}

// first returns dst[:n] and panics when that is longer than dst, where plain
// slicing would go on into dst's capacity.
func first[T any](dst []T, n int) []T { return dst[:len(dst):len(dst)][:n] }
