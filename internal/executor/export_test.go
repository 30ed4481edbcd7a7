package executor

import "time"

// SetAtOnce makes callers run computations that took at most so long, and returns what was before.
func SetAtOnce(d time.Duration) (before time.Duration) {
	before, atOnce = atOnce, d
	return before
}

// Joined reports whether two sessions have one lock.
func (s *Session) Joined(other *Session) bool { return s.joined(other) }

// Prompt reports whether a caller, alone or beside other sessions, runs by itself what took so long last, after
// which it paused so long.
func Prompt(took, pause time.Duration, alone bool) bool {
	var p pace
	p.took.Store(int64(took))
	p.pause.Store(int64(pause))
	return p.prompt(alone)
}

// Longest is the longest run that a caller takes on because it would only wait.
const Longest = longest

// PauseUntil returns how long a caller paused that had something scheduled, waited for d and then called ask.
func (s *Session) PauseUntil(d time.Duration, ask func()) time.Duration {
	var p pace
	p.took.Store(int64(longest))
	s.scheduled(&p)
	time.Sleep(d)
	ask()
	return time.Duration(p.pause.Load())
}
