package cache

// seen remembers which of the last keys came by: at least the last n different ones and at most
// twice as many. It holds no values, so that a garbage collector has nothing to follow. It is not safe
// for concurrent use.
type seen[K comparable] struct {
	n          int
	young, old map[K]struct{}
}

// again reports whether the key came by before, and remembers it.
func (s *seen[K]) again(key K) bool {
	if _, ok := s.young[key]; ok {
		return true
	}
	_, ok := s.old[key]
	if len(s.young) >= s.n {
		s.young, s.old = s.old, s.young
		clear(s.young)
	}
	if s.young == nil {
		s.young = make(map[K]struct{})
	}
	s.young[key] = struct{}{}
	return ok
}

// forget empties s.
func (s *seen[K]) forget() { s.young, s.old = nil, nil }
