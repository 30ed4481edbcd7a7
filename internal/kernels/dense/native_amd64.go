//go:build amd64 && !noasm

package dense

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../dense_amd64.s -stubs ../stubs_amd64.go -pkg dense

// available returns the kernels that the processor can run, the fastest first.
func available() (list []kernel) {
	if isa.AVX512() {
		list = append(list, kernel{"avx512", 16, subtract4AVX512, subtract1AVX512, dots4AVX512, dots1AVX512, rotateAVX512, reflectAVX512, spectral{updateAVX512, bothAVX512, sumsAVX512, ratiosAVX512, quotientsAVX512}, widenAVX512, narrowAVX512})
	}
	if isa.AVX2() {
		list = append(list, kernel{"avx2", 8, subtract4AVX2, subtract1AVX2, dots4AVX2, dots1AVX2, rotateAVX2, reflectAVX2, spectral{updateAVX2, bothAVX2, sumsAVX2, ratiosAVX2, quotientsAVX2}, widenAVX2, narrowAVX2})
	}
	return append(list, portable)
}
