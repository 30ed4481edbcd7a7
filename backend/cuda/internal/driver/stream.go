//go:build cuda && linux && cgo

package driver

// #cgo noescape lori_cu_stream_query
// #cgo nocallback lori_cu_stream_query
// #cgo noescape lori_cu_event_query
// #cgo nocallback lori_cu_event_query
// #cgo noescape lori_cu_event_record
// #cgo nocallback lori_cu_event_record
// #include "calls.h"
import "C"

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// Stream is a sequence of work on a device. It is safe for concurrent use; what
// several goroutines enqueue comes in any order.
type Stream struct {
	ctx     *Context
	s       C.CUstream
	foreign bool // Close leaves it to its maker
}

// NewStream makes a stream that does not wait for CUDA's default stream.
// Priorities are those of StreamPriorities; 0 always exists.
func (c *Context) NewStream(priority int) (*Stream, error) {
	s := &Stream{ctx: c}
	if err := c.check("cuStreamCreate", C.lori_cu_stream_create(c.drv.c, c.c, C.int(priority), &s.s)); err != nil {
		return nil, err
	}
	return s, nil
}

// WrapStream returns a stream that another library made in the same context, by
// its CUstream. Closing it leaves it alone.
func (c *Context) WrapStream(handle uintptr) *Stream {
	return &Stream{ctx: c, s: C.lori_cu_stream(C.uintptr_t(handle)), foreign: true}
}

// Handle returns the stream as other libraries take it, its CUstream.
func (s *Stream) Handle() uintptr { return uintptr(unsafe.Pointer(s.s)) }

// Close destroys the stream; work that is in it is still done. Calling it again
// does nothing.
func (s *Stream) Close() error {
	if s.s == nil || s.foreign {
		return nil
	}
	h := s.s
	s.s = nil
	return s.ctx.check("cuStreamDestroy", C.lori_cu_stream_destroy(s.ctx.drv.c, s.ctx.c, h))
}

// Context returns the stream's context.
func (s *Stream) Context() *Context { return s.ctx }

// Done reports whether all work that was enqueued is done. An error may be that
// of the work.
func (s *Stream) Done() (bool, error) {
	r := C.lori_cu_stream_query(s.ctx.drv.c, s.ctx.c, s.s)
	if r == C.LORI_ERROR_NOT_READY {
		return false, nil
	}
	return r == 0, s.ctx.check("cuStreamQuery", r)
}

// Wait waits until all work that was enqueued is done, or ctx is.
func (s *Stream) Wait(ctx context.Context) error { return poll(ctx, s.Done) }

// WaitEvent makes the work that follows in the stream wait for an event, which
// may be of another device. It does not block.
func (s *Stream) WaitEvent(e *Event) error {
	return s.ctx.check("cuStreamWaitEvent", C.lori_cu_stream_wait(s.ctx.drv.c, s.ctx.c, s.s, e.e))
}

// Event is a place in a stream. It is safe for concurrent use.
type Event struct {
	ctx     *Context
	e       C.CUevent
	foreign bool // Close leaves it to its maker
}

// NewEvent makes an event. Only with timing can Since tell the time between
// two; without, it is faster.
func (c *Context) NewEvent(timing bool) (*Event, error) {
	flags := C.uint(C.LORI_EVENT_DISABLE_TIMING)
	if timing {
		flags = 0
	}
	e := &Event{ctx: c}
	if err := c.check("cuEventCreate", C.lori_cu_event_create(c.drv.c, c.c, flags, &e.e)); err != nil {
		return nil, err
	}
	return e, nil
}

// WrapEvent returns an event that another library made in the same context, by its CUevent. Closing
// it leaves it alone.
func (c *Context) WrapEvent(handle uintptr) *Event {
	return &Event{ctx: c, e: C.lori_cu_event(C.uintptr_t(handle)), foreign: true}
}

// Handle returns the event as other libraries take it, its CUevent.
func (e *Event) Handle() uintptr { return uintptr(unsafe.Pointer(e.e)) }

// Close destroys the event. Calling it again does nothing.
func (e *Event) Close() error {
	if e.e == nil || e.foreign {
		return nil
	}
	h := e.e
	e.e = nil
	return e.ctx.check("cuEventDestroy", C.lori_cu_event_destroy(e.ctx.drv.c, e.ctx.c, h))
}

// Record puts the event behind the work that is in a stream of the same
// context. An event that was recorded before forgets its former place.
func (e *Event) Record(s *Stream) error {
	return e.ctx.check("cuEventRecord", C.lori_cu_event_record(e.ctx.drv.c, e.ctx.c, e.e, s.s))
}

// Done reports whether the work before the event is done; of one that was never
// recorded, it is. An error may be that of the work.
func (e *Event) Done() (bool, error) {
	r := C.lori_cu_event_query(e.ctx.drv.c, e.ctx.c, e.e)
	if r == C.LORI_ERROR_NOT_READY {
		return false, nil
	}
	return r == 0, e.ctx.check("cuEventQuery", r)
}

// Wait waits until the work before the event is done, or ctx is.
func (e *Event) Wait(ctx context.Context) error { return poll(ctx, e.Done) }

// Since returns the time on the device from another event to this one. Both
// must have been made with timing and be done.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms C.float
	r := C.lori_cu_event_elapsed(e.ctx.drv.c, e.ctx.c, from.e, e.e, &ms)
	return time.Duration(float64(ms) * float64(time.Millisecond)), e.ctx.check("cuEventElapsedTime", r)
}

// How poll waits: it asks without a pause for spinFor, then sleeps a sixteenth
// of what it has waited, so that it is late by little of any wait. Go's own Sleep
// takes a millisecond at least when nothing else runs.
const (
	spinFor  = 100 * time.Microsecond
	maxSleep = time.Millisecond
)

// poll waits for done. It asks again and again: a thread that waited inside
// CUDA could not be stopped when ctx is done, and a callback of CUDA never comes
// when the context is lost.
func poll(ctx context.Context, done func() (bool, error)) error {
	ok, err := done()
	if ok || err != nil {
		return err
	}
	start := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if waited := time.Since(start); waited < spinFor {
			runtime.Gosched()
		} else {
			C.lori_cu_pause(C.uint64_t(min(waited/16, maxSleep)))
		}
		if ok, err := done(); ok || err != nil {
			return err
		}
	}
}
