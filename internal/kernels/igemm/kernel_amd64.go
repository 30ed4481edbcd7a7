//go:build amd64 && !noasm

package igemm

import (
	"golang.org/x/sys/cpu"

	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../kernel_amd64.s -stubs ../kernel_stubs_amd64.go -pkg igemm

// natives returns the inner loops that this processor can run, best first.
func natives() []*Kernel {
	var l []*Kernel
	if isa.AVX512() && cpu.X86.HasAVX512VNNI {
		l = append(l, &Kernel{name: "vnni", MR: 12, NR: 32, quads: quadsVNNI, quadsHalf: quadsHalfVNNI, quadsTop: quadsTopVNNI, biasSums: biasSumsVNNI, pairs: pairsVNNI, whole: wholeAVX512, difference: differenceAVX2, fours: foursAVX2, fewFours: fewFoursAVX2})
	}
	if isa.AVX512() {
		l = append(l, &Kernel{name: "avx512", MR: 12, NR: 32, pairs: pairsAVX512, whole: wholeAVX512, difference: differenceAVX2, fours: foursAVX2, fewFours: fewFoursAVX2})
	}
	if isa.AVX2() {
		l = append(l, &Kernel{name: "avx2", MR: 6, NR: 16, pairs: pairsAVX2, whole: wholeAVX2})
	}
	return l
}

// nativeLongs returns the loops for 64-bit numbers that this processor can run, best first.
func nativeLongs() []*Long {
	var l []*Long
	if isa.AVX512() {
		l = append(l, &Long{name: "avx512", MR: 12, NR: 16, tile: longAVX512})
	}
	if isa.AVX2() {
		l = append(l, &Long{name: "avx2", MR: 2, NR: 8, tile: longAVX2})
	}
	return l
}
