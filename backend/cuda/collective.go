//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/internal/collective"
)

// transfers are those of a run between ranks. They go in a stream for each group, beside what is
// computed; events keep the order.
type transfers struct {
	// next are sends and receives that are begun together, before anything waits: two ranks that send to
	// each other would wait for ever otherwise.
	next  []*steps.Step
	begun map[*steps.Transfer]*event // behind each
}

// transfer begins a collective, or makes the stream wait for it.
func (m *model) transfer(ctx context.Context, s *steps.Step) error {
	if t := s.Begin; t != nil && (t.Use.Op == "send" || t.Use.Op == "recv") {
		if k := len(m.moves.next); k > 0 && m.moves.next[k-1].Begin.Use.Group != t.Use.Group {
			if err := m.beginMoves(ctx); err != nil {
				return err
			}
		}
		m.moves.next = append(m.moves.next, s)
		return nil
	}
	if err := m.beginMoves(ctx); err != nil {
		return err
	}
	if s.Begin != nil {
		m.moves.next = append(m.moves.next, s)
		return m.beginMoves(ctx)
	}
	return m.moves.begun[s.Wait].before(m.stream)
}

// beginMoves begins what is next.
func (m *model) beginMoves(ctx context.Context) error {
	if len(m.moves.next) == 0 {
		return nil
	}
	defer func() { m.moves.next = m.moves.next[:0] }()
	c, err := collective.From(ctx)
	if err != nil {
		return err
	}
	s, err := m.dev.streamBetween(m.moves.next[0].Begin.Use.Group)
	if err != nil {
		return err
	}
	now, err := m.dev.record(m.stream)
	if err != nil {
		return err
	}
	defer now.release()
	if err := now.before(s); err != nil {
		return err
	}
	ts := make([]collective.Transfer, len(m.moves.next))
	for i, x := range m.moves.next {
		ts[i] = collective.Transfer{Use: &x.Begin.Use, Out: uintptr(m.at(x.Refs[0])), In: uintptr(m.at(x.Refs[1]))}
	}
	record := func() (func() (bool, error), error) {
		end, err := m.dev.record(s)
		if err != nil {
			return nil, err
		}
		if m.moves.begun == nil {
			m.moves.begun = map[*steps.Transfer]*event{}
		}
		for _, x := range m.moves.next {
			m.moves.begun[x.Begin] = end.retain()
		}
		return asked(end), nil
	}
	gpu := collective.GPU{Context: m.dev.ctx.Handle(), SetCurrent: aotiDevice{m.dev}.Symbol("cuCtxSetCurrent")}
	r, err := c.(collective.DeviceCommunicator).StartOn(ctx, ts, gpu, s.Handle(), record)
	if err != nil {
		return err
	}
	m.waits = append(m.waits, r.Wait)
	return nil
}

// asked returns a function that asks whether an event has passed, and releases it then.
func asked(e *event) func() (bool, error) {
	release := sync.OnceFunc(e.release)
	return func() (bool, error) {
		ok, err := e.done()
		if ok || err != nil {
			release()
		}
		return ok, err
	}
}

// end makes a stream wait for all that was begun, also of a run that failed half way.
func (t *transfers) end(s *driver.Stream) (errs error) {
	for k, e := range t.begun {
		errs = errors.Join(errs, e.before(s))
		e.release()
		delete(t.begun, k)
	}
	t.next = t.next[:0]
	return errs
}

// streamBetween returns the stream of a group's transfers.
func (d *device) streamBetween(group string) (*driver.Stream, error) {
	d.mu.Lock()
	s := d.between[group]
	d.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := d.stream()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.between == nil {
		d.between = map[string]*driver.Stream{}
	}
	d.between[group] = s
	return s, nil
}
