//go:build !amd64 || noasm

package kernels

// nativeRowLoops returns the loops that this processor can run: none.
func nativeRowLoops() (l allCombiners) { return l }
