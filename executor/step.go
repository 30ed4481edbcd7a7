package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loris-ml/loris/cache"
	"github.com/loris-ml/loris/ir"
)

var stepConfig = SyncTensorsConfig{ForceData: true, SyncData: true}

// MarkStep ends the step: it syncs the variables with a pending value, the
// tensors marked Keep and those recorded since the last step that nothing
// recorded consumes, and moves the random seeds on. It returns when the work is
// scheduled. On an error nothing has happened and the step is still open; an
// error of the step before (*devicelock.AsyncError) is delivered this way too,
// and the next call goes on. No device given means all.
func (s *Session) MarkStep(ctx context.Context, devices ...ir.Device) error {
	_, err := s.markStep(ctx, devices, false)
	return err
}

// Errors of steps inside others (errors.Is).
var (
	// ErrNestedStep says that Step or MarkStep was called inside Step.
	ErrNestedStep = errors.New("loris: Step or MarkStep inside Step")

	errTracing = errors.New("loris: MarkStep while a function is being compiled")
)

// markStep is MarkStep, or with ends the end of a Step, which donates.
func (s *Session) markStep(ctx context.Context, devices []ir.Device, ends bool) ([]*Async, error) {
	c := s.core
	if err := s.takeTrimError(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	var err error
	switch {
	case s.tracing != nil:
		err = errTracing
	case !ends && s.scope&bitScoped != 0:
		err = ErrNestedStep
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	tensors := s.stepRoots()
	variables := append([]*Variable{}, s.assigned...)
	c.mu.Unlock()
	asyncs, err := s.syncTensorsGraph(ctx, tensors, stepConfig, devices, variables, ends)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	s.endStep(variables)
	c.mu.Unlock()
	c.stats.steps.Add(1)
	return asyncs, nil
}

// stepRoots returns what a step computes; core.mu is held.
func (s *Session) stepRoots() []*Tensor {
	roots := make([]*Tensor, 0, 16)
	for _, v := range s.assigned {
		if v.pend != nil && v.pend.data == nil {
			roots = append(roots, v.pend)
		}
	}
	for _, t := range s.pending {
		if t.data != nil || t.bits&bitDiscarded != 0 {
			continue
		}
		if t.bits&bitKeep != 0 || t.ir.Used>>min(t.out, 31)&1 == 0 {
			roots = append(roots, t)
		}
	}
	return roots
}

// endStep starts the next step; core.mu is held.
func (s *Session) endStep(variables []*Variable) {
	for _, v := range variables {
		v.current()
	}
	left := s.assigned[:0]
	for _, v := range s.assigned {
		if v.pend != nil && v.pend.data == nil {
			left = append(left, v)
		}
	}
	clear(s.assigned[len(left):])
	s.assigned = left
	for _, t := range s.pending {
		if t.bits&bitScoped != 0 && len(left) == 0 {
			t.ir, t.data = nil, nil // it is dead: let the memory go
		}
	}
	clear(s.pending)
	s.pending, s.looseAt = s.pending[:0], 0
	s.forgetOrigins()
	s.step++
	s.b.NextStep()
	s.advanceSeeds()
	s.trim.count = 0
}

// Keep marks tensors to be synced at the next MarkStep even if something
// consumes them, and to outlive a Step.
func (s *Session) Keep(ts ...*Tensor) {
	s.begin("keep", ts...)
	defer s.core.mu.Unlock()
	for _, t := range ts {
		t.bits = t.bits&^(bitDiscarded|bitScoped) | bitKeep
		switch {
		case t.data != nil:
			t.data.escaped = true
		case t.bits&bitLoose != 0:
			t.bits &^= bitLoose
			t.s.pending = append(t.s.pending, t)
		}
	}
}

// Discard marks tensors not to be synced at MarkStep. They stay usable, lazily.
func (s *Session) Discard(ts ...*Tensor) {
	s.begin("discard", ts...)
	defer s.core.mu.Unlock()
	for _, t := range ts {
		t.bits = t.bits&^bitKeep | bitDiscarded
	}
}

// Step runs fn, marks the step and declares the tensors that fn recorded dead,
// except those marked Keep. That lets the computation overwrite the old values
// of variables (BuildInputOutputAliases). An error of fn is returned, and a
// panic goes on; either drops what fn recorded and takes its assignments back.
//
// Should the computation fail later, a variable has the value again that it had
// before the Step, unless the computation may have overwritten that: then it has
// the error, until it is assigned again.
func (s *Session) Step(ctx context.Context, fn func() error) error {
	c := s.core
	c.mu.Lock()
	if s.scope&bitScoped != 0 {
		c.mu.Unlock()
		return ErrNestedStep
	}
	s.scope |= bitScoped
	c.mu.Unlock()
	done := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !done {
			s.dropStep()
		}
		s.scope &^= bitScoped
		clear(s.undo)
		s.undo = s.undo[:0]
	}()
	if err := fn(); err != nil {
		return err
	}
	done = true
	_, err := s.markStep(ctx, nil, true)
	return err
}

// assignment is what a variable was before one.
type assignment struct {
	v    *Variable
	data *Data
	pend *Tensor
}

// dropStep forgets what was recorded inside the present Step, assignments too;
// core.mu is held.
func (s *Session) dropStep() {
	for _, u := range slices.Backward(s.undo) {
		u.v.set(u.data, u.pend)
	}
	s.gen++
	s.pending = slices.DeleteFunc(s.pending, func(t *Tensor) bool {
		if t.dead() {
			t.ir, t.data = nil, nil
		}
		return t.dead()
	})
	s.assigned = slices.DeleteFunc(s.assigned, func(v *Variable) bool {
		return v.pend == nil || v.pend.data != nil || v.pend.dead()
	})
}

// WaitDeviceOps waits for the work in flight on the devices (none given: all)
// and returns its error, if nobody has had it yet.
func (s *Session) WaitDeviceOps(ctx context.Context, devices ...ir.Device) error {
	start := time.Now()
	defer func() { s.core.stage(StageLock, start) }()
	if err := s.core.lockers.Barrier(ctx, devices...); err != nil {
		return err
	}
	waited, err := s.core.waitFlights(ctx, devices)
	if err != nil || !waited {
		return err
	}
	return s.core.lockers.Barrier(ctx, devices...)
}

// GetGraphHash returns the hash of the graph that a sync of the tensors would
// run. It fails if they are on several devices or none is pending.
func (s *Session) GetGraphHash(ts ...*Tensor) (ir.Hash, error) {
	if err := s.Readable(ts...); err != nil {
		return ir.Hash{}, err
	}
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		return ir.Hash{}, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		return ir.Hash{}, err
	}
	defer s.core.walker.Release()
	return s.core.walker.Hash(&po.PostOrder, colls[0].Device), nil
}

var errNotOneGraph = errors.New("loris: the tensors are not pending on exactly one device")

func hostKey(shape ir.Shape, data []byte) cache.Key {
	h := ir.HashBytes(shape.Append(nil))
	d := ir.HashBytes(data)
	return cache.Key{Lo: h.Lo*31 + d.Lo, Hi: h.Hi*31 + d.Hi}
}
