//go:build (!amd64 && !arm64) || noasm

package gemm

// nativeKernels returns no inner loops: there are none for this processor.
func nativeKernels[A Float]() []*kernel[A] { return nil }
