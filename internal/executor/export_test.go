package executor

import "time"

// SetAtOnce makes callers run computations that took at most so long, and returns what was before.
func SetAtOnce(d time.Duration) (before time.Duration) {
	before, atOnce = atOnce, d
	return before
}

// Joined reports whether two sessions have one lock.
func (s *Session) Joined(other *Session) bool { return s.joined(other) }
