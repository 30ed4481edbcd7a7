package executor

import (
	"context"
	"fmt"
)

// trimState is the trim counter: a step whose graph grows beyond the limit is
// synced in the middle, so that a forgotten MarkStep cannot grow memory without
// end.
type trimState struct {
	count int // nodes of the step at the last sync in its middle
	err   error
	busy  bool
}

// trimCheck starts a sync of the step so far if it has grown too large; core.mu
// is held (IncTrimCounter).
func (s *Session) trimCheck() {
	limit := s.core.cfg.TrimNodes
	if limit < 0 || s.b.Count()-s.trim.count < limit || s.trim.busy || s.tracing != nil {
		return
	}
	s.trim.count, s.trim.busy = s.b.Count(), true
	var line uintptr
	if n := len(s.pending); n > 0 && s.pending[n-1].ir != nil {
		line = s.pending[n-1].ir.Line()
	}
	s.core.stats.trimmed(s.b.Count(), line)
	roots := s.stepRoots()
	s.core.mu.Unlock()
	// The sync runs here and not in the background: memory must stop growing.
	_, err := s.SyncTensors(context.Background(), roots, stepConfig)
	s.core.mu.Lock()
	s.trim.busy = false
	if err != nil {
		s.trim.err = fmt.Errorf("sync of a graph of %d nodes without a MarkStep: %w", s.trim.count, err)
		return
	}
	s.letGoAt = 0
	s.letGo()
}

// takeTrimError returns the error of a sync that trimCheck made.
func (s *Session) takeTrimError() error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	err := s.trim.err
	s.trim.err = nil
	return err
}

// ResetTrimCounter lets the present step record as many nodes again before it
// syncs itself.
func (s *Session) ResetTrimCounter() {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.trim.count = s.b.Count()
}
