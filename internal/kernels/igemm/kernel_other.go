//go:build !amd64 || noasm

package igemm

// natives returns the inner loops that this processor can run: none.
func natives() []*Kernel { return nil }

// nativeLongs returns the loops for 64-bit numbers that this processor can run: none.
func nativeLongs() []*Long { return nil }
