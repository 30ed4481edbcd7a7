// Package devicelock orders the asynchronous work of devices.
//
// A [Locker] belongs to one device and is held from the moment work is
// scheduled until it has finished, usually by a goroutine other than the one
// that took it. An [Arena] keeps one Locker for each device and takes several
// of them in one fixed order, so that two users of the same devices can't
// deadlock.
//
// # Who gets an error
//
// Work that fails has a [Failure]. It belongs to its owner, the session that
// scheduled the work, and to those who depend on its results. They get it as follows:
//
//   - Whoever reads a result, and work of anybody that takes one as an input, gets the error from
//     the result, each time. That needs no Locker. Where a reader or the further work belongs to
//     the owner, the owner has been told ([Failure.Tell]), and the Locker forgets the Failure.
//   - If the owner has not been told, the owner's next Lock returns the Failure, once: nobody may be
//     waiting for the results, and a program that only marks steps would never learn of it.
//   - A Lock of anybody else never returns it. The work of another session doesn't depend on what
//     failed, and would fail for a mistake that is not its own.
//   - A Barrier returns the Failures of all owners that have not been told, and thereby tells them:
//     it asks how the device's work went, and no work fails with it. Work of a session that
//     is not used any more is told there, or nowhere.
//   - A Failure without an owner goes to the next Lock or Barrier, whoever calls.
//
// A Locker keeps at most [MaxFailures] of them and drops the oldest first, so that sessions which
// come, fail and go unread take no memory.
//
// # Waiting
//
// These rules hold throughout:
//
//   - Waiting is first come, first served, also between Lock and Barrier, but for LockFor, and
//     ends early when the context does.
//   - Short work may pass long work that waits ([Locker.LockFor]). No Lock is held up in this way for
//     longer than its own work takes, and none passes a Barrier, a Lock that has not said how long its
//     work takes, or one of the same owner.
//   - Work of different owners may be under one Lock at a time where its [Mode] says so. Nobody goes
//     before an earlier Lock for that reason.
//   - A free Locker has an empty queue: whoever unlocks hands over directly.
//   - Errors are delivered when a turn comes: a waiting Lock or Barrier gets those that there are
//     when it would be given the lock or let pass, and a Lock that gets one does not get the lock.
package devicelock

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxFailures is how many errors that nobody has been told a Locker keeps.
const MaxFailures = 64

// Failure is the error of work that failed, together with whom it belongs to. It is an error that
// wraps its cause; results of the work give it to their readers.
type Failure struct {
	// Err is the cause.
	Err error
	// Owner is who scheduled the work, a value that can be compared; nil means nobody in particular.
	Owner any

	told atomic.Bool
}

// Error returns the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Tell notes that the owner knows of the failure, so that no Locker delivers it any more.
func (f *Failure) Tell() { f.told.Store(true) }

// Told reports whether the owner knows of the failure.
func (f *Failure) Told() bool { return f.told.Load() }

// AsyncError is the failure of earlier asynchronous work on a device, delivered
// to whoever scheduled that work when it next uses the device, or by a Barrier.
// It wraps the cause, so [errors.Is] and [errors.As] see through it.
type AsyncError struct {
	// Device names the device, or is empty for a Locker without a name.
	Device string
	// Err is the cause; several are joined.
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

// Mode says beside which other work a Lock may be held. Work of one owner is never beside other work
// of it.
type Mode uint8

const (
	// Alone is work that nothing may be beside.
	Alone Mode = iota
	// Reads is work that reads what work of mode Overwrites may overwrite.
	Reads
	// Overwrites is work that overwrites data which nobody reads but its owner, and work of mode
	// Reads.
	Overwrites
	// Apart is work whose data nobody overwrites, and which overwrites none.
	Apart
)

// beside reports whether work of two owners may go on at a time.
func (m Mode) beside(o Mode) bool {
	return m != Alone && o != Alone && (m == o || m == Apart || o == Apart)
}

// holder is work under a Lock.
type holder struct {
	owner any
	mode  Mode
}

// Locker is the lock of one device. The zero value is an unlocked Locker
// without a name; a Locker must not be copied after its first use. It may be
// unlocked by another goroutine than the one that locked it.
type Locker struct {
	name   string
	waited atomic.Int64 // Stats.WaitTime; apart from mu, which is taken often enough

	mu       sync.Mutex // guards what follows
	holders  []holder   // of the lock
	failures []*Failure // not delivered yet, oldest first; some may have been told meanwhile
	queue    list.List  // of *waiter, first come first; empty unless the lock is held
	stats    Stats      // but for WaitTime
}

// waiter is a call of Lock or Barrier that found the lock held.
type waiter struct {
	barrier bool
	holder                // what a Lock is for
	long    time.Duration // what the work of a Lock takes, about; 0 if that is not known
	passed  time.Duration // what the work takes that has gone before though it came later
	settled chan struct{} // closed, under Locker.mu, once err is final
	err     error         // nil: a Lock holds the lock, a Barrier has passed
}

// NewLocker returns an unlocked Locker whose errors name the device.
func NewLocker(name string) *Locker { return &Locker{name: name} }

// Name returns the name given to NewLocker, or "" for a zero Locker.
func (l *Locker) Name() string { return l.name }

// Lock takes the lock for an owner, waiting behind those who asked before. When it returns
// an error the caller does not hold the lock. The error is ctx.Err() if the
// context ended first, or an [*AsyncError] if earlier work of the owner
// failed and the owner has not been told; this tells it, so a second Lock may succeed.
func (l *Locker) Lock(ctx context.Context, owner any) error { return l.LockFor(ctx, owner, Alone, 0) }

// LockFor is Lock for work of a Mode that takes about so long, or 0 if that is not known. It waits
// before the Locks of other owners whose work takes more than twice as long and which nothing has held
// up for that time yet.
func (l *Locker) LockFor(ctx context.Context, owner any, mode Mode, long time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h := holder{owner, mode}
	l.mu.Lock()
	if l.queue.Len() == 0 && l.admits(h) {
		err := l.takeErr(owner, false)
		if err == nil {
			l.hold(h)
		}
		l.mu.Unlock()
		return err
	}
	w, e := l.enqueue(&waiter{holder: h, long: long})
	l.stats.Waits++
	l.mu.Unlock()

	start := time.Now()
	err := l.wait(ctx, w, e)
	l.waited.Add(int64(time.Since(start)))
	return err
}

// admits reports whether work may begin beside what is under the lock. The caller holds mu.
func (l *Locker) admits(h holder) bool {
	for i := range l.holders {
		if o := &l.holders[i]; !h.mode.beside(o.mode) || o.owner == h.owner {
			return false
		}
	}
	return true
}

// hold puts work under the lock. The caller holds mu.
func (l *Locker) hold(h holder) {
	l.holders = append(l.holders, h)
	l.stats.Locks++
}

// Unlock ends what an owner has under the lock and gives it to the next in line. A Failure is that of
// the work, to be delivered as the package says. Unlock panics if the owner does not hold the lock.
func (l *Locker) Unlock(owner any, f *Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release(owner, f)
}

// Fail tells of the failure of work that was done under the lock and went on after
// Unlock. It is delivered as if it had been given to Unlock.
func (l *Locker) Fail(f *Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(f)
}

// add keeps a Failure until it is delivered. The caller holds mu.
func (l *Locker) add(f *Failure) {
	if f == nil || f.Told() {
		return
	}
	l.failures = slices.DeleteFunc(l.failures, (*Failure).Told)
	if len(l.failures) == MaxFailures {
		l.failures = slices.Delete(l.failures, 0, 1)
	}
	l.failures = append(l.failures, f)
}

// Barrier waits until the present holder, and whoever queued before this call,
// has unlocked, without taking the lock itself. It returns ctx.Err() if the
// context ended first, or the failures of all owners that have not been told, as an
// [*AsyncError], and this tells them.
func (l *Locker) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if len(l.holders) == 0 {
		err := l.takeErr(nil, true)
		l.mu.Unlock()
		return err
	}
	w, e := l.enqueue(&waiter{barrier: true})
	l.mu.Unlock()
	return l.wait(ctx, w, e)
}

// Stats returns the counts so far.
func (l *Locker) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	stats := l.stats
	stats.WaitTime = time.Duration(l.waited.Load())
	return stats
}

// enqueue adds a waiter behind the last that it may not pass. The caller holds mu.
func (l *Locker) enqueue(w *waiter) (*waiter, *list.Element) {
	w.settled = make(chan struct{})
	last := l.queue.Back()
	for last != nil && w.passes(last.Value.(*waiter)) {
		last = last.Prev()
	}
	if last == nil {
		return w, l.queue.PushFront(w)
	}
	return w, l.queue.InsertAfter(w, last)
}

// passes reports whether a waiter goes before one that came earlier, and counts that.
func (w *waiter) passes(o *waiter) bool {
	if w.barrier || o.barrier || w.long <= 0 || o.long <= 2*w.long || o.passed+w.long > o.long || w.owner == o.owner {
		return false
	}
	o.passed += w.long
	return true
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
			l.release(w.owner, nil)
		}
	default:
		l.queue.Remove(e)
		l.admit() // it may have kept those behind it from joining the present holders
	}
	return ctx.Err()
}

// release ends the turn of an owner. The caller holds mu.
func (l *Locker) release(owner any, f *Failure) {
	last := len(l.holders) - 1
	i := last // who came last often leaves first
	for i >= 0 && l.holders[i].owner != owner {
		i--
	}
	if i < 0 {
		panic("devicelock: Unlock of a Locker that the owner does not hold: " + l.name)
	}
	l.holders[i], l.holders[last] = l.holders[last], holder{}
	l.holders = l.holders[:last]
	l.add(f)
	l.admit()
}

// admit settles waiters until one has to wait or none is left. The caller holds mu.
func (l *Locker) admit() {
	for l.queue.Len() > 0 {
		w := l.queue.Front().Value.(*waiter)
		if w.barrier && len(l.holders) > 0 || !w.barrier && !l.admits(w.holder) {
			return
		}
		l.queue.Remove(l.queue.Front())
		w.err = l.takeErr(w.owner, w.barrier)
		if w.err == nil && !w.barrier {
			l.hold(w.holder)
		}
		close(w.settled)
	}
}

// takeErr tells and returns the failures of an owner and those without one, or all of them. The
// caller holds mu.
func (l *Locker) takeErr(owner any, all bool) error {
	if len(l.failures) == 0 {
		return nil
	}
	var errs []error
	l.failures = slices.DeleteFunc(l.failures, func(f *Failure) bool {
		if !all && f.Owner != nil && f.Owner != owner {
			return false
		}
		if !f.told.Swap(true) {
			errs = append(errs, f.Err)
		}
		return true
	})
	if len(errs) == 0 {
		return nil
	}
	l.stats.Errors += uint64(len(errs))
	err := errs[0]
	if len(errs) > 1 {
		err = errors.Join(errs...)
	}
	return &AsyncError{Device: l.name, Err: err}
}
