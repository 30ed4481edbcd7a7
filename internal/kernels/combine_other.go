//go:build !amd64 || noasm

package kernels

// nativeRowLoops returns the loops that this processor can run: none.
func nativeRowLoops() (l allCombiners) { return l }

// nativeRamps returns the loops over equal steps that this processor can run: none.
func nativeRamps() (r rampLoops, l lineLoops) { return r, l }

// Outer sets dst to 0 plus f times each of row, rounded once, where there are loops for that: not here.
func Outer[T float32 | float64](_, _ []T, _ T) bool { return false }
