package devicelock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Arena keeps the Locker of every device. Its methods may be called from any
// number of goroutines.
type Arena[K comparable] struct {
	compare func(a, b K) int

	mu      sync.RWMutex // guards lockers
	lockers map[K]*Locker
}

// NewArena returns an Arena without devices. compare orders them as
// [cmp.Compare] does; it is the order in which several are locked, and it must
// return 0 for equal keys only.
func NewArena[K comparable](compare func(a, b K) int) *Arena[K] {
	return &Arena[K]{compare: compare, lockers: make(map[K]*Locker)}
}

// Locker returns the Locker of the device, making it at the first call.
func (a *Arena[K]) Locker(k K) *Locker {
	a.mu.RLock()
	l := a.lockers[k]
	a.mu.RUnlock()
	if l != nil {
		return l
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l = a.lockers[k]; l == nil {
		l = NewLocker(fmt.Sprint(k))
		a.lockers[k] = l
	}
	return l
}

// Keys returns the devices that have a Locker, in order.
func (a *Arena[K]) Keys() []K {
	a.mu.RLock()
	keys := make([]K, 0, len(a.lockers))
	for k := range a.lockers {
		keys = append(keys, k)
	}
	a.mu.RUnlock()
	slices.SortFunc(keys, a.compare)
	return keys
}

// Stats returns the sums over all devices.
func (a *Arena[K]) Stats() Stats {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var s Stats
	for _, l := range a.lockers {
		s = s.Add(l.Stats())
	}
	return s
}

// LockDevices locks the devices for an owner, in their order, each once however often it is
// named. It takes all or none: when one can't be locked, those taken before are
// unlocked without an error, and the error (see [Locker.Lock]) is returned
// with the name of the device.
func (a *Arena[K]) LockDevices(ctx context.Context, owner any, keys ...K) (*Held, error) {
	return a.LockDevicesFor(ctx, owner, Alone, 0, keys...)
}

// LockDevicesFor is LockDevices for work of a Mode that takes about so long (see [Locker.LockFor]).
func (a *Arena[K]) LockDevicesFor(ctx context.Context, owner any, mode Mode, long time.Duration, keys ...K) (*Held, error) {
	h := &Held{owner: owner, lockers: make([]*Locker, 0, len(keys))}
	for _, k := range a.ordered(keys) {
		l := a.Locker(k)
		if err := l.LockFor(ctx, owner, mode, long); err != nil {
			h.Unlock(nil)
			return nil, l.wrap("lock", err)
		}
		h.lockers = append(h.lockers, l)
	}
	return h, nil
}

// Barrier waits for the work in flight on the devices, or on all devices known
// if none is given, and returns the pending errors of all of them joined (see
// [Locker.Barrier]). It waits for every device even if one has failed, except
// when ctx ends.
func (a *Arena[K]) Barrier(ctx context.Context, keys ...K) error {
	if len(keys) == 0 {
		keys = a.Keys()
	} else {
		keys = a.ordered(keys)
	}
	var errs []error
	for _, k := range keys {
		l := a.Locker(k)
		err := l.Barrier(ctx)
		if err == nil {
			continue
		}
		errs = append(errs, l.wrap("barrier of", err))
		if _, async := err.(*AsyncError); !async {
			break // the context ended
		}
	}
	return errors.Join(errs...)
}

// wrap names the device in err, unless it is an AsyncError, which does so.
func (l *Locker) wrap(op string, err error) error {
	if _, async := err.(*AsyncError); async {
		return err
	}
	return fmt.Errorf("devicelock: %s %s: %w", op, l.name, err)
}

// ordered returns keys sorted and without repetitions, leaving keys as it is.
func (a *Arena[K]) ordered(keys []K) []K {
	if len(keys) < 2 {
		return keys
	}
	keys = slices.Clone(keys)
	slices.SortFunc(keys, a.compare)
	return slices.Compact(keys)
}

// Held is the set of locks taken by one call of LockDevices.
type Held struct {
	owner    any
	lockers  []*Locker
	unlocked atomic.Bool
}

// Unlock unlocks all devices; the first to deliver the Failure tells its owner (see
// [Locker.Unlock]). Only the first call has an effect, so a deferred
// Unlock(nil) can back up one that carries an error. Unlock of a nil Held does
// nothing.
func (h *Held) Unlock(f *Failure) {
	if h == nil || h.unlocked.Swap(true) {
		return
	}
	for _, l := range slices.Backward(h.lockers) {
		l.Unlock(h.owner, f)
	}
}
