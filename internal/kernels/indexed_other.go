//go:build !amd64 || noasm

package kernels

// nativeIndexLoops returns the loops over an index that this processor can run: none.
func nativeIndexLoops() (l indexLoops) { return l }

func prefetch[T any]([]T) {}
