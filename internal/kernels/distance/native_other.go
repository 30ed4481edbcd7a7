//go:build !amd64 || noasm

package distance

// available returns the kernels that the processor can run.
func available[T Float]() []*kernels[T] { return []*kernels[T]{portable[T]()} }
