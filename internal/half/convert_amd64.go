//go:build amd64 && !noasm

package half

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../convert_amd64.s -stubs ../convert_stubs_amd64.go -pkg half

// lanes is the elements of the vectors that the processor has, 0 if it has none
// with the conversions; tests lower it. The loops agree with the scalar
// conversions on every pattern.
var lanes = func() int {
	switch {
	case isa.AVX512():
		return 16
	case isa.AVX2():
		return 8
	}
	return 0
}()

// most is the most elements of one call: a few microseconds, in which the
// runtime can't stop the goroutine.
const most = 32 << 10

// whole returns how many of n elements are whole vectors.
func whole(n int) int {
	if lanes == 0 {
		return 0
	}
	return n &^ (lanes - 1)
}

// The following convert whole vectors and return how many elements that were.
// They call the loops by name, since the arguments of a call by a variable
// would escape to the heap.

func widenBF16(dst []float32, src []uint16) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			widenBF16AVX512(&dst[at], &src[at], n)
		} else {
			widenBF16AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func widenF16(dst []float32, src []uint16) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			widenF16AVX512(&dst[at], &src[at], n)
		} else {
			widenF16AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func narrowBF16(dst []uint16, src []float32) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			narrowBF16AVX512(&dst[at], &src[at], n)
		} else {
			narrowBF16AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func narrowF16(dst []uint16, src []float32) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			narrowF16AVX512(&dst[at], &src[at], n)
		} else {
			narrowF16AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func widenE4M3(dst []float32, src []uint8) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			widenE4M3AVX512(&dst[at], &src[at], n)
		} else {
			widenE4M3AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func widenE5M2(dst []float32, src []uint8) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			widenE5M2AVX512(&dst[at], &src[at], n)
		} else {
			widenE5M2AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func narrowE4M3(dst []uint8, src []float32) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			narrowE4M3AVX512(&dst[at], &src[at], n)
		} else {
			narrowE4M3AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}

func narrowE5M2(dst []uint8, src []float32) int {
	end := whole(len(src))
	for at := 0; at < end; at += most {
		if n := min(most, end-at); lanes == 16 {
			narrowE5M2AVX512(&dst[at], &src[at], n)
		} else {
			narrowE5M2AVX2(&dst[at], &src[at], n)
		}
	}
	return end
}
