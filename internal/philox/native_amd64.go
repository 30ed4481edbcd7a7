//go:build amd64 && !noasm

package philox

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../philox_amd64.s -stubs ../stubs_amd64.go -pkg philox

// level is what the processor has; tests lower it.
var level = detect()

const (
	none = iota
	avx2
	avx512
)

func detect() int {
	switch {
	case isa.AVX512():
		return avx512
	case isa.AVX2():
		return avx2
	}
	return none
}

// most is the largest stride.
const most = 128

// stride returns how many elements uniformNative makes at a time; 0 stands for
// the loop in Go.
func stride() int {
	switch level {
	case avx512:
		return 128
	case avx2:
		return 32
	}
	return 0
}

// uniformNative sets dst, a multiple of stride, to the elements from a block on.
func uniformNative(dst []float32, seed, offset, block uint64, bits int) {
	if len(dst) == 0 {
		return
	}
	if level == avx512 {
		uniformAVX512(&dst[0], len(dst)/128, seed, offset, block, bits)
	} else {
		uniformAVX2(&dst[0], len(dst)/32, seed, offset, block, bits)
	}
}

// wordStride is how many words wordsNative makes at a time, and normalStride how
// many normalNative takes.
func wordStride() int { return stride() / 2 }

func normalStride() int { return min(stride()/4, 16) }

// wordsNative sets dst, a multiple of wordStride, to the elements from a block on.
func wordsNative(dst []uint64, seed, offset, block uint64) {
	if len(dst) == 0 {
		return
	}
	if level == avx512 {
		wordsAVX512(&dst[0], len(dst)/64, seed, offset, block)
	} else {
		wordsAVX2(&dst[0], len(dst)/16, seed, offset, block)
	}
}

// normal32Native and normal64Native set dst to the normal numbers of as many
// words, a multiple of normalStride.
func normal32Native(dst []float32, words []uint64) {
	if len(dst) == 0 {
		return
	}
	_ = words[len(dst)-1]
	if level == avx512 {
		normal32AVX512(&dst[0], &words[0], len(dst)/16)
	} else {
		normal32AVX2(&dst[0], &words[0], len(dst)/8)
	}
}

func normal64Native(dst []float64, words []uint64) {
	if len(dst) == 0 {
		return
	}
	_ = words[len(dst)-1]
	if level == avx512 {
		normal64AVX512(&dst[0], &words[0], len(dst)/16)
	} else {
		normal64AVX2(&dst[0], &words[0], len(dst)/8)
	}
}
