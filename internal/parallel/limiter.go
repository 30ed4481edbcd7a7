package parallel

import "context"

// Limiter bounds the goroutines that the runs of one model use. Between Acquire and
// Release it holds a permit, and its loops take further permits for workers as long as
// there are any, without ever waiting for them. Only one goroutine may use a Limiter
// at a time.
//
// For, ForThreads and Threads may be called on a nil Limiter, which has no bound of its
// own. Outside of Acquire and Release loops are unmetered, as those of the function
// For are.
type Limiter struct {
	threads int
	metered bool // it holds a permit
}

// NewLimiter returns a Limiter of at most the given number of goroutines; zero stands
// for as many as there are processors.
func NewLimiter(threads int) *Limiter { return &Limiter{threads: max(threads, 0)} }

// Threads returns how many goroutines a loop of the Limiter uses at most.
func (l *Limiter) Threads() int {
	if l == nil || l.threads == 0 {
		return Threads()
	}
	return min(l.threads, Threads())
}

// For is the function For with the bound of the Limiter.
func (l *Limiter) For(n, grain int, body func(lo, hi int)) { l.ForThreads(0, n, grain, body) }

// ForThreads is the function ForThreads with the bound of the Limiter.
func (l *Limiter) ForThreads(threads, n, grain int, body func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if n <= grain || threads == 1 {
		body(0, n)
		return
	}
	if most := l.Threads(); threads <= 0 || threads > most {
		threads = most
	}
	if threads == 1 {
		body(0, n)
		return
	}
	loop(l != nil && l.metered, threads, n, grain, body)
}

// Acquire takes a permit, in the order of the callers that wait for one. If ctx ends
// first, Acquire returns its error and takes none.
func (l *Limiter) Acquire(ctx context.Context) error {
	if err := permits.acquire(ctx); err != nil {
		return err
	}
	l.metered = true
	return nil
}

// Yield passes the permit on if a caller waits for one, and then acquires another. After an
// error the Limiter holds none.
func (l *Limiter) Yield(ctx context.Context) error {
	if permits.waiting.Load() == 0 {
		return nil
	}
	l.Release()
	return l.Acquire(ctx)
}

// Release gives the permit back; without one it does nothing.
func (l *Limiter) Release() {
	if l.metered {
		l.metered = false
		permits.release()
	}
}
