//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"sync/atomic"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// event marks a place in a stream. It is recorded once and counts its references;
// when the last is released, the CUDA event is reused.
type event struct {
	d      *device
	stream *driver.Stream
	handle *driver.Event
	refs   atomic.Int32
	passed atomic.Bool
}

// record returns an event behind the work that is in a stream, with one reference.
func (d *device) record(s *driver.Stream) (*event, error) {
	handle, err := d.takeEvent()
	if err != nil {
		return nil, d.check(err)
	}
	if err := handle.Record(s); err != nil {
		d.putEvent(handle)
		return nil, d.check(err)
	}
	e := &event{d: d, stream: s, handle: handle}
	e.refs.Store(1)
	return e, nil
}

// takeEvent returns a free CUDA event, or a new one.
func (d *device) takeEvent() (*driver.Event, error) {
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

func (e *event) retain() *event {
	e.refs.Add(1)
	return e
}

func (e *event) release() {
	if e.refs.Add(-1) == 0 {
		e.d.putEvent(e.handle)
	}
}

// done reports whether the work before the event is done. The error may be that
// of the work.
func (e *event) done() (bool, error) {
	if e.passed.Load() {
		return true, nil
	}
	if err := e.d.enter(); err != nil {
		return true, err
	}
	defer e.d.leave()
	ok, err := e.handle.Done()
	if ok && err == nil {
		e.passed.Store(true)
	}
	return ok, e.d.check(err)
}

// wait waits until the work before the event is done, or ctx is.
func (e *event) wait(ctx context.Context) error {
	if e.passed.Load() {
		return nil
	}
	if err := e.d.enter(); err != nil {
		return err
	}
	defer e.d.leave()
	if err := e.handle.Wait(ctx); err != nil {
		return e.d.check(err)
	}
	e.passed.Store(true)
	return nil
}

// before makes the work that follows in a stream, of any device, wait for the
// event. If the event's device is lost, the error is a *LostError; that of a
// stream of another device is to be checked by that one.
func (e *event) before(s *driver.Stream) error {
	if e.stream == s || e.passed.Load() {
		return nil
	}
	if err := e.d.enter(); err != nil {
		return err
	}
	defer e.d.leave()
	err := s.WaitEvent(e.handle)
	if s.Context() == e.d.ctx {
		return e.d.check(err)
	}
	if driver.IsLost(err) {
		if own := e.d.ctx.Err(); own != nil {
			return e.d.check(own)
		}
	}
	return err
}
