//go:build amd64 && !noasm

package isa

import "golang.org/x/sys/cpu"

// BF16Pairs reports whether vectors multiply pairs of bfloat16 (AVX512-BF16).
func BF16Pairs() bool { return AVX512() && cpu.X86.HasAVX512BF16 }

// FastBF16Pairs reports whether they do so faster than they multiply two float32. Intel's processors
// with AMX don't: one VDPBF16PS takes as long as four VFMADD231PS, measured on Emerald Rapids. A virtual
// machine may hide AMX, so that AVX512-FP16, which came with it, tells them.
func FastBF16Pairs() bool { return BF16Pairs() && !slowPairs }

var slowPairs = intelWithFP16()

func intelWithFP16() bool {
	last, b, c, d := cpuid(0, 0)
	const genu, inei, ntel = 0x756e6547, 0x49656e69, 0x6c65746e
	if last < 7 || b != genu || d != inei || c != ntel {
		return false
	}
	_, _, _, features := cpuid(7, 0)
	return features&(1<<23) != 0
}

func cpuid(leaf, subleaf uint32) (a, b, c, d uint32)
