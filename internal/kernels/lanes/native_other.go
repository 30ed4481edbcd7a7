//go:build !amd64 || noasm

package lanes

// available returns the kernels that the processor can run.
func available() []*kernel { return nil }
