//go:build !amd64 || noasm

package sample

// native returns the loops that the processor can run, nil if there are none.
func native() *loops { return nil }
