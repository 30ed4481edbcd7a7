package executor

// Joined reports whether two sessions have one lock.
func (s *Session) Joined(other *Session) bool { return s.joined(other) }
