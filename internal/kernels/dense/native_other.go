//go:build !amd64 || noasm

package dense

// available returns the kernels that the processor can run.
func available() []kernel { return []kernel{portable} }
