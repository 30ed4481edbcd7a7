//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"sync/atomic"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// moment is a place in a stream: an event that is recorded once. It has a count
// of references; with the last its event serves again.
type moment struct {
	d      *device
	stream *driver.Stream
	event  *driver.Event
	refs   atomic.Int32
	passed atomic.Bool
}

// moment returns the place behind the work that is in a stream, with one
// reference.
func (d *device) moment(s *driver.Stream) (*moment, error) {
	e, err := d.event()
	if err != nil {
		return nil, d.check(err)
	}
	if err := e.Record(s); err != nil {
		d.putEvent(e)
		return nil, d.check(err)
	}
	m := &moment{d: d, stream: s, event: e}
	m.refs.Store(1)
	return m, nil
}

func (d *device) event() (*driver.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.events); n > 0 {
		e := d.events[n-1]
		d.events = d.events[:n-1]
		return e, nil
	}
	e, err := d.ctx.NewEvent(false)
	if err == nil {
		d.closers = append(d.closers, e.Close)
	}
	return e, err
}

func (d *device) putEvent(e *driver.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

func (m *moment) retain() *moment {
	m.refs.Add(1)
	return m
}

func (m *moment) release() {
	if m.refs.Add(-1) == 0 {
		m.d.putEvent(m.event)
	}
}

// done reports whether the work before the moment is done. An error may be that
// of the work.
func (m *moment) done() (bool, error) {
	if m.passed.Load() {
		return true, nil
	}
	if err := m.d.enter(); err != nil {
		return true, err
	}
	defer m.d.leave()
	ok, err := m.event.Done()
	if ok && err == nil {
		m.passed.Store(true)
	}
	return ok, m.d.check(err)
}

// wait waits until the work before the moment is done, or ctx is.
func (m *moment) wait(ctx context.Context) error {
	if m.passed.Load() {
		return nil
	}
	if err := m.d.enter(); err != nil {
		return err
	}
	defer m.d.leave()
	if err := m.event.Wait(ctx); err != nil {
		return m.d.check(err)
	}
	m.passed.Store(true)
	return nil
}

// before makes the work that follows in a stream, of any device, wait for the
// moment. If the moment's device is lost, the error is a *LostError; that of a
// stream of another device is to be checked by that one.
func (m *moment) before(s *driver.Stream) error {
	if m.stream == s || m.passed.Load() {
		return nil
	}
	if err := m.d.enter(); err != nil {
		return err
	}
	defer m.d.leave()
	err := s.WaitEvent(m.event)
	if s.Context() == m.d.ctx {
		return m.d.check(err)
	}
	if driver.IsLost(err) {
		if own := m.d.ctx.Err(); own != nil {
			return m.d.check(own)
		}
	}
	return err
}
