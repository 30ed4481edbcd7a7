//go:build !linux

package lanes

func guarded(n int) []float64 { return make([]float64, n) }

func guardedOf[T Number](n int) []T { return make([]T, n) }
