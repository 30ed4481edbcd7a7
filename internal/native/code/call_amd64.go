//go:build linux && !noasm

package code

import "unsafe"

// returns is code that does nothing.
var returns = [...]byte{0xc3}

// publish does nothing: the processor's fetches see what was stored.
func publish(unsafe.Pointer, int) {}
