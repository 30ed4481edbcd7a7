//go:build !amd64 || noasm

package kernels

// nativeIndexLoops returns the loops over an index that this processor can run: none.
func nativeIndexLoops() (l indexLoops) { return l }

// prefetch asks for the memory of a row that is read soon, where the processor can be asked.
func prefetch[T any]([]T) {}

// nativeRowLoop returns the loop over rows that this processor can run: none.
func nativeRowLoop() func(dst, src *byte, index *int64, size, bytes, n int) int { return nil }
