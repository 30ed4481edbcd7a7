//go:build !linux

package native

func guardedMemory(n int) []byte { return make([]byte, n) }

func freeGuarded([]byte) {}
