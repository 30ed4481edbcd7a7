package kernels

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Share is how much of the processors the runs of one model may have: at most a
// number of goroutines at a time, and in all models together no more than
// GOMAXPROCS. One goroutine uses it at a time. Between Begin and End it has a
// seat, which stands for a processor; a loop takes further ones for its helpers
// as long as there are any, and never waits for them.
//
// The methods but Begin, Yield and End may be called on a nil Share, which has no
// bound of its own; loops outside of Begin and End, and those of For, are guests:
// they begin at once, and have helpers only where processors are left over.
type Share struct {
	threads int
	seated  bool
}

// NewShare returns the share of at most so many goroutines; zero stands for as
// many as there are processors.
func NewShare(threads int) *Share { return &Share{threads: max(threads, 0)} }

// Threads returns how many goroutines a loop uses at most, see Threads.
func (s *Share) Threads() int {
	if s == nil || s.threads == 0 {
		return Threads()
	}
	return min(s.threads, Threads())
}

// For is the function For with the bound of the share.
func (s *Share) For(n, grain int, body func(lo, hi int)) { s.ForThreads(0, n, grain, body) }

// ForThreads is the function ForThreads with the bound of the share.
func (s *Share) ForThreads(threads, n, grain int, body func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if n <= grain || threads == 1 {
		body(0, n)
		return
	}
	if most := s.Threads(); threads <= 0 || threads > most {
		threads = most
	}
	if threads == 1 {
		body(0, n)
		return
	}
	loop(s != nil && s.seated, threads, n, grain, body)
}

// Begin takes a seat, after those who waited before. It returns ctx's error, and
// has none, if ctx is done while it waits.
func (s *Share) Begin(ctx context.Context) error {
	if err := seats.take(ctx); err != nil {
		return err
	}
	s.seated = true
	return nil
}

// Yield is End and Begin if somebody waits for a seat.
func (s *Share) Yield(ctx context.Context) error {
	if seats.waiting.Load() == 0 {
		return nil
	}
	s.End()
	return s.Begin(ctx)
}

// End gives the seat back; without one it does nothing.
func (s *Share) End() {
	if s.seated {
		s.seated = false
		seats.give()
	}
}

// row is the seats: as many as GOMAXPROCS.
type row struct {
	taken   atomic.Int32
	waiting atomic.Int32 // the length of queue

	mu    sync.Mutex
	queue []chan struct{} // of those who wait, the first first; guarded by mu
}

var seats row

// try takes a seat if less than procs are taken.
func (r *row) try(procs int32) bool {
	for {
		n := r.taken.Load()
		if n >= procs {
			return false
		}
		if r.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// spare takes a seat for a helper, where neither steps nor guests need it.
func (r *row) spare() bool {
	return r.waiting.Load() == 0 && r.try(processors()-team.guests.Load())
}

func (r *row) take(ctx context.Context) error {
	if r.waiting.Load() == 0 && r.try(processors()) {
		return nil
	}
	mine := make(chan struct{})
	r.mu.Lock()
	r.queue = append(r.queue, mine)
	r.serve()
	r.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	i := slices.Index(r.queue, mine)
	if i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
		r.waiting.Store(int32(len(r.queue)))
	}
	r.mu.Unlock()
	if i < 0 {
		r.give() // it was given a seat meanwhile
	}
	return ctx.Err()
}

// give frees a seat, for the first who waits if anybody does.
func (r *row) give() {
	r.taken.Add(-1)
	if r.waiting.Load() > 0 {
		r.mu.Lock()
		r.serve()
		r.mu.Unlock()
	}
}

// serve seats those who wait, as far as seats are free; the caller holds mu. The
// length of the queue is known to everybody before it looks for seats: who frees
// one after that serves again.
func (r *row) serve() {
	r.waiting.Store(int32(len(r.queue)))
	n := 0
	for n < len(r.queue) && r.try(processors()) {
		close(r.queue[n])
		n++
	}
	r.queue = slices.Delete(r.queue, 0, n)
	r.waiting.Store(int32(len(r.queue)))
}
