//go:build !linux

package kernels

func guardedBytes(n int) []byte { return make([]byte, n) }
