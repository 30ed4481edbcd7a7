//go:build amd64 && !noasm

package kernels

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../elementary_amd64.s -stubs ../elementary_stubs_amd64.go -pkg kernels

// nativeElementary lists the loops that this processor can run, best first.
func nativeElementary() (list []*elementary) {
	if isa.AVX512() {
		list = append(list, &elementary{
			lanes: 16, exp: expAVX512, sigmoid: sigmoidAVX512, tanh: tanhAVX512,
			silu: siluAVX512, gelu: geluAVX512, geluTanh: geluTanhAVX512,
		})
	}
	if isa.AVX2() {
		list = append(list, &elementary{
			lanes: 8, exp: expAVX2, sigmoid: sigmoidAVX2, tanh: tanhAVX2, silu: siluAVX2, gelu: geluAVX2, geluTanh: geluTanhAVX2,
		})
	}
	return list
}

// keyAt returns the key that has at others before it in the order of n, a multiple of keyStep above zero, and how
// many are less than it. It is nil where there are no loops for that.
var keyAt = func() func(keys *int32, n, at int) (key int32, less int) {
	switch {
	case isa.AVX512():
		return keyAtAVX512
	case isa.AVX2():
		return keyAtAVX2
	}
	return nil
}()
