// Package devicelock orders the asynchronous work of devices.
//
// A [Locker] belongs to one device and is held from the moment work is
// scheduled until it has finished, usually by a goroutine other than the one
// that took it. It also carries the error of work that failed to whoever comes
// next, because by then nobody may be waiting for that work any more. An
// [Arena] keeps one Locker for each device and takes several of them in one
// fixed order, so that two users of the same devices can't deadlock.
//
// Four rules hold throughout:
//
//   - Waiting is first come, first served, also between Lock and Barrier, and
//     ends early when the context does.
//   - A free Locker has an empty queue: whoever unlocks hands over directly.
//   - An error given to Unlock is delivered exactly once, to the next Lock or
//     Barrier in line, and that Lock does not get the lock. So is one given to
//     Fail, by work that went on after Unlock.
//   - A held Locker carries no error: it was delivered before the lock was.
package devicelock

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// AsyncError is the failure of earlier asynchronous work on a device, delivered
// to the next user of that device. It wraps the cause, so [errors.Is] and
// [errors.As] see through it.
type AsyncError struct {
	// Device names the device, or is empty for a Locker without a name.
	Device string
	// Err is what was given to Unlock or Fail; several are joined.
	Err error
}

// Error says which device failed and why.
func (e *AsyncError) Error() string {
	if e.Device == "" {
		return "devicelock: earlier asynchronous work failed: " + e.Err.Error()
	}
	return "devicelock: earlier asynchronous work on " + e.Device + " failed: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *AsyncError) Unwrap() error { return e.Err }

// Stats counts the uses of a Locker since it was made.
type Stats struct {
	// Locks is how often the lock was taken.
	Locks uint64
	// Waits is how many calls of Lock found the lock held, including those
	// that ended with an error.
	Waits uint64
	// WaitTime is the time those calls waited in all.
	WaitTime time.Duration
	// Errors is how many errors were delivered to a Lock or a Barrier.
	Errors uint64
}

// Add returns the sums of s and o.
func (s Stats) Add(o Stats) Stats {
	return Stats{
		Locks:    s.Locks + o.Locks,
		Waits:    s.Waits + o.Waits,
		WaitTime: s.WaitTime + o.WaitTime,
		Errors:   s.Errors + o.Errors,
	}
}

// Locker is the lock of one device. The zero value is an unlocked Locker
// without a name; a Locker must not be copied after its first use. It may be
// unlocked by another goroutine than the one that locked it.
type Locker struct {
	name string

	mu     sync.Mutex // guards what follows
	locked bool
	err    error     // of the last holder, not yet delivered; nil while locked
	late   error     // given to Fail while locked, to be delivered after that
	queue  list.List // of *waiter, first come first; empty unless locked
	stats  Stats
}

// waiter is a call of Lock or Barrier that found the lock held.
type waiter struct {
	barrier bool
	settled chan struct{} // closed, under Locker.mu, once err is final
	err     error         // nil: a Lock holds the lock, a Barrier has passed
}

// NewLocker returns an unlocked Locker whose errors name the device.
func NewLocker(name string) *Locker { return &Locker{name: name} }

// Name returns the name given to NewLocker, or "" for a zero Locker.
func (l *Locker) Name() string { return l.name }

// Lock takes the lock, waiting behind those who asked before. When it returns
// an error the caller does not hold the lock. The error is ctx.Err() if the
// context ended first, or an [*AsyncError] if the work done under the lock
// before failed; the latter is reset by this, so a second Lock may succeed.
func (l *Locker) Lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if !l.locked {
		err := l.takeErr()
		if err == nil {
			l.locked = true
			l.stats.Locks++
		}
		l.mu.Unlock()
		return err
	}
	w, e := l.enqueue(false)
	l.stats.Waits++
	l.mu.Unlock()

	start := time.Now()
	err := l.wait(ctx, w, e)
	l.mu.Lock()
	l.stats.WaitTime += time.Since(start)
	l.mu.Unlock()
	return err
}

// Unlock gives the lock to the next in line. A non-nil err is the failure of
// the work done under the lock: the next Lock or Barrier returns it wrapped in
// an [*AsyncError]. Unlock panics if the lock is not held.
func (l *Locker) Unlock(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.locked {
		panic("devicelock: Unlock of an unlocked Locker " + l.name)
	}
	l.release(err)
}

// Fail tells of the failure of work that was done under the lock and went on after
// Unlock. It is delivered as if it had been given to Unlock: to the next Lock or
// Barrier, or, while the lock is held, to the one after.
func (l *Locker) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked {
		l.late = both(l.late, err)
	} else {
		l.err = both(l.err, err)
	}
}

// both joins two errors, either of which may be nil.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// Barrier waits until the present holder, and whoever queued before this call,
// has unlocked, without taking the lock itself. It returns ctx.Err() if the
// context ended first, or the pending error as an [*AsyncError], which is
// reset by this.
func (l *Locker) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if !l.locked {
		err := l.takeErr()
		l.mu.Unlock()
		return err
	}
	w, e := l.enqueue(true)
	l.mu.Unlock()
	return l.wait(ctx, w, e)
}

// Stats returns the counts so far.
func (l *Locker) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// enqueue appends a waiter. The caller holds mu.
func (l *Locker) enqueue(barrier bool) (*waiter, *list.Element) {
	w := &waiter{barrier: barrier, settled: make(chan struct{})}
	return w, l.queue.PushBack(w)
}

// wait returns once w is settled or ctx has ended.
func (l *Locker) wait(ctx context.Context, w *waiter, e *list.Element) error {
	select {
	case <-w.settled:
		return w.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.settled:
		// Settled and cancelled at once. An error must not get lost, but a
		// lock goes to the next in line: a cancelled caller wants no work done.
		if w.err != nil {
			return w.err
		}
		if !w.barrier {
			l.release(nil)
		}
	default:
		l.queue.Remove(e)
	}
	return ctx.Err()
}

// release ends the holder's turn and settles waiters until one holds the lock
// or none is left. The caller holds mu, and the lock is held.
func (l *Locker) release(err error) {
	l.locked = false
	l.err, l.late = both(l.late, err), nil
	for !l.locked && l.queue.Len() > 0 {
		w := l.queue.Remove(l.queue.Front()).(*waiter)
		w.err = l.takeErr()
		if w.err == nil && !w.barrier {
			l.locked = true
			l.stats.Locks++
		}
		close(w.settled)
	}
}

// takeErr returns the pending error for delivery and resets it. The caller
// holds mu.
func (l *Locker) takeErr() error {
	if l.err == nil {
		return nil
	}
	err := &AsyncError{Device: l.name, Err: l.err}
	l.err = nil
	l.stats.Errors++
	return err
}
