package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/devicelock"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// Async is the scheduled computation of one collection.
type Async struct {
	// Device is where it runs.
	Device ir.Device
	// Indices are the positions, in the tensors synced, of those it computes.
	Indices []int
	// Hash is the graph hash.
	Hash ir.Hash

	session      *Session
	params       []*Data
	donated      []bool
	began        bool          // the computation may have overwritten what is donated
	queuedInputs []*submission // of parameters, that were not done when it began
	outputs      []*Data
	ready        chan struct{} // closed when the outputs are final
	awaited      atomic.Bool   // the computation of another session waits for them
	done         chan struct{}
	err          error

	// Guarded by core.mu: the error, once variables have been restored after it, and variables that
	// committed an output later than the computation was scheduled.
	failed  error
	late    []restore
	undos   []*hostUndo // of the steps whose values it computes
	hasLate atomic.Bool // late or undos was set
}

func newAsync(s *Session, d ir.Device, h ir.Hash, params []*Data) *Async {
	return &Async{Device: d, Hash: h, session: s, params: params, ready: make(chan struct{}), done: make(chan struct{})}
}

// Wait blocks until the work is done and returns its error, or ctx's if that
// ends first.
func (a *Async) Wait(ctx context.Context) error {
	select {
	case <-a.done:
		var f *devicelock.Failure
		if errors.As(a.err, &f) {
			tell(f.Owner, a.err)
		}
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the work is done.
func (a *Async) Done() <-chan struct{} { return a.done }

// PanicError is a panic in a computation, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names what was panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in a computation: %v", e.Value) }

// Unwrap returns the panicked value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// run is a scheduled computation together with what it has to give back.
type run struct {
	*Async
	c     *core
	held  *devicelock.Held
	ref   *cache.Ref[*Computation]
	vars  []restore
	start time.Time
}

// schedule starts the goroutine that runs the computation while the device's lock is held. The
// goroutine owns the job's lock and computation from here on. If the device runs its work in
// order, the lock is released as soon as the computation is in the device's queue. A call that is brief
// has run when schedule returns.
func (s *Session) schedule(a *Async, j *syncJob) {
	r := &run{Async: a, c: s.core, held: j.held, ref: j.ref, vars: j.vars}
	alone := s.core.latest.Swap(s.id+1) == s.id+1
	prompt, p := r.prompt(alone), j.ref.Value().pace
	j.held, j.ref = nil, nil
	if prompt {
		r.execute()
	} else {
		go func() {
			deepen()
			r.execute()
		}()
	}
	s.scheduled(p)
}

// prompt reports whether the caller may run the computation by itself: it loses nothing by that, and the
// computation waits for nothing and calls nothing of the user's.
func (r *run) prompt(alone bool) bool {
	m := r.ref.Value()
	if !m.pace.prompt(alone) {
		return false
	}
	if m.idle == nil || r.c.cfg.Hooks.Observe != nil || !m.idle() {
		return false
	}
	return !slices.ContainsFunc(r.params, func(d *Data) bool { return !d.Ready() })
}

// execute runs the computation and gives back what it has.
func (r *run) execute() {
	defer r.c.running.Done()
	r.start = time.Now()
	outs, p, err := r.begin(r.ref.Value())
	if p != nil {
		r.awaitQueued(outs, p)
		return
	}
	if err == nil {
		r.ref.Value().pace.took.Store(int64(time.Since(r.start)))
	}
	err = r.own(err)
	r.publish(err)
	for i, d := range r.outputs {
		if d.err = err; err == nil {
			d.buf = outs[i]
		}
	}
	close(r.ready)
	if r.awaited.Load() {
		// What waits would stay behind the session that made this, which is about to get the
		// lock and record, for as long as goroutines may run.
		runtime.Gosched()
	}
	r.retire(err)
	held, fault := r.held, r.failure(err)
	r.release(err)
	held.Unlock(fault)
	close(r.done)
	r.c.forgetLate(r.Async)
}

// deepen gives a new goroutine the stack that computations need, while there is nothing on it: it
// would double several times on the way down otherwise, and each time all frames are copied.
//
//go:noinline
func deepen() {
	var frame [12 << 10]byte
	use(&frame)
}

//go:noinline
func use(frame *[12 << 10]byte) { frame[0] = 1 }

// awaitQueued makes the outputs of a computation that is in its device's queue available to
// further work of that device, releases the lock and waits until the computation is done.
func (r *run) awaitQueued(outs []backend.Buffer, p *container.Pending) {
	q := r.c.queue(r.Device)
	f := r.c.submit(q)
	for i, d := range r.outputs {
		d.buf, d.submission = outs[i], f
	}
	close(r.ready)
	r.held.Unlock(nil)
	err := f.await(p)
	inherited := r.queuedInputErr()
	switch {
	case inherited != nil:
		err = inherited // an error of its own would come from what the failed inputs held
	case err != nil:
		err = fmt.Errorf("loris: step on %v: %w", r.Device, err)
	}
	err = r.own(err)
	if f := r.failure(err); f != nil {
		r.c.lockers.Locker(r.Device).Fail(f)
	}
	r.publish(err)
	r.release(err)
	r.c.complete(q, f, err)
	r.retire(err)
	close(r.done)
	r.c.forgetLate(r.Async)
}

// own makes an error of the run the session's, unless it is a failure of an earlier run of the
// session that the session will be told by itself.
func (r *run) own(err error) error {
	if err == nil || r.c.cfg.NoOp {
		return err
	}
	var f *devicelock.Failure
	if errors.As(err, &f) && f.Owner == r.session.owner && !f.Told() {
		return err
	}
	return &devicelock.Failure{Err: err, Owner: r.session.owner}
}

// failure returns what the device's locker has to deliver of the run's error, or nil.
func (r *run) failure(err error) *devicelock.Failure {
	f, _ := err.(*devicelock.Failure)
	return f
}

// tell notes that an owner has had an error of a result, so that no locker returns it again.
func tell(owner any, err error) {
	var f *devicelock.Failure
	for errors.As(err, &f) {
		if f.Owner == owner {
			f.Tell()
		}
		err = f.Err
	}
}

// publish restores variables after an error and reports the run. It comes before anybody can
// see the result, so that whoever has seen one finds its run in the Report.
func (r *run) publish(err error) {
	if err != nil {
		r.c.restore(r.Async, r.vars, err)
	}
	r.c.ran(r, err)
	r.c.observe(report.Observation{Stage: report.StageRun, Start: r.start, Device: r.Device, Hash: r.Hash, Err: err})
	r.c.stats.runs.Add(1)
}

// release keeps the error and drops the references that the computation needed.
func (r *run) release(err error) {
	r.ref.Release()
	r.err = err
	// The outputs' data refers to the Async, which must not keep more alive than them.
	r.params, r.queuedInputs, r.session, r.outputs = nil, nil, nil, nil
}

// retire releases the data that a successful computation has replaced.
func (r *run) retire(err error) {
	if err != nil {
		return
	}
	for _, v := range r.vars {
		if v.dies {
			v.old.retire()
		}
	}
}

// begin waits for the parameters that other devices still compute, and executes. It returns
// a Pending for a computation that it has put into the device's queue, of which it then holds
// a slot.
func (r *run) begin(m *Computation) (outs []backend.Buffer, p *container.Pending, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("loris: step on %v: %w", r.Device, &PanicError{Value: v, Stack: debug.Stack()})
		}
		if c := r.c.cfg.Collectives; err != nil && c != nil && len(m.collectives) > 0 {
			c.Fail(err) // the other ranks wait for what this one does not begin
		}
	}()
	if r.c.cfg.NoOp {
		return nil, nil, ErrNoExecution
	}
	ctx := r.tracingKernels(context.Background())
	wait := (*Data).Wait
	if m.queues {
		wait = (*Data).queued
	}
	in := make([]backend.Buffer, len(r.params))
	for i, x := range r.params {
		if by := x.by; by != nil && !x.Ready() {
			by.awaited.Store(true)
		}
		if in[i], err = wait(x, ctx); err != nil {
			return nil, nil, fmt.Errorf("loris: an input of the step on %v failed: %w", r.Device, err)
		}
	}
	if len(m.collectives) > 0 {
		if ctx, err = r.agree(ctx, m); err != nil {
			return nil, nil, fmt.Errorf("loris: step on %v: %w", r.Device, err)
		}
	}
	switch {
	case m.queues:
		return r.enqueue(ctx, m, in)
	case m.plug != nil:
		r.began = true
		outs, err = m.plug.run(ctx, in, r.outputs, r.Device)
	default:
		r.began = true
		outs, err = m.container.Run(ctx, in, r.donated)
		r.began = !untouched(err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("loris: step on %v: %w", r.Device, err)
	}
	return outs, nil, nil
}

// agree compares the collectives of the computation with those of the other ranks, and returns the
// context for its run.
func (r *run) agree(ctx context.Context, m *Computation) (context.Context, error) {
	if c := r.c.cfg.Collectives; c != nil {
		ctx = collective.With(ctx, c)
	}
	c, err := collective.From(ctx)
	if err != nil {
		u := &m.collectives[0]
		return nil, fmt.Errorf("%s (at %s): %w", u.Op, u.Line, err)
	}
	return ctx, c.Agree(ctx, m.collectives)
}

// enqueue waits for a slot of the device's queue and starts the computation.
func (r *run) enqueue(ctx context.Context, m *Computation, in []backend.Buffer) ([]backend.Buffer, *container.Pending, error) {
	q := r.c.queue(r.Device)
	_ = q.slots.Acquire(context.Background(), 1) // cannot fail: every submission ends by itself
	r.noteQueuedInputs()
	r.began = true
	p, err := m.container.Start(ctx, in, r.donated)
	if err != nil {
		q.slots.Release(1)
		return nil, nil, fmt.Errorf("loris: step on %v: %w", r.Device, err)
	}
	return p.Outputs(), p, nil
}
