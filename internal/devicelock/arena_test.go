package devicelock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newTestArena() *Arena[int] { return NewArena(cmp.Compare[int]) }

func TestArenaLockerIsStable(t *testing.T) {
	a := newTestArena()
	l := a.Locker(3)
	if a.Locker(3) != l {
		t.Error("another Locker for the same key")
	}
	if a.Locker(1) == l {
		t.Error("the same Locker for another key")
	}
	if l.Name() != "3" {
		t.Errorf("name %q", l.Name())
	}
	if got, want := a.Keys(), []int{1, 3}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

func TestLockDevicesOrder(t *testing.T) {
	tests := []struct {
		name string
		keys []int
		want []int
	}{
		{"none", nil, nil},
		{"one", []int{5}, []int{5}},
		{"sorted", []int{3, 1, 2}, []int{1, 2, 3}},
		{"repeated", []int{2, 1, 2, 1, 2}, []int{1, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTestArena()
			given := slices.Clone(tt.keys)
			h, err := a.LockDevices(t.Context(), nil, tt.keys...)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tt.keys, given) {
				t.Errorf("the argument was changed to %v", tt.keys)
			}
			var got []int
			for _, l := range h.lockers {
				if len(l.holders) == 0 {
					t.Errorf("%s is not locked", l.name)
				}
				for _, k := range tt.want {
					if a.Locker(k) == l {
						got = append(got, k)
					}
				}
			}
			if !slices.Equal(got, tt.want) || len(h.lockers) != len(tt.want) {
				t.Errorf("locked %v, want %v", got, tt.want)
			}
			h.Unlock(nil)
			if err := a.Barrier(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLockDevicesReverseOrder(t *testing.T) {
	a := NewArena(func(x, y string) int { return cmp.Compare(y, x) })
	h, err := a.LockDevices(t.Context(), nil, "a", "c", "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range h.lockers {
		got = append(got, l.name)
	}
	if want := []string{"c", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestLockDevicesIsAllOrNothing(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		setUp func(*Locker)
		check func(*testing.T, error)
	}{
		{"error of earlier work", t.Context(),
			func(l *Locker) {
				mustLock(t, l)
				l.Unlock(nil, failure(errWork))
			},
			asyncCause},
		{"context", ended,
			func(*Locker) {},
			func(t *testing.T, err error) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTestArena()
			tt.setUp(a.Locker(2))
			h, err := a.LockDevices(tt.ctx, nil, 1, 2, 3)
			if err == nil || h != nil {
				t.Fatalf("got %v, %v", h, err)
			}
			tt.check(t, err)
			// Nothing is held, and no device got an error from the failure.
			h, err = a.LockDevices(t.Context(), nil, 1, 2, 3)
			if err != nil {
				t.Fatal(err)
			}
			h.Unlock(nil)
		})
	}
}

func TestLockDevicesTimeoutReleasesTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestArena()
		mustLock(t, a.Locker(2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.LockDevices(ctx, nil, 1, 2)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if want := "devicelock: lock 2: context deadline exceeded"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		mustLock(t, a.Locker(1))
	})
}

func TestHeldUnlock(t *testing.T) {
	a := newTestArena()
	h, err := a.LockDevices(t.Context(), nil, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	h.Unlock(failure(errWork))
	h.Unlock(nil)
	asyncCause(t, a.Locker(2).Lock(t.Context(), nil))
	for _, k := range []int{1, 2} {
		mustLock(t, a.Locker(k)) // what one has told the other does not tell again
	}
	h.Unlock(failure(errWork)) // must not unlock what others hold now
	for _, k := range []int{1, 2} {
		a.Locker(k).Unlock(nil, nil)
	}
	if err := a.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
	(*Held)(nil).Unlock(failure(errWork))
}

func TestArenaBarrier(t *testing.T) {
	fail := func(a *Arena[int], keys ...int) {
		for _, k := range keys {
			mustLock(t, a.Locker(k))
			a.Locker(k).Unlock(nil, failure(fmt.Errorf("device %d: %w", k, errWork)))
		}
	}
	tests := []struct {
		name      string
		keys      []int
		delivered uint64
	}{
		{"all", nil, 3},
		{"some", []int{3, 1, 3}, 2},
		{"unknown", []int{9}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTestArena()
			fail(a, 1, 2, 3)
			err := a.Barrier(t.Context(), tt.keys...)
			if tt.delivered > 0 {
				asyncCause(t, err)
			} else if err != nil {
				t.Error(err)
			}
			if got := a.Stats().Errors; got != tt.delivered {
				t.Errorf("%d errors delivered, want %d", got, tt.delivered)
			}
			if err := a.Barrier(t.Context(), tt.keys...); err != nil {
				t.Errorf("second barrier: %v", err)
			}
		})
	}
}

func TestArenaBarrierContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestArena()
		mustLock(t, a.Locker(1))
		a.Locker(1).Unlock(nil, failure(errWork))
		mustLock(t, a.Locker(2))
		a.Locker(3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := a.Barrier(ctx)
		asyncCause(t, err)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v hides the end of the context", err)
		}
	})
}

// Overlapping sets named in opposite orders would deadlock without the order.
func TestLockDevicesStress(t *testing.T) {
	a := newTestArena()
	sets := [][]int{{1, 2, 3}, {3, 2, 1}, {2, 1}, {3, 1}, {2}}
	owner := make([]int, 4) // guarded by the lock of its index
	var wg sync.WaitGroup
	for g, set := range sets {
		wg.Go(func() {
			for range 300 {
				h, err := a.LockDevices(t.Context(), nil, set...)
				if err != nil {
					t.Error(err)
					return
				}
				for _, k := range set {
					if owner[k] != 0 {
						t.Errorf("device %d belongs to %d", k, owner[k])
					}
					owner[k] = g + 1
				}
				for _, k := range set {
					owner[k] = 0
				}
				go h.Unlock(nil) // as asynchronous work does
			}
		})
	}
	wg.Wait()
	if err := a.Barrier(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := a.Stats().Locks, uint64(300*(3+3+2+2+1)); got != want {
		t.Errorf("%d locks, want %d", got, want)
	}
}
