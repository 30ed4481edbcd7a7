//go:build amd64 && !noasm

package limit

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../limit_amd64.s -stubs ../stubs_amd64.go -pkg limit

// native returns the loops that this processor can run, or nil.
func native() *loops {
	switch {
	case isa.AVX512():
		return &loops{name: "AVX-512", lanes: 16, multiply: multiplyAVX512, triad: triadAVX512, stream: streamAVX512}
	case isa.AVX2():
		return &loops{name: "AVX2", lanes: 8, multiply: multiplyAVX2, triad: triadAVX2, stream: streamAVX2}
	}
	return nil
}
