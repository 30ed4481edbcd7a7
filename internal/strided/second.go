package strided

// Every sets dst to every second element of src, from its first on.
func Every[T Bits](dst, src []T) {
	for i := everyVectors(dst, src); i < len(dst); i++ {
		dst[i] = src[2*i]
	}
}

// third sets dst to every third element of src, from its first on.
func third[T Bits](dst, src []T) {
	for i := thirdVectors(dst, src); i < len(dst); i++ {
		dst[i] = src[3*i]
	}
}

// Spread sets every second element of dst, from its first on, to those of src. It may write what lies
// between them again: nothing else may write there at that time.
func Spread[T Bits](dst, src []T) {
	for i := spreadVectors(dst, src); i < len(src); i++ {
		dst[2*i] = src[i]
	}
}
