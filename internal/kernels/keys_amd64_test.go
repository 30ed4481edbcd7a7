//go:build amd64 && !noasm

package kernels

import "github.com/loris-ml/loris/internal/isa"

// keyLoops returns the loops of all levels that this processor has.
func keyLoops() (loops []func(keys *int32, n, at int) (int32, int)) {
	if isa.AVX512() {
		loops = append(loops, keyAtAVX512)
	}
	if isa.AVX2() {
		loops = append(loops, keyAtAVX2)
	}
	return loops
}
