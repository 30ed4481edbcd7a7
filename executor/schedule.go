package executor

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/ir"
)

// Async is work in flight: one collection's computation.
type Async struct {
	// Device is where it runs.
	Device ir.Device
	// Indices are the positions, in the tensors synced, of those it computes.
	Indices []int
	// Hash is the graph hash.
	Hash ir.Hash

	session *Session
	params  []*Data
	donated []bool
	began   bool // the computation may have overwritten what is donated
	outputs []*Data
	ready   chan struct{} // closed when the outputs are final
	done    chan struct{}
	err     error
}

// Wait blocks until the work is done and returns its error, or ctx's if that
// ends first.
func (a *Async) Wait(ctx context.Context) error {
	select {
	case <-a.done:
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

// schedule starts the closure that runs the computation with the device's lock
// held; it owns the job's lock and computation from here on.
func (s *Session) schedule(a *Async, j *syncJob) {
	c := s.core
	held, ref, vars := j.held, j.ref, j.vars
	j.held, j.ref = nil, nil
	go func() {
		defer c.running.Done()
		start := time.Now()
		outs, err := a.run(c, ref.Value())
		if err != nil && len(vars) > 0 {
			c.restore(a, vars) // before anybody can see that they failed
		}
		// Whoever has seen a result finds its run in the report.
		c.observe(Observation{Stage: StageRun, Start: start, Device: a.Device, Hash: a.Hash, Err: err})
		c.stats.runs.Add(1)
		for i, d := range a.outputs {
			if d.err = err; err == nil {
				d.buf = outs[i]
			}
		}
		close(a.ready)
		if err == nil {
			for _, r := range vars {
				if r.dies {
					r.old.retire()
				}
			}
		}
		ref.Release()
		a.err = err
		if c.cfg.NoOp {
			err = nil
		}
		a.params, a.session = nil, nil
		held.Unlock(err)
		close(a.done)
	}()
}

// run waits for the parameters, which come from other devices if they are not
// there yet, and executes.
func (a *Async) run(c *core, m *Computation) (outs []backend.Buffer, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("loris: step on %v: %w", a.Device, &PanicError{Value: r, Stack: debug.Stack()})
		}
	}()
	if c.cfg.NoOp {
		return nil, ErrNoExecution
	}
	ctx := context.Background()
	in := make([]backend.Buffer, len(a.params))
	for i, p := range a.params {
		if in[i], err = p.Wait(ctx); err != nil {
			return nil, fmt.Errorf("loris: an input of the step on %v failed: %w", a.Device, err)
		}
	}
	a.began = true
	if m.plug != nil {
		outs, err = m.plug.run(ctx, in, a.outputs, a.Device)
	} else {
		outs, err = m.container.Run(ctx, in, a.donated)
	}
	if err != nil {
		return nil, fmt.Errorf("loris: step on %v: %w", a.Device, err)
	}
	return outs, nil
}

// restore puts back the values of variables whose new ones failed, where the
// old data is still whole: it was not donated, or the computation has not begun.
func (c *core) restore(a *Async, vars []restore) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, was := range a.donated {
		if was && !a.began {
			a.params[i].donated = false
		}
	}
	for _, r := range vars {
		if r.v.data == r.new && r.old != nil && !r.old.donated {
			r.v.set(r.old, r.v.pend)
		}
	}
}
