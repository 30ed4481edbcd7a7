package executor

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// restore undoes an assignment to a variable if the computation fails. If it succeeds and dies
// is set, nothing can reach the old data any more.
type restore struct {
	v        *Variable
	old, new *Data
	initial  *Tensor // in place of old: the IR of the initial value
	dies     bool
}

// promise makes the placeholders of a job's results, before locks are taken to give them away.
func (s *Session) promise(j *syncJob) *Async {
	a := newAsync(s, j.coll.Device, j.coll.Hash, j.params)
	a.Indices = j.coll.Indices
	a.promise(len(j.roots), func(i int) ir.Shape { return j.roots[i].Shape() })
	j.live = slices.Grow(j.few[:0], len(a.Indices))
	return a
}

// promise makes the placeholders of n outputs, whose numbers are consecutive.
func (a *Async) promise(n int, shape func(int) ir.Shape) {
	a.outputs = make([]*Data, n)
	first := a.session.core.nextID.Add(uint64(n)) - uint64(n) + 1
	for i := range a.outputs {
		a.outputs[i] = placeholder(shape(i), a.Device, first+uint64(i), a.ready)
		a.outputs[i].by = a
	}
}

// assign gives the tensors of a job their placeholders; both locks are held. A tensor that another sync has
// assigned since the collection keeps what it got.
func (j *syncJob) assign(a *Async) {
	for _, d := range j.donors {
		a.donate(d.param) // only now: a fork may have taken a handle since the collection
	}
	if !j.coll.Config.ForceData {
		return
	}
	for k, i := range j.coll.Indices {
		t, out := j.tensors[i], j.outputs[k]
		if t.data != nil || t.ir == nil || t.node() != j.roots[out] {
			continue
		}
		t.hold(a.outputs[out])
		if t.bits&bitScoped == 0 {
			t.data.outlive()
		}
		if j.coll.Config.SyncData {
			if !j.endsStep && t.step == t.s.step && t.data.history == nil {
				t.data.history = t.s.newHistory(t.node())
			}
			t.ir = nil
		}
		if !j.endsStep || t.bits&bitScoped == 0 { // otherwise it dies at the end of this step
			j.live = append(j.live, t)
		}
	}
}

// settle makes the placeholders of a job the values of the variables that wait for them;
// core.mu is held. A pending value that another sync has computed is left to endStep, so that
// it does not fail with this job.
func (j *syncJob) settle(a *Async, variables []*Variable) {
	j.vars = slices.Grow(j.vars, min(len(variables), len(a.outputs)))
	for _, v := range variables {
		x := v.due(a.session)
		if x == nil || x.pend == nil || x.pend.data == nil || !a.computes(x.pend.data) {
			continue
		}
		r := restore{v: v, new: x.pend.data, initial: v.initial}
		r.old = v.commit(*x)
		// The device's lock orders the release after all that reads the old value.
		r.dies = j.donates && v.s == a.session && r.old != nil && r.old.mayDie() && r.old.device == a.Device
		j.vars = append(j.vars, r)
	}
}

// computes reports whether d is an output of a job that is being assigned.
func (a *Async) computes(d *Data) bool {
	n := len(a.outputs)
	return n > 0 && a.outputs[0].info.TensorID <= d.info.TensorID && d.info.TensorID <= a.outputs[n-1].info.TensorID
}

// together has the variables of a step that had data before its end restored with those that the
// end computes, if that fails, and all of them if a computation fails that gives such data and is
// under way; core.mu is held. A step changes its variables all or, on each device, not at all.
func together(jobs []*syncJob, computed []restore) {
	if len(computed) == 0 {
		return
	}
	all := slices.Clone(computed)
	for _, j := range jobs {
		all = append(all, j.vars...)
		j.vars = append(j.vars, computed...)
	}
	for _, r := range computed {
		a := r.new.by
		if a == nil || r.new.Ready() {
			continue
		}
		for _, j := range jobs {
			for i := range j.vars {
				j.vars[i].dies = false
			}
		}
		a.late = append(a.late, all...)
		a.hasLate.Store(true)
		select {
		case <-a.done:
			a.late = nil
		default: // forgetLate comes later
		}
	}
}

// forgetLate lets go of the old values that together keeps and of what giveUndos gave; the computation
// is done.
func (c *core) forgetLate(a *Async) {
	if !a.hasLate.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.late, a.undos = nil, nil
}

// restore puts back the old values of variables whose new ones failed, where the old data is
// whole: it was not donated, or the computation has not begun.
func (c *core) restore(a *Async, vars []restore, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	vars = append(slices.Clip(vars), a.late...)
	if a.late = nil; !c.cfg.NoOp {
		a.failed = err
	}
	if !c.cfg.NoOp {
		for _, u := range slices.Backward(a.undos) {
			u.run()
		}
	}
	for i, was := range a.donated {
		if was && !a.began {
			a.params[i].donated = false
		}
	}
	for _, r := range vars {
		if r.new.by == a {
			r.new.failed, r.new.prior = true, r.old
		}
		old := r.old
		for old != nil && (old.failed || old.by == a) { // it was still being computed when this began
			old = old.prior
		}
		switch {
		case r.v.committed.data != r.new:
		case old != nil && !old.donated:
			r.v.committed.set(r.v, old)
		case r.initial != nil: // what it is computed from has escaped
			r.v.begin(r.initial)
		}
	}
}
