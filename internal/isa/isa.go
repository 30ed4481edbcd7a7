// Package isa says which vector instructions the processor has that kernels come
// in versions for. A function reports false on processors of another kind than it asks for.
package isa

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// AVX2 reports whether there are the vectors of x86-64-v3: AVX2, FMA and, with
// them on every processor, F16C; and BMI2.
func AVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

// AVX512 reports whether there are those of x86-64-v4 too: AVX-512 F, DQ, BW and
// VL.
func AVX512() bool {
	x := &cpu.X86
	return AVX2() && x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL
}

// NEON reports whether there are the vectors of arm64, which all its processors have.
func NEON() bool { return runtime.GOARCH == "arm64" }
