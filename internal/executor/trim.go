package executor

import (
	"context"
	"fmt"
	"slices"
)

// trimState is the trim counter. A step whose graph grows beyond the limit is synced before its
// end, so that memory stays bounded if a program forgets MarkStep.
type trimState struct {
	count int // nodes of the step at the last sync in its middle
	err   error
	busy  bool
}

// trimCheck syncs the step so far if it has grown too large; the session is locked, but for during
// the sync.
func (s *Session) trimCheck() {
	limit := s.core.cfg.TrimNodes
	if limit < 0 || s.b.Count()-s.trim.count < limit || s.trim.busy || s.tracing != nil || s.bodies > 0 {
		return
	}
	s.trim.count, s.trim.busy = s.b.Count(), true
	var line uintptr
	if n := len(s.pending); n > 0 && s.pending[n-1].ir != nil {
		line = s.pending[n-1].ir.Line()
	}
	s.core.stats.trimmed(s.b.Count(), line)
	s.unlock()
	s.findDropped()
	s.lockBoth()
	roots := s.stepRoots(s.dueVariables())
	s.unlockBoth()
	// The sync does not run in the background, so that recording waits for it.
	_, err := s.SyncTensors(context.Background(), roots, stepConfig)
	s.lock()
	s.trim.busy = false
	if err != nil {
		s.trim.err = fmt.Errorf("sync of a graph of %d nodes without a MarkStep: %w", s.trim.count, err)
		return
	}
	s.sweepPendingAt = 0
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.dropConsumed()
}

// dropConsumed removes from the step's list what MarkStep will not sync: tensors that have data and
// tensors that an op consumes. So a program that reads values and never marks a step keeps no more
// alive than its handles do. The session is locked, and core.mu held if a pending tensor is the value of a
// variable.
func (s *Session) dropConsumed() {
	if len(s.pending) < s.sweepPendingAt || s.tracing != nil || s.bodies > 0 {
		return
	}
	s.pending = slices.DeleteFunc(s.pending, func(t *Tensor) bool {
		if t.data == nil && t.bits&bitDiscarded == 0 && t.unconsumed() {
			return false
		}
		t.bits |= bitUnlisted
		return true
	})
	s.sweepPendingAt = 2 * len(s.pending)
	if len(s.pending) == 0 {
		s.stepNodes += s.b.Count()
		s.b.NextStep() // the next ops are recorded as those of a new step
		s.trim.count = 0
	}
}

// ResetTrimCounter lets the present step record TrimNodes more nodes before it is synced.
func (s *Session) ResetTrimCounter() {
	s.lock()
	defer s.unlock()
	s.trim.count = s.b.Count()
}
