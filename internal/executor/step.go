package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

var stepConfig = SyncTensorsConfig{ForceData: true, SyncData: true}

// MarkStep ends the step: it syncs the variables with a pending value, the
// tensors marked Keep and those recorded since the last step that nothing
// recorded consumes, and moves the random seeds on. It returns when the work is
// scheduled. If it returns an error, the step is still open and nothing has
// changed, except for what isolate and stepRequest take out of it. That may be an error of
// an earlier step of the session that it has not
// read (*devicelock.AsyncError); another call then continues. No device given means all.
func (s *Session) MarkStep(ctx context.Context, devices ...ir.Device) error {
	err := s.markStep(ctx, &request{devices: devices})
	if err != nil {
		s.isolate(ctx, err)
	}
	return err
}

// Errors of steps inside others (errors.Is).
var (
	// ErrNestedStep says that Step or MarkStep was called inside Step.
	ErrNestedStep = errors.New("loris: Step or MarkStep inside Step; if another goroutine is in Step, use Fork")
	// ErrConcurrent says that a step ends or a variable is assigned while another goroutine ends the
	// step of the same session: one of them would lose what it has assigned.
	ErrConcurrent = errors.New("another goroutine is in MarkStep or Step of this session; use Fork")

	errTracing = errors.New("loris: MarkStep while another goroutine compiles a function with the session")
)

// markStep syncs the step and starts the next one.
func (s *Session) markStep(ctx context.Context, r *request) error {
	if err := s.tracedMisuse("mark_step", "a step is marked"); err != nil {
		return err
	}
	s.findDropped()
	r.config, r.endsStep = stepConfig, true
	ended := false
	defer func() {
		if r.marks && !ended {
			s.lockBoth()
			s.marking = false
			s.unlockBoth()
		}
	}()
	if _, err := s.sync(ctx, r); err != nil {
		return err
	}
	ended = true
	s.core.stats.steps.Add(1)
	return nil
}

// stepRequest fills in what a MarkStep computes of its variables, or returns why it cannot; the session
// is locked, and core.mu for reading. What else it computes is added by pendingRoots.
func (s *Session) stepRequest(r *request) error {
	if err := s.trim.err; err != nil {
		s.trim.err = nil
		return err
	}
	switch {
	case s.tracing != nil:
		return errTracing
	case s.bodies > 0:
		return errInBody
	case !r.donates && s.inStep():
		return ErrNestedStep
	case s.marking:
		return fmt.Errorf("loris: mark step: %w", ErrConcurrent)
	}
	r.variables = s.dueVariables()
	set, all := stripesOf(r.variables), &s.core.stripes
	all.each(set, (*sync.RWMutex).RLock)
	defer all.each(set, (*sync.RWMutex).RUnlock)
	if err := s.failedValue(); err != nil {
		return &failedAssignment{err}
	}
	r.tensors = s.variableRoots(r.variables)
	s.marking, r.marks = true, true
	return nil
}

// failedAssignment says that a step's assignments have to be taken back.
type failedAssignment struct{ error }

// Unwrap returns why.
func (e *failedAssignment) Unwrap() error { return e.error }

// failedValue returns the error of a value that was assigned in this step and whose computation, at
// a read in the middle of the step, has failed; both locks are held.
func (s *Session) failedValue() error {
	for _, d := range s.assigned {
		v := d.v
		if v == nil {
			continue
		}
		x := v.pendingIn(s)
		if x == nil {
			continue
		}
		data := x.value()
		if data == nil {
			continue
		}
		if err := data.failure(); err != nil {
			tell(s.owner, err)
			return fmt.Errorf("loris: the value that the step assigns to a variable failed: %w", err)
		}
	}
	return nil
}

// dropAssigned takes back what the session has assigned in this step; both locks are held. Initial values
// that are pending stay in the step: no step but this one puts them back if their computation fails.
func (s *Session) dropAssigned() {
	s.deleteDue(func(v *Variable) bool {
		v.drop(s)
		return v.due(s) == nil
	})
	s.undoHost(0)
}

// stepRoots returns what a step computes, where vars are its dueVariables; both locks are held.
func (s *Session) stepRoots(vars []*Variable) []*Tensor {
	return s.pendingRoots(s.variableRoots(vars))
}

// variableRoots returns the pending values of a step's variables; both locks are held.
func (s *Session) variableRoots(vars []*Variable) []*Tensor {
	roots := make([]*Tensor, 0, 16)
	for _, v := range vars {
		if x := v.due(s); x != nil && x.pend != nil && x.pend.data == nil {
			roots = append(roots, x.pend)
		}
	}
	return roots
}

// pendingRoots appends what a step computes beside the values of its variables; the session is locked.
func (s *Session) pendingRoots(roots []*Tensor) []*Tensor {
	for _, t := range s.pending {
		if t.data != nil || t.bits&bitDiscarded != 0 {
			continue
		}
		if t.unconsumed() {
			roots = append(roots, t)
		}
	}
	return roots
}

// endStep commits the variables that have data by now and starts the next step, which forgetStep then
// prepares; both locks are held. It returns the variables that had data before the jobs of the step.
func (s *Session) endStep() (computed []restore) {
	left := s.assigned[:0]
	for _, d := range s.assigned {
		v := d.variable()
		if v == nil {
			continue
		}
		switch x := v.due(s); {
		case x == nil: // committed with the job that computes it
		case x.pend != nil && x.pend.data == nil:
			left = append(left, d)
		case x.s == nil:
			x.settle(v) // an initial value
		default:
			x.settle(v)
			r := restore{v: v, new: x.data, initial: v.initial}
			r.old = v.commit(*x)
			computed = append(computed, r)
		}
	}
	clear(s.assigned[len(left):])
	s.assigned = left
	s.endHistories()
	s.step++
	s.marking = false
	return computed
}

// forgetStep drops what the step that has ended held; the session is locked. If its variables have
// their values, tensors that died with it are emptied.
func (s *Session) forgetStep(empty bool) {
	for _, t := range s.pending {
		if empty && t.bits&bitScoped != 0 {
			t.empty() // it is dead
		}
	}
	clear(s.pending)
	s.pending, s.sweepPendingAt = s.pending[:0], 0
	if empty && s.recyclable() {
		s.b.Recycle()
	} else {
		s.b.NextStep()
	}
	s.lasting = false
	s.advanceSeeds()
	s.trim.count = 0
}

// recyclable reports whether nothing can use the nodes of the step that has ended, whose variables have their
// values: all its tensors are dead, and neither another sync of the session, which is locked, nor another session
// has its graph.
func (s *Session) recyclable() bool {
	return s.inStep() && !s.lasting && !s.group.shared && s.group.parent.Load() == nil && s.syncs.Load() == 1 &&
		s.core.cfg.Hooks.RunPostOrder == nil
}

// Keep marks tensors to be synced at the next MarkStep even if something
// consumes them, and to outlive a Step.
func (s *Session) Keep(ts ...*Tensor) {
	s.lockTensors("keep", ts...)
	s.core.mu.Lock()
	defer s.unlockBoth()
	for _, t := range ts {
		t.s.lasting = true
		if t.bits&bitScoped != 0 {
			t.bits |= bitOfStep
		}
		t.bits = t.bits&^(bitDiscarded|bitScoped) | bitKeep
		switch {
		case t.data != nil:
			t.data.outlive()
		case t.bits&bitUnlisted != 0:
			t.bits &^= bitUnlisted
			t.s.pending = append(t.s.pending, t)
		}
	}
}

// Discard marks tensors not to be synced at MarkStep. They stay usable, lazily.
func (s *Session) Discard(ts ...*Tensor) {
	s.lockTensors("discard", ts...)
	s.core.mu.Lock()
	defer s.unlockBoth()
	for _, t := range ts {
		t.bits = t.bits&^bitKeep | bitDiscarded
	}
}

// Step runs fn, marks the step and declares the tensors that fn recorded dead,
// except those marked Keep. That lets the computation overwrite the old values
// of variables. If fn panics or Step returns an error, of fn or of MarkStep, what fn
// recorded is dropped and its assignments are undone, so that the same Step may be tried again.
//
// If the computation fails later, a variable gets back the value that it had
// before the Step, unless the computation may have overwritten that. Then
// reading the variable returns the error until it is assigned again.
func (s *Session) Step(ctx context.Context, fn func() error) error {
	marked, err := s.scopedStep(ctx, fn)
	if marked && err != nil {
		s.isolate(ctx, err) // what was recorded before the Step may be at fault
	}
	return err
}

// scopedStep is Step, and says whether it has come to marking the step.
func (s *Session) scopedStep(ctx context.Context, fn func() error) (marked bool, err error) {
	s.lock()
	if s.inStep() {
		s.unlock()
		return false, ErrNestedStep
	}
	if s.marking {
		s.unlock()
		return false, fmt.Errorf("loris: step: %w", ErrConcurrent)
	}
	s.scope.Or(uint32(bitScoped))
	s.lasting = s.lasting || s.b.Count() > 0
	random, undos := s.random, len(s.undos)
	s.unlock()
	done := false
	defer func() {
		s.lock()
		defer s.unlock()
		if !done {
			s.core.mu.Lock()
			defer s.core.mu.Unlock()
			s.dropStep()
			s.undoHost(undos)
			s.random = random
		}
		s.scope.And(^uint32(bitScoped))
		clear(s.undo)
		s.undo = s.undo[:0]
	}()
	if err := fn(); err != nil {
		return false, err
	}
	err = s.markStep(ctx, &request{donates: true})
	done = err == nil
	return true, err
}

// assignment is what a variable was, in the session of the Step, before it was assigned inside it.
type assignment struct {
	v      *Variable
	before version // without a session if it had no pending version
}

// dropStep drops what was recorded inside the present Step and undoes its assignments; both locks are
// held.
func (s *Session) dropStep() {
	for _, u := range slices.Backward(s.undo) {
		if x := u.v.pendingIn(s); x != nil && u.before.s == s {
			*x = u.before
		} else {
			u.v.drop(s)
		}
	}
	s.gen++
	s.endView()
	s.pending = slices.DeleteFunc(s.pending, func(t *Tensor) bool {
		if t.bits&bitOfStep != 0 && t.data == nil {
			t.bits |= bitScoped
			t.gen = s.gen - 1
		}
		if t.dead() {
			t.ir, t.data = nil, nil
		}
		return t.dead()
	})
	s.deleteDue(func(v *Variable) bool {
		x := v.due(s)
		return x == nil || x.pend != nil && x.pend.dead()
	})
	if len(s.pending) == 0 { // what is recorded next, such as the Step again, is a new step's
		s.stepNodes += s.b.Count()
		s.b.NextStep()
		s.trim.count = 0
	}
}

// WaitDeviceOps waits for the work in flight on the devices (none given: all)
// and returns the errors of work of any session that nobody has been told.
func (s *Session) WaitDeviceOps(ctx context.Context, devices ...ir.Device) error {
	s.resumed()
	start := time.Now()
	defer func() { s.stage(report.StageLock, start) }()
	if err := s.core.lockers.Barrier(ctx, devices...); err != nil {
		return err
	}
	waited, err := s.core.waitSubmissions(ctx, devices)
	if err != nil || !waited {
		return err
	}
	return s.core.lockers.Barrier(ctx, devices...)
}
