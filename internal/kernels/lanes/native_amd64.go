//go:build amd64 && !noasm

package lanes

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../lanes_amd64.s -stubs ../stubs_amd64.go -pkg lanes

// available returns the kernels that the processor can run, the fastest first.
func available() (list []*kernel) {
	if isa.AVX512() {
		list = append(list, &kernel{"avx512", factorAVX512, exchangeAVX512, reduceAVX512, rootAVX512, determinantAVX512,
			mover[float64]{gatherF64AVX512, scatterF64AVX512}, mover[float32]{gatherF32AVX512, scatterF32AVX512}, mover[int32]{gatherI32AVX512, scatterI32AVX512}})
	}
	if isa.AVX2() {
		list = append(list, &kernel{"avx2", factorAVX2, exchangeAVX2, reduceAVX2, rootAVX2, determinantAVX2,
			mover[float64]{gatherF64AVX2, scatterF64AVX2}, mover[float32]{gatherF32AVX2, scatterF32AVX2}, mover[int32]{gatherI32AVX2, scatterI32AVX2}})
	}
	return list
}
