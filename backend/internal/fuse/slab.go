package fuse

// Slab is memory for many short slices of one kind, which are freed together. The zero value is ready
// to use.
type Slab[T any] struct {
	left []T
	size int
}

// maxSlab bounds the elements that a Slab allocates ahead.
const maxSlab = 1 << 10

// Take returns n zero elements, with no room behind them.
func (s *Slab[T]) Take(n int) []T {
	if len(s.left) < n {
		s.size = min(max(2*s.size, n), max(maxSlab, n))
		s.left = make([]T, s.size)
	}
	out := s.left[:n:n]
	s.left = s.left[n:]
	return out
}
