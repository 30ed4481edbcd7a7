//go:build amd64 && !noasm

package sample

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../sample_amd64.s -stubs ../stubs_amd64.go -pkg sample

// native returns the loops that the processor can run, nil if there are none.
func native() *loops {
	if isa.AVX512() {
		return &loops{weighRowsAVX512, addRowsAVX512, multiplyRowsAVX512, weighPlaneAVX512, weighPairsAVX512, multiplyPlaneAVX512, greatestAVX512}
	}
	return nil
}
