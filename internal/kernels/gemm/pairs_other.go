//go:build !amd64 || noasm

package gemm

// vectorPairs returns no kernel: these processors multiply no pairs of bfloat16.
func vectorPairs() *kernel[float32] { return nil }
