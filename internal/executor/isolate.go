package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/ir"
)

// isolate takes what is at fault out of the step after a MarkStep that failed because a graph cannot
// be compiled, so that the next one goes on without it: a step that fails for good would otherwise
// fail all that come after. If the values that were assigned cannot be computed, all assignments of
// the step are taken back; other tensors are discarded one by one, and give the error again where
// they are used. After errors that may pass (of the context, of earlier work, of memory, files and
// devices) the step stays as it is.
func (s *Session) isolate(ctx context.Context, err error) {
	if !ofGraph(err) {
		return
	}
	s.lockBoth()
	vars := s.dueVariables()
	all := s.stepRoots(vars)
	values := all[:0:0]
	for _, v := range vars {
		if x := v.due(s); x != nil && x.pend != nil && x.pend.data == nil {
			values = append(values, x.pend)
		}
	}
	s.unlockBoth()
	if s.compiles(ctx, all) {
		return
	}
	if !s.compiles(ctx, values) {
		s.lockBoth()
		s.dropAssigned()
		s.unlockBoth()
	}
	var faulty []*Tensor
	s.lockBoth()
	rest := s.stepRoots(s.dueVariables())
	s.unlockBoth()
	for _, t := range rest {
		if !s.compiles(ctx, []*Tensor{t}) {
			faulty = append(faulty, t)
		}
	}
	if faulty == nil && !s.compiles(ctx, rest) { // only together are they at fault
		s.lockBoth()
		s.dropAssigned()
		s.unlockBoth()
		faulty = rest
	}
	s.lockBoth()
	defer s.unlockBoth()
	for _, t := range faulty {
		t.bits = t.bits&^bitKeep | bitDiscarded
	}
	s.deleteDue(func(v *Variable) bool {
		x := v.due(s)
		return x == nil || slices.Contains(faulty, x.pend)
	})
}

// compiles reports whether the graph of some tensors can be compiled, as far as that depends on the
// graph.
func (s *Session) compiles(ctx context.Context, ts []*Tensor) bool {
	jobs, err := s.prepare(ctx, &request{tensors: ts, config: stepConfig})
	if err != nil {
		return !ofGraph(err)
	}
	defer s.core.running.Done()
	for _, j := range jobs {
		if err == nil {
			err = s.lookupOrCompile(ctx, j)
		}
		j.abandon()
	}
	return !ofGraph(err)
}

// ofGraph reports whether a compilation failed because of its graph, so that it would fail again.
func ofGraph(err error) bool {
	if errors.As(err, new(*devicelock.Failure)) || errors.As(err, new(*devicelock.AsyncError)) {
		return false
	}
	if errors.As(err, new(*cache.PanicError)) || errors.As(err, new(*container.PanicError)) {
		return true
	}
	for _, kind := range []error{ir.ErrShape, ir.ErrDType, ir.ErrIndex, ir.ErrArg, backend.ErrUnsupported} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var oom *ir.OutOfMemory
	return errors.As(err, &oom) && oom.Wanted > oom.Limit
}
