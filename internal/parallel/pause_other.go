//go:build !amd64 || noasm

package parallel

// pause does nothing where there is no PAUSE instruction.
func pause() {}
