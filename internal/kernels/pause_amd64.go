//go:build !noasm

package kernels

// pause tells the processor that a loop waits for another one.
//
//go:noescape
func pause()
