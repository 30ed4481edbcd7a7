package executor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// A sync takes the session's lock twice, since it may not be held while the sync compiles, uploads
// numbers and waits for the devices' lockers:
//
//   - prepare holds it to read: which tensors are pending, their graph and hash, and the data of its
//     parameters are seen as of one moment. It holds core.mu to see that the session is open, so that
//     Close waits for the sync from then on, and to look at variables;
//   - commit holds it to write, and the variables with it: all tensors and variables get their placeholders,
//     and the step ends, at one moment, so that no op is recorded between a step's values and its end.
//
// Tensors may change between the two. Hence commit assigns a placeholder only to a tensor that
// still is what prepare saw, and decides only there which parameters may be overwritten. The
// goroutine of the computation takes core.mu only to put back the values of variables
// after an error, and to enter and leave the queue of a device that has one.

// request says what a sync computes.
type request struct {
	tensors   []*Tensor
	variables []*Variable // of a MarkStep: those with a pending value
	config    SyncTensorsConfig
	devices   []ir.Device // none means all
	endsStep  bool        // it is a MarkStep
	marks     bool        // set by prepare: the session is marked as ending its step
	donates   bool        // it ends a Step: the values that its variables replace may be overwritten
}

// syncJob is one collection on its way through the stages.
type syncJob struct {
	coll     *SyncTensorCollection
	tensors  []*Tensor
	roots    []ir.Value
	outputs  []int // for each of coll.Indices, its position among roots
	params   []*Data
	scalars  []scalarParam
	donors   []donor
	ref      *cache.Ref[*Computation]
	held     *devicelock.Held
	program  *graph.Program // on a cache miss only
	call     *Traced        // the function, if it is that of a Call
	plug     *Plug          // the model that runs in place of the computation
	vars     []restore
	live     []*Tensor // set by assign: those that got data and outlive the step
	few      [4]*Tensor
	endsStep bool // the step ends with the sync, and gradient histories with it
	donates  bool // the values that variables replace may be overwritten
}

// SyncTensors computes the given tensors, those of them that are pending, and
// returns once the work is scheduled: one Async for each device. Nothing
// pending is no work and no error. On an error every tensor still holds its IR.
// Tensors whose device is not among devices, when given, are left alone.
func (s *Session) SyncTensors(ctx context.Context, tensors []*Tensor, cfg SyncTensorsConfig, devices ...ir.Device) ([]*Async, error) {
	return s.sync(ctx, &request{tensors: s.unsynced(tensors), config: cfg, devices: devices})
}

// unsynced returns the tensors with nil in place of those that have data and another session's lock:
// reading what several forks have computed is no reason for these to join.
func (s *Session) unsynced(ts []*Tensor) []*Tensor {
	if s.apart(ts) == nil {
		return ts
	}
	ts = slices.Clone(ts)
	for i, t := range ts {
		if s.apart(ts[i:i+1]) != nil && t.hasData() {
			ts[i] = nil
		}
	}
	return ts
}

// hasData reports whether the tensor is not pending; no lock is held.
func (t *Tensor) hasData() bool {
	t.s.lock()
	defer t.s.unlock()
	return t.data != nil
}

// sync runs the stages, each for all collections in the order of their devices.
func (s *Session) sync(ctx context.Context, r *request) ([]*Async, error) {
	c := s.core
	s.resumed()
	s.syncs.Add(1)
	defer s.syncs.Add(-1)
	start := time.Now()
	if r.endsStep {
		s.recorded(start)
		defer s.stepEnded()
	}
	jobs, err := s.prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	defer c.running.Done()
	if len(jobs) == 0 {
		if r.endsStep {
			s.commit(r, nil, nil)
		}
		return nil, nil
	}
	start = s.stage(report.StageCollect, start)
	defer func() {
		for _, j := range jobs {
			j.abandon()
		}
	}()
	// Everything that can fail comes before the first assignment, for all
	// devices: a sync happens as a whole or not at all.
	for _, j := range jobs {
		if err := s.lookupOrCompile(ctx, j); err != nil {
			return nil, fmt.Errorf("loris: sync on %v: %w", j.coll.Device, err)
		}
	}
	start = s.stage(report.StageCompile, start)
	for _, j := range jobs {
		if err := s.resolveScalars(ctx, j); err != nil {
			return nil, fmt.Errorf("loris: sync on %v: %w", j.coll.Device, err)
		}
	}
	start = s.stage(report.StageUpload, start)
	if err := s.lockDevices(ctx, jobs); err != nil {
		return nil, err
	}
	start = s.stage(report.StageLock, start)
	asyncs := make([]*Async, len(jobs))
	for i, j := range jobs {
		asyncs[i] = s.promise(j)
	}
	s.commit(r, jobs, asyncs)
	for i, j := range jobs {
		s.schedule(asyncs[i], j)
	}
	s.stage(report.StageSchedule, start)
	return asyncs, nil
}

// prepare collects, walks and hashes with the session locked. Unless it returns an error, the sync
// counts as running.
func (s *Session) prepare(ctx context.Context, r *request) (jobs []*syncJob, err error) {
	s.lockWith(r.tensors)
	defer s.unlock()
	if err := s.beginSync(ctx, r); err != nil {
		return nil, err
	}
	done := false
	defer func() {
		if !done { // an error, or a panic of a hook
			s.core.running.Done()
		}
	}()
	if r.endsStep {
		r.tensors = s.pendingRoots(r.tensors)
	}
	colls := s.collectSyncTensors(r.tensors, r.config, r.devices)
	jobs = make([]*syncJob, 0, len(colls))
	for _, coll := range colls {
		j, err := s.newJob(r, coll)
		if err != nil {
			for _, earlier := range jobs {
				earlier.abandon()
			}
			return nil, err
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		j.noteStale()
	}
	done = true
	return jobs, nil
}

// beginSync does what of prepare takes core.mu; the session is locked. Unless it returns an error, the
// sync counts as running.
func (s *Session) beginSync(ctx context.Context, r *request) error {
	c := s.core
	h := c.reading(0)
	if r.endsStep {
		if err := s.stepRequest(r); err != nil {
			h.release()
			if failed, ok := err.(*failedAssignment); ok {
				defer c.alone().release()
				s.dropAssigned()
				err = failed.error
			}
			return err
		}
	}
	defer h.release()
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.closed.Load() {
		return ErrClosed
	}
	s.endView()
	c.running.Add(1)
	return nil
}

// noteStale reports tensors of an earlier step, whose graph runs again for them; the session is locked.
func (j *syncJob) noteStale() {
	for _, i := range j.coll.Indices {
		if t := j.tensors[i]; t.stale() && t.bits&bitDiscarded == 0 {
			t.s.core.stats.recomputed(t.ir.Line())
		}
	}
}

// newJob walks and hashes the graph of a collection, and looks for its computation; the session is
// locked.
func (s *Session) newJob(r *request, coll *SyncTensorCollection) (*syncJob, error) {
	c := s.core
	j := &syncJob{coll: coll, tensors: r.tensors, endsStep: r.endsStep}
	j.roots, j.outputs = collectRoots(r.tensors, coll.Indices)
	po, err := s.runPostOrder(j.roots)
	if err != nil {
		return nil, err
	}
	defer s.walker.Release()
	j.params, j.scalars = po.Parameters, po.scalars
	coll.Hash = s.walker.Hash(&po.PostOrder, coll.Device)
	if j.plug, err = c.pluggedFor(coll.Hash, po.scalars, coll.Device, po.shapes); err != nil {
		return nil, err
	}
	if j.donates = r.donates && j.plug == nil && c.cfg.Hooks.ShouldSyncTensor == nil; j.donates {
		s.buildInputOutputAliases(j, r.variables)
	} else {
		// This sync may still wait for its lock when a step that donates
		// takes the device, so that step must leave these alone.
		for _, p := range j.params {
			if p != nil {
				p.escape()
			}
		}
	}
	if j.plug == nil {
		if ref, ok := c.cache.Get(cache.Key(coll.Hash)); ok {
			j.ref = ref
			c.stats.hits.Add(1)
		} else {
			j.program, _ = graph.FromPostOrder("step", &po.PostOrder)
		}
	}
	c.stats.graph(len(po.Nodes))
	return j, nil
}

// abandon releases what a job still holds; a scheduled job holds nothing.
func (j *syncJob) abandon() {
	if j.held != nil {
		j.held.Unlock(nil)
		j.held = nil
	}
	if j.ref != nil {
		j.ref.Release()
		j.ref = nil
	}
}

// lockDevices waits for each collection's device, in order. It returns an error of work that
// this session has scheduled there before, if the session has not been told of it yet (package
// devicelock says who is told what).
func (s *Session) lockDevices(ctx context.Context, jobs []*syncJob) error {
	for _, j := range jobs {
		if h := s.core.cfg.Hooks.TensorCollectionBarrier; h != nil {
			h(j.coll)
		}
		held, err := s.core.lockers.LockDevicesFor(ctx, s.owner, s.core.mode(j), j.expected(), j.coll.Device)
		if err != nil {
			return err
		}
		j.held = held
	}
	return nil
}

// mode returns what may run on the device beside the job's computation. Sessions that are bounded
// together take turns, and so does what a device keeps in order, what is to have the same order on
// all ranks, and plugged models. Else a step may overwrite data of its own session's variables, which
// others read in calls alone: what a sync without donation reads has escaped before.
func (c *core) mode(j *syncJob) devicelock.Mode {
	m := j.ref.Value()
	switch {
	case c.cfg.Threads > 0 || m.plug != nil || m.queues || len(m.collectives) > 0:
		return devicelock.Alone
	case j.call != nil && len(j.call.vars) > 0: // it may overwrite what other sessions' variables hold
		return devicelock.Alone
	case j.call != nil:
		return devicelock.Reads
	case j.donates:
		return devicelock.Overwrites
	}
	return devicelock.Apart
}

// expected returns how long the computation held its device when it ran last; 0 if it has not run, or
// takes part in collectives, whose order is the same on all ranks.
func (j *syncJob) expected() time.Duration {
	m := j.ref.Value()
	if len(m.collectives) > 0 {
		return 0
	}
	return time.Duration(m.pace.took.Load())
}

// commit gives the tensors and variables their placeholders and ends the step of a MarkStep, with
// the session locked and the variables held. It cannot fail.
func (s *Session) commit(r *request, jobs []*syncJob, asyncs []*Async) {
	c := s.core
	defer func() {
		for _, j := range jobs {
			c.live.add(s, j.coll.Device, j.live...)
		}
	}()
	s.lock()
	defer s.unlock()
	switch {
	case r.endsStep:
		s.forgetStep(s.commitShared(r, jobs, asyncs))
	case s.holdsValues(jobs):
		s.commitShared(r, jobs, asyncs)
	default:
		for i, j := range jobs {
			j.assign(asyncs[i])
		}
		c.running.Add(len(jobs))
		s.dropConsumed()
	}
}

// holdsValues reports whether a sync that ends no step changes tensors that are values of variables;
// the session is locked.
func (s *Session) holdsValues(jobs []*syncJob) bool {
	value := func(t *Tensor) bool { return t.bits&bitValue != 0 }
	for _, j := range jobs {
		for _, i := range j.coll.Indices {
			if value(j.tensors[i]) {
				return true
			}
		}
	}
	return len(s.pending) >= s.sweepPendingAt && slices.ContainsFunc(s.pending, value) // see dropConsumed
}

// commitShared does what of commit takes core.mu; the session is locked. It reports whether the
// variables of a step have their values.
func (s *Session) commitShared(r *request, jobs []*syncJob, asyncs []*Async) (empty bool) {
	c := s.core
	defer s.holdStep(r, jobs).release()
	if r.endsStep {
		c.keepViews(s, r.variables...)
	}
	for i, j := range jobs {
		j.assign(asyncs[i])
		j.settle(asyncs[i], r.variables)
	}
	c.running.Add(len(jobs))
	if !r.endsStep {
		s.dropConsumed()
		return false
	}
	computed := s.endStep()
	together(jobs, computed)
	s.giveUndos(asyncs, computed)
	return len(s.assigned) == 0
}

// holdStep takes what commitShared needs: the variables of the step, all at one time, or core.mu for
// writing where it meets more than them. The session is locked.
func (s *Session) holdStep(r *request, jobs []*syncJob) hold {
	if r.endsStep {
		set := stripesOf(r.variables)
		h := s.core.changing(set)
		if s.changesOnly(set, jobs) {
			return h
		}
		h.release()
	}
	return s.core.alone()
}

// changesOnly reports whether the end of the step changes nothing but variables of the stripes, which are
// held: no initial value that others may be looking at, and no computation that is under way.
func (s *Session) changesOnly(set stripeSet, jobs []*syncJob) bool {
	for _, d := range s.assigned {
		v := d.v
		if v == nil || v.stripe()&set == 0 || v.initial != nil || v.committed.pend != nil {
			return false
		}
		if x := v.pendingIn(s); x != nil {
			if d := x.value(); d != nil && d.by != nil && !d.Ready() {
				return false // see together
			}
		}
	}
	for _, j := range jobs {
		if slices.ContainsFunc(j.coll.Indices, func(i int) bool { return j.tensors[i].bits&bitInitial != 0 }) {
			return false
		}
	}
	return len(s.undos) == 0
}
