package executor

import (
	"context"
	"slices"
	"time"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// A call takes the session's lock and core.mu three times: begin counts it as running and looks at what is pending as
// of one moment; gather reads the parameters while the device's lock is held, so that of two
// concurrent calls the later sees the variables as the earlier has assigned them; commit gives
// results and variables their placeholders. Between them it syncs or compiles, and uploads
// numbers.

// Call runs the compiled function on inputs of the traced shapes and returns
// its outputs, as placeholders, once the work is scheduled. Pending inputs and
// variables are synced first.
func (tr *Traced) Call(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor) ([]*Tensor, error) {
	s, c := tr.s, tr.s.core
	s.resumed()
	unlock, err := tr.lockHost(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	params := tr.numbers()
	inputs = s.localAll(inputs)
	pending, plug, err := tr.begin(inputs, params)
	if err != nil {
		return nil, err
	}
	defer c.running.Done()
	if err := s.syncPending(ctx, pending); err != nil {
		return nil, err
	}
	ref, err := tr.computation(ctx, plug)
	if err != nil {
		return nil, err
	}
	j := &syncJob{coll: &SyncTensorCollection{Device: tr.device, Hash: tr.hash}, ref: ref, call: tr}
	defer j.abandon()
	start := time.Now()
	if err := s.lockDevices(ctx, []*syncJob{j}); err != nil {
		return nil, err
	}
	s.stage(report.StageLock, start)
	if err := tr.gather(ctx, j, inputs, params); err != nil {
		return nil, err
	}
	a := newAsync(s, tr.device, tr.hash, j.params)
	if len(tr.onUndo) > 0 {
		a.undos = []*hostUndo{{undo: tr.onUndo}}
		a.hasLate.Store(true)
	}
	outs := tr.commit(a, j, newTensor)
	s.schedule(a, j)
	for _, f := range tr.onCall {
		f()
	}
	return outs, nil
}

// syncPending syncs tensors of the session, and each initial value of another one's variable there.
func (s *Session) syncPending(ctx context.Context, ts []*Tensor) error {
	for other := s.apart(ts); other != nil; other = s.apart(ts) {
		var its []*Tensor
		ts = slices.DeleteFunc(ts, func(t *Tensor) bool {
			if t.s == other {
				its = append(its, t)
			}
			return t.s == other
		})
		if _, err := other.SyncTensors(ctx, its, stepConfig); err != nil {
			return err
		}
	}
	if len(ts) == 0 {
		return nil
	}
	_, err := s.SyncTensors(ctx, ts, stepConfig)
	return err
}

// begin checks the inputs, lets Close wait for the call, and returns the inputs and variables
// if one of them is pending, and the model that is plugged for the graph, or nil.
func (tr *Traced) begin(inputs []*Tensor, params []tracedParam) (pending []*Tensor, plug *Plug, err error) {
	c := tr.s.core
	if err := tr.s.Readable(inputs...); err != nil {
		return nil, nil, err
	}
	if plug, err = tr.plugged(params); err != nil {
		return nil, nil, err
	}
	tr.s.lockWith(inputs)
	defer tr.s.unlock()
	tr.s.endView()
	defer tr.settle().release()
	if c.closed.Load() {
		return nil, nil, ErrClosed
	}
	if u := tr.s.using; u != nil && slices.ContainsFunc(tr.vars, func(v *Variable) bool { return u.versions[v] != nil }) {
		return nil, nil, ir.NewOpError("call", ir.ErrArg, nil, "the function assigns a variable of the snapshot that the session uses, which does not change: Use(nil) first")
	}
	all := slices.Clone(inputs)
	for _, p := range tr.params {
		if p.v == nil {
			continue
		}
		x := p.v.choose(tr.s)
		if err := p.v.usable(tr.s, x); err != nil {
			return nil, nil, err
		}
		if x.pend != nil {
			all = append(all, x.pend)
		}
	}
	if slices.ContainsFunc(all, func(t *Tensor) bool { return t.data == nil }) {
		pending = all
	}
	c.running.Add(1)
	return pending, plug, nil
}

// commit makes the placeholders of the results and of the variables' new values.
func (tr *Traced) commit(a *Async, j *syncJob, newTensor func() *Tensor) []*Tensor {
	s, c := tr.s, tr.s.core
	outs := make([]*Tensor, tr.numOut)
	a.promise(len(tr.program.Returns), func(i int) ir.Shape { return tr.program.Shape(tr.program.Returns[i]) })
	for i := range outs {
		outs[i] = newTensor()
		outs[i].s = s
		outs[i].hold(a.outputs[i])
		outs[i].data.outlive()
	}
	defer c.live.add(s, tr.device, outs...)
	s.lock()
	defer s.unlock()
	for _, t := range outs {
		t.step = s.step
	}
	if tr.commits() {
		c.mu.Lock()
		tr.assign(a, j)
		c.mu.Unlock()
	}
	if s.inStep() {
		s.undos = append(s.undos, a.undos...)
	}
	c.running.Add(1)
	return outs
}

// commits reports whether a call changes variables: those that the function assigns, and those that it
// reads and the session has assigned before. The session is locked.
func (tr *Traced) commits() bool {
	defer tr.s.core.reading(tr.stripes).release()
	return len(tr.vars) > 0 || slices.ContainsFunc(tr.params, func(p tracedParam) bool { return p.v != nil && p.v.pendingIn(tr.s) != nil })
}

// settle takes over what variables that the function reads have got since they were looked at, and
// returns with them held; the session is locked.
func (tr *Traced) settle() hold {
	c := tr.s.core
	h := c.reading(tr.stripes)
	left := slices.ContainsFunc(tr.params, func(p tracedParam) bool {
		if p.v == nil {
			return false
		}
		x := p.v.choose(tr.s)
		return p.v.initial != nil || x.pend != nil && (x.pend.s != tr.s || x.pend.data != nil)
	})
	if !left {
		return h
	}
	h.release()
	h = c.alone()
	for _, p := range tr.params {
		if p.v != nil {
			p.v.seen(tr.s)
		}
	}
	return h
}

// assign gives the variables their new values; both locks are held. Inside a Step they are pending as
// other assignments of the Step are. Otherwise the call commits them all, and what its session has
// assigned before to variables that the function reads. An old value dies if nothing but
// the variable has it, now or in a Step that is being recorded, and is donated if the function
// reads it: the device's lock orders the call before whatever reads the variable later.
func (tr *Traced) assign(a *Async, j *syncJob) {
	s := tr.s
	scoped := s.inStep()
	if !scoped {
		changed := slices.Clone(tr.vars)
		for _, p := range tr.params {
			if p.v != nil && p.v.pendingIn(s) != nil {
				changed = append(changed, p.v)
			}
		}
		s.core.keepViews(s, changed...)
	}
	for k, v := range tr.vars {
		old := v.seen(s).data
		dies := old != nil && old.device == tr.device && old.mayDie() && !scoped && !v.s.inStep()
		j.vars = append(j.vars, restore{v: v, old: old, new: a.outputs[tr.numOut+k], initial: v.initial, dies: dies})
	}
	if j.ref.Value().plug == nil {
		for _, d := range tr.donors {
			if r := &j.vars[d.output-tr.numOut]; r.dies && a.params[d.param] == r.old {
				a.donate(d.param)
			}
		}
	}
	if scoped {
		for _, r := range j.vars {
			r.v.renew(s).set(r.v, r.new)
		}
		return
	}
	for _, p := range tr.params {
		if p.v == nil {
			continue
		}
		if x := p.v.pendingIn(s); x != nil && x.pend == nil {
			p.v.commit(*x)
		}
	}
	for _, r := range j.vars {
		x := version{s: s}
		x.set(r.v, r.new)
		r.v.commit(x)
	}
}

// gather finds the data of the parameters; the device's lock is held.
func (tr *Traced) gather(ctx context.Context, j *syncJob, inputs []*Tensor, params []tracedParam) error {
	j.params = make([]*Data, len(tr.params))
	tr.s.lock()
	h := tr.s.core.reading(tr.stripes)
	var seed uint64
	if tr.random {
		// Every call has a stream of its own, apart from the step's.
		tr.s.calls++
		seed = forkSeed(tr.s.rngFor(tr.device).running, ^tr.s.calls)
	}
	for i, p := range params {
		switch {
		case p.input >= 0:
			j.params[i] = inputs[p.input].data
		case p.v != nil:
			j.params[i] = p.v.choose(tr.s).value()
		case p.data != nil:
			j.params[i] = p.data
		case p.seed:
			j.scalars = append(j.scalars, scalarParam{i, &ir.ScalarLeaf{Int: int64(seed)}, p.dtype})
		default:
			j.scalars = append(j.scalars, scalarParam{i, p.scalar, p.dtype})
		}
		// The device's lock orders this call before steps that overwrite data of this
		// device, but not before those that overwrite data of another one.
		if d := j.params[i]; d != nil && (p.v == nil || d.device != tr.device) {
			d.escape()
		}
	}
	h.release()
	tr.s.unlock()
	return tr.s.resolveScalars(ctx, j)
}
