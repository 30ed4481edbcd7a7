//go:build !noasm

package parallel

// pause runs the PAUSE instruction, which spares the processor in a loop that polls.
//
//go:noescape
func pause()
