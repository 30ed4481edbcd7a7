//go:build !linux

package guarded

// Slice returns n elements.
func Slice[T any](n int) []T { return make([]T, n) }
