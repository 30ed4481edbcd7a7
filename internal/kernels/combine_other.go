//go:build !amd64 || noasm

package kernels

// nativeRowLoops returns the loops that this processor can run: none.
func nativeRowLoops() (l allCombiners) { return l }

// nativeRamps returns the loops over equal steps that this processor can run: none.
func nativeRamps() (r rampLoops, l lineLoops) { return r, l }
