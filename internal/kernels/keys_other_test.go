//go:build !amd64 || noasm

package kernels

// keyLoops returns none: there are no loops for this processor.
func keyLoops() []func(keys *int32, n, at int) (int32, int) { return nil }
