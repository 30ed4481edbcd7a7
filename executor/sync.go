package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/loris-ml/loris/cache"
	"github.com/loris-ml/loris/devicelock"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// syncJob is one collection on its way through the stages.
type syncJob struct {
	coll    *SyncTensorCollection
	tensors []*Tensor
	roots   []ir.Value
	outputs []int // for each of coll.Indices, its position among roots
	params  []*Data
	scalars []scalarParam
	donors  []donor
	ref     *cache.Ref[*Computation]
	held    *devicelock.Held
	program *graph.Program // on a cache miss only
	plug    *Plug          // the model in the place of the computation
	nodes   int
	vars    []restore
	ends    bool // a MarkStep: the origins of its values end with it
	donates bool // the end of a Step: what variables held before dies with it
}

// donor is a parameter that may die with the step and the output that replaces
// it.
type donor struct{ param, output int }

// restore undoes an assignment whose computation failed. After one that worked
// nothing can reach the old data, if it dies.
type restore struct {
	v        *Variable
	old, new *Data
	dies     bool
}

// SyncTensors computes the given tensors, those of them that are pending, and
// returns once the work is scheduled: one Async for each device. Nothing
// pending is no work and no error. On an error every tensor still holds its IR.
// Tensors whose device is not among devices, when given, are left alone.
func (s *Session) SyncTensors(ctx context.Context, tensors []*Tensor, cfg SyncTensorsConfig, devices ...ir.Device) ([]*Async, error) {
	asyncs, err := s.syncTensorsGraph(ctx, tensors, cfg, devices, nil, false)
	if len(asyncs) > 0 {
		s.core.mu.Lock()
		s.letGo()
		s.core.mu.Unlock()
	}
	return asyncs, err
}

// SyncLiveTensors computes all live tensors of the devices (none given: all) and,
// with wait, blocks until they are there.
func (s *Session) SyncLiveTensors(ctx context.Context, wait bool, devices ...ir.Device) error {
	asyncs, err := s.SyncTensors(ctx, s.GetLiveTensors(devices...), SyncTensorsConfig{ForceData: true, SyncData: true}, devices...)
	if err != nil || !wait {
		return err
	}
	return waitAll(ctx, asyncs)
}

func waitAll(ctx context.Context, asyncs []*Async) error {
	for _, a := range asyncs {
		if err := a.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// syncTensorsGraph runs the stages for each device's collection in order.
// variables, on a MarkStep, are those with a pending value; donate allows to
// overwrite their old data.
func (s *Session) syncTensorsGraph(ctx context.Context, tensors []*Tensor, cfg SyncTensorsConfig, devices []ir.Device, variables []*Variable, donate bool) ([]*Async, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := s.core
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.running.Done()
	start := time.Now()
	jobs, err := s.prepare(tensors, cfg, devices, variables, donate)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	start = c.stage(StageCollect, start)
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
	start = c.stage(StageCompile, start)
	for _, j := range jobs {
		if err := s.resolveScalars(ctx, j); err != nil {
			return nil, fmt.Errorf("loris: sync on %v: %w", j.coll.Device, err)
		}
	}
	start = c.stage(StageUpload, start)
	if err := s.lockDevices(ctx, jobs); err != nil {
		return nil, err
	}
	start = c.stage(StageLock, start)
	asyncs := s.assignAndSchedule(jobs, variables)
	c.stage(StageSchedule, start)
	return asyncs, nil
}

// prepare collects, walks and hashes under the lock.
func (s *Session) prepare(tensors []*Tensor, cfg SyncTensorsConfig, devices []ir.Device, variables []*Variable, donate bool) ([]*syncJob, error) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	colls := s.collectSyncTensors(tensors, cfg, devices)
	jobs := make([]*syncJob, 0, len(colls))
	for _, coll := range colls {
		j := &syncJob{coll: coll, tensors: tensors, ends: variables != nil}
		j.roots, j.outputs = collectRoots(tensors, coll.Indices)
		po, err := s.runPostOrder(j.roots)
		if err != nil {
			for _, earlier := range jobs {
				earlier.abandon()
			}
			return nil, err
		}
		j.params, j.scalars, j.nodes = po.Parameters, po.scalars, len(po.Nodes)
		coll.Hash = c.walker.Hash(&po.PostOrder, coll.Device)
		if j.plug, err = c.pluggedFor(coll.Hash, po.scalars, coll.Device, po.shapes); err != nil {
			c.walker.Release()
			for _, earlier := range jobs {
				earlier.abandon()
			}
			return nil, err
		}
		if j.donates = donate && j.plug == nil && c.cfg.Hooks.ShouldSyncTensor == nil; j.donates {
			s.buildInputOutputAliases(j, variables)
		} else {
			// This sync may still wait for its lock when a step that donates
			// takes the device, so that step must leave these alone.
			for _, p := range j.params {
				if p != nil {
					p.escaped = true
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
		c.walker.Release()
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// buildInputOutputAliases pairs the old data of variables with the outputs that
// replace it. The pairs are part of the key: the compiled plan depends on them.
// Whether a pair's data may be overwritten, because nothing else can reach it any
// more, is for assign to say: it may change from step to step, and must not
// compile the graph again.
func (s *Session) buildInputOutputAliases(j *syncJob, variables []*Variable) {
	var at map[*Data]int
	for _, v := range variables {
		d := v.data
		if v.s != s || d == nil || v.pend == nil || v.pend.data != nil {
			continue
		}
		if at == nil {
			at = make(map[*Data]int, len(j.params))
			for i, p := range j.params {
				if _, twice := at[p]; twice {
					i = -1 // by two leaves: overwriting one would change the other
				}
				at[p] = i
			}
		}
		param, used := at[d]
		if !used || param < 0 || v.pend.node().Shape() != d.shape {
			continue
		}
		for out, r := range j.roots {
			if r == v.pend.node() {
				j.donors = append(j.donors, donor{param, out})
				delete(at, d)
				break
			}
		}
	}
	j.coll.Hash = aliasedHash(j.coll.Hash, j.donors)
}

// aliasedHash is the key of a graph's computation that may write outputs over
// parameters.
func aliasedHash(graph ir.Hash, donors []donor) ir.Hash {
	if len(donors) == 0 {
		return graph
	}
	b := graph.Append(make([]byte, 0, 16+8*len(donors)))
	for _, d := range donors {
		b = append(b, byte(d.param), byte(d.param>>8), byte(d.param>>16), byte(d.param>>24))
		b = append(b, byte(d.output), byte(d.output>>8), byte(d.output>>16), byte(d.output>>24))
	}
	return ir.HashBytes(b)
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

// lockDevices waits for each collection's device, in order. An error of work
// that was scheduled there before surfaces here.
func (s *Session) lockDevices(ctx context.Context, jobs []*syncJob) error {
	for _, j := range jobs {
		if h := s.core.cfg.Hooks.TensorCollectionBarrier; h != nil {
			h(j.coll)
		}
		held, err := s.core.lockers.LockDevices(ctx, j.coll.Device)
		if err != nil {
			return err
		}
		j.held = held
	}
	return nil
}

// assignAndSchedule gives the tensors their placeholders and starts the work.
// Nothing here can fail.
func (s *Session) assignAndSchedule(jobs []*syncJob, variables []*Variable) []*Async {
	c := s.core
	asyncs := make([]*Async, len(jobs))
	c.mu.Lock()
	for i, j := range jobs {
		asyncs[i] = s.assign(j)
		j.settle(asyncs[i], variables)
	}
	c.running.Add(len(jobs))
	c.mu.Unlock()
	for i, j := range jobs {
		s.schedule(asyncs[i], j)
	}
	return asyncs
}

// assign makes the placeholders; core.mu is held. A tensor that another sync
// has assigned in the meantime keeps what it got.
func (s *Session) assign(j *syncJob) *Async {
	c := s.core
	a := &Async{Device: j.coll.Device, Indices: j.coll.Indices, Hash: j.coll.Hash, ready: make(chan struct{}), done: make(chan struct{}), session: s}
	a.outputs = make([]*Data, len(j.roots))
	for i, r := range j.roots {
		a.outputs[i] = placeholder(r.Shape(), j.coll.Device, c.nextID.Add(1), a.ready)
	}
	a.params = j.params
	for _, d := range j.donors {
		a.donate(d.param) // only now: a fork may have taken a handle since the collection
	}
	if !j.coll.Config.ForceData {
		return a
	}
	for k, i := range j.coll.Indices {
		t, out := j.tensors[i], j.outputs[k]
		if t.data != nil || t.ir == nil || t.node() != j.roots[out] {
			continue
		}
		t.data = a.outputs[out]
		if t.bits&bitScoped == 0 {
			t.data.escaped = true
		}
		if j.coll.Config.SyncData {
			if !j.ends && t.step == t.s.step && t.data.origin == nil {
				t.data.origin = t.s.newOrigin(t.node())
			}
			t.ir = nil
		}
		if !j.ends || t.bits&bitScoped == 0 { // else it dies with this
			c.registerTensor(t)
		}
	}
	return a
}

// donate lets the computation overwrite a parameter that nothing else can reach;
// core.mu is held.
func (a *Async) donate(param int) {
	p := a.params[param]
	if p.donated || !p.mayDie() {
		return
	}
	if a.donated == nil {
		a.donated = make([]bool, len(a.params))
	}
	a.donated[param], p.donated = true, true
}

// settle moves the variables whose pending value this job computes to it;
// core.mu is held. A value that another sync has computed is endStep's to take
// over: it does not fail with this job.
func (j *syncJob) settle(a *Async, variables []*Variable) {
	for _, v := range variables {
		if v.pend == nil || v.pend.data == nil || !a.makes(v.pend.data) {
			continue
		}
		old := v.data
		// The device's lock orders the release after all that reads the old value.
		dies := j.donates && v.s == a.session && old != nil && old.mayDie() && old.device == a.Device
		j.vars = append(j.vars, restore{v: v, old: old, new: v.pend.data, dies: dies})
		v.current()
	}
}

// makes reports whether d is one of the outputs of a job that is being assigned:
// their numbers follow each other, and core.mu, which is held, keeps others from
// assigning meanwhile.
func (a *Async) makes(d *Data) bool {
	n := len(a.outputs)
	return n > 0 && a.outputs[0].info.TensorID <= d.info.TensorID && d.info.TensorID <= a.outputs[n-1].info.TensorID
}
