//go:build amd64 && !noasm

package kernels

import "golang.org/x/sys/cpu"

//go:generate go run -C _asm . -out ../elementary_amd64.s -stubs ../elementary_stubs_amd64.go -pkg kernels

// nativeElementary lists the loops that this processor can run, best first.
func nativeElementary() (list []*elementary) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
		list = append(list, &elementary{
			lanes: 16, exp: expAVX512, sigmoid: sigmoidAVX512, tanh: tanhAVX512,
			silu: siluAVX512, gelu: geluAVX512, geluTanh: geluTanhAVX512,
		})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, &elementary{
			lanes: 8, exp: expAVX2, sigmoid: sigmoidAVX2, tanh: tanhAVX2, silu: siluAVX2, gelu: geluAVX2, geluTanh: geluTanhAVX2,
		})
	}
	return list
}
