//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
)

// maxFlights bounds the runs of a model that may leave faults and are enqueued:
// each has a place for them in pinned memory, which the stream fills at its end.
const maxFlights = 4

// run is the work of one Run or Start. It implements backend.Run.
type run struct {
	m    *model
	end  *event // nil when it is settled
	err  error  // of the work, when it is settled
	slot int    // of the model's faultHost; -1 if it leaves no fault
	kept bool   // somebody has its handle
	// broken says that not all of it was enqueued, so that no faults arrive.
	broken bool
	// waits are for called models and transfers, whose work ends before the end.
	waits []waiter
}

// Start is Run, and returns the run. A model that may leave faults waits for the
// run that is maxFlights ahead.
func (m *model) Start(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, backend.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outs, err := m.launch(ctx, inputs, donated)
	if err != nil {
		return nil, nil, err
	}
	r := m.last
	if r.slot < 0 {
		m.flights = append(m.flights, r)
	}
	r.kept = true
	return outs, r, nil
}

// Finished reports whether the run's work is done. The error is that of the work,
// which may be an index out of range or a division by 0 that names the op and the
// user's line.
func (r *run) Finished() (bool, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.finished()
}

// finished is Finished; the model's mu is held.
func (r *run) finished() (bool, error) {
	if r.end != nil {
		ok, err := r.end.done()
		if !ok && err == nil {
			return false, nil
		}
		r.m.settle(r, err)
	}
	return true, r.m.named(r.err)
}

// Wait waits for the run's work, or until ctx is done, and returns its error.
func (r *run) Wait(ctx context.Context) error {
	m := r.m
	m.mu.Lock()
	var end *event
	if r.end != nil {
		end = r.end.retain()
	}
	m.mu.Unlock()
	if end != nil {
		err := end.wait(ctx)
		end.release()
		if err != nil && ctx.Err() != nil {
			return m.named(ctx.Err())
		}
		m.mu.Lock()
		m.settle(r, err)
		m.mu.Unlock()
	}
	return m.named(r.err)
}

// Finished reports whether the last run's work is done; see run.Finished.
func (m *model) Finished() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return true, nil
	}
	return m.last.finished()
}

// Wait waits for the last run's work, or until ctx is done, and returns its error.
func (m *model) Wait(ctx context.Context) error {
	m.mu.Lock()
	r := m.last
	m.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.Wait(ctx)
}

// takeSlot returns a place for the faults of a run, -1 if it leaves none; mu is
// held.
func (m *model) takeSlot(ctx context.Context) (int, error) {
	if m.faultMem == nil {
		return -1, nil
	}
	if len(m.slots) == 0 {
		oldest := m.flights[slices.IndexFunc(m.flights, func(r *run) bool { return r.slot >= 0 })]
		err := oldest.end.wait(ctx)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		m.settle(oldest, err)
	}
	n := len(m.slots) - 1
	slot := m.slots[n]
	m.slots = m.slots[:n]
	return slot, nil
}

// faultsOf returns the place of a slot.
func (m *model) faultsOf(slot int) []byte {
	n := steps.FaultBytes * m.seq.Faults
	return m.faultHost.Bytes()[slot*n : (slot+1)*n]
}

// enqueued notes a run that was enqueued; mu is held. The run before it is dropped
// if nobody has its handle and it leaves no fault: the stream keeps the order.
func (m *model) enqueued(r *run) {
	if was := m.last; was != nil && was.end != nil && !was.kept && was.slot < 0 {
		was.end.release()
		was.end = nil
	}
	m.last = r
	if r.slot >= 0 {
		m.flights = append(m.flights, r)
	}
}

// settle ends a run whose work is done, or failed with err; mu is held.
func (m *model) settle(r *run, err error) {
	if r.end == nil {
		return
	}
	r.end.release()
	r.end, r.err = nil, err
	if i := slices.Index(m.flights, r); i >= 0 {
		m.flights = slices.Delete(m.flights, i, i+1)
	}
	if r.slot >= 0 {
		m.slots = append(m.slots, r.slot)
	}
	if err != nil || r.broken {
		return
	}
	for _, wait := range r.waits {
		if r.err = wait(context.Background()); r.err != nil {
			return
		}
	}
	if r.slot < 0 {
		return
	}
	r.err = failed(m.seq, m.faultsOf(r.slot))
}

// settleAll waits for all that is enqueued; mu is held.
func (m *model) settleAll() {
	for len(m.flights) > 0 {
		r := m.flights[0]
		m.settle(r, r.end.wait(context.Background()))
	}
	if r := m.last; r != nil && r.end != nil {
		m.settle(r, r.end.wait(context.Background()))
	}
}
