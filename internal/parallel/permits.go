package parallel

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// semaphore counts permits: as many as GOMAXPROCS, which may change at any time. Unlike
// that of golang.org/x/sync it lets workers ask without waiting whether a permit is spare,
// and tells everybody how many callers wait, both without taking a lock.
type semaphore struct {
	taken   atomic.Int32
	waiting atomic.Int32 // the length of queue

	mu    sync.Mutex
	queue []chan struct{} // of the callers that wait, in order; guarded by mu
}

// permits is the process's semaphore.
var permits semaphore

// try takes a permit if less than procs are taken.
func (s *semaphore) try(procs int32) bool {
	for {
		n := s.taken.Load()
		if n >= procs {
			return false
		}
		if s.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// spare takes a permit for a worker, if neither runs nor unmetered loops need it.
func (s *semaphore) spare() bool {
	return s.waiting.Load() == 0 && s.try(processors()-pool.unmetered.Load())
}

// acquire waits for a permit.
func (s *semaphore) acquire(ctx context.Context) error {
	if s.waiting.Load() == 0 && s.try(processors()) {
		return nil
	}
	granted := make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, granted)
	s.serve()
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.queue, granted)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.waiting.Store(int32(len(s.queue)))
	}
	s.mu.Unlock()
	if i < 0 {
		s.release() // it was granted meanwhile
	}
	return ctx.Err()
}

// release frees a permit, for the first caller that waits if there is one.
func (s *semaphore) release() {
	s.taken.Add(-1)
	if s.waiting.Load() > 0 {
		s.mu.Lock()
		s.serve()
		s.mu.Unlock()
	}
}

// serve grants free permits to the callers that wait; the caller holds mu. The length of
// the queue is published before permits are looked for, so that whoever frees one after
// that serves again.
func (s *semaphore) serve() {
	s.waiting.Store(int32(len(s.queue)))
	n := 0
	for n < len(s.queue) && s.try(processors()) {
		close(s.queue[n])
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	s.waiting.Store(int32(len(s.queue)))
}

// Idle reports whether a run that began now would get a permit at once.
func Idle() bool { return permits.waiting.Load() == 0 && permits.taken.Load() < processors() }
