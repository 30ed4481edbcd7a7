package executor

import (
	"context"
	"errors"
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
	_, err := s.markStep(ctx, devices)
	return err
}

var errTracing = errors.New("loris: MarkStep while a function is being compiled")

func (s *Session) markStep(ctx context.Context, devices []ir.Device) ([]*Async, error) {
	c := s.core
	if err := s.takeTrimError(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if s.tracing != nil {
		c.mu.Unlock()
		return nil, errTracing
	}
	tensors := s.stepRoots()
	variables := append([]*Variable{}, s.assigned...) // not nil: a step's end
	c.mu.Unlock()
	asyncs, err := s.syncTensorsGraph(ctx, tensors, stepConfig, devices, variables)
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
		if t.bits&bitKeep != 0 || !t.consumed() {
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
	clear(s.pending)
	s.pending, s.letGoAt = s.pending[:0], 0
	s.forgetOrigins(nil)
	s.step++
	s.b.NextStep()
	s.advanceSeeds()
	s.trim.count = 0
}

// Keep marks tensors to be synced at the next MarkStep even if something
// consumes them, and to outlive a Step.
func (s *Session) Keep(ts ...*Tensor) {
	s.mark(ts, func(t *Tensor) {
		t.bits = t.bits&^(bitDiscarded|bitScoped) | bitKeep
		if t.data == nil {
			t.s.pending = append(t.s.pending, t) // letGo may have taken it out
		}
	})
}

// Discard marks tensors not to be synced at MarkStep. They stay usable, lazily.
func (s *Session) Discard(ts ...*Tensor) {
	s.mark(ts, func(t *Tensor) { t.bits = t.bits&^bitKeep | bitDiscarded })
}

func (s *Session) mark(ts []*Tensor, fn func(*Tensor)) {
	s.check("mark", ts)
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	for _, t := range ts {
		fn(t)
		if t.data != nil {
			t.data.escaped = true
		}
	}
}

// ErrNestedStep says that Step was called inside Step.
var ErrNestedStep = errors.New("loris: Step inside Step")

// Step runs fn, marks the step and declares the tensors that fn recorded dead,
// except those marked Keep. That lets the computation overwrite the old values
// of variables (BuildInputOutputAliases). An error of fn is returned and the
// step's tensors are dropped without being computed.
func (s *Session) Step(ctx context.Context, fn func() error) error {
	c := s.core
	c.mu.Lock()
	if s.scope&bitScoped != 0 {
		c.mu.Unlock()
		return ErrNestedStep
	}
	from := len(s.pending)
	s.scope |= bitScoped
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		s.scope &^= bitScoped
		clear(s.scoped)
		s.scoped = s.scoped[:0]
		c.mu.Unlock()
	}()
	if err := fn(); err != nil {
		s.dropStep(from)
		return err
	}
	c.mu.Lock()
	recorded := append(append([]*Tensor(nil), s.pending[min(from, len(s.pending)):]...), s.scoped...)
	c.mu.Unlock()
	_, err := s.markStep(ctx, nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range recorded {
		if t.bits&bitScoped != 0 {
			t.bits |= bitDead
			t.ir, t.data = nil, nil
		}
	}
	return nil
}

// dropStep forgets what was recorded from the given place on, assignments too.
func (s *Session) dropStep(from int) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	dropped := map[*Tensor]bool{}
	for _, t := range s.pending[min(from, len(s.pending)):] {
		t.bits |= bitDiscarded
		dropped[t] = true
	}
	left := s.assigned[:0]
	for _, v := range s.assigned {
		if v.pend != nil && dropped[v.pend] {
			v.pend = nil
			continue
		}
		left = append(left, v)
	}
	clear(s.assigned[len(left):])
	s.assigned = left
}

// WaitDeviceOps waits for the work in flight on the devices (none given: all)
// and returns its error, if nobody has had it yet.
func (s *Session) WaitDeviceOps(ctx context.Context, devices ...ir.Device) error {
	start := time.Now()
	defer func() { s.core.stage(StageLock, start) }()
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
