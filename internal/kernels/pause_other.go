//go:build !amd64 || noasm

package kernels

// pause stands for the instruction by which a loop that waits spares the
// processor.
func pause() {}
