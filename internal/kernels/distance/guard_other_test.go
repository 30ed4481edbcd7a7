//go:build !linux

package distance

func guarded[T Float](n int) []T { return make([]T, n) }
