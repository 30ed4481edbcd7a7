package devicelock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errWork = errors.New("kernel fault")

// failure is one without an owner.
func failure(err error) *Failure { return &Failure{Err: err} }

func lock(l *Locker, ctx context.Context) error { return l.Lock(ctx, nil) }

// asyncCause fails the test unless err is an AsyncError around errWork.
func asyncCause(t *testing.T, err error) {
	t.Helper()
	var a *AsyncError
	if !errors.As(err, &a) {
		t.Fatalf("got %v, want an *AsyncError", err)
	}
	if !errors.Is(err, errWork) {
		t.Fatalf("%v does not wrap the cause", err)
	}
}

func mustLock(t *testing.T, l *Locker) {
	t.Helper()
	if err := l.Lock(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

func TestErrorIsDeliveredOnce(t *testing.T) {
	tests := []struct {
		name    string
		deliver func(*Locker, context.Context) error
	}{
		{"Lock", lock},
		{"Barrier", (*Locker).Barrier},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLocker("cuda:0")
			mustLock(t, l)
			l.Unlock(nil, failure(errWork))
			err := tt.deliver(l, t.Context())
			asyncCause(t, err)
			if !strings.Contains(err.Error(), "cuda:0") {
				t.Errorf("%q does not name the device", err)
			}
			// The failed call did not take the lock and reset the error.
			mustLock(t, l)
			l.Unlock(nil, nil)
			if err := l.Barrier(t.Context()); err != nil {
				t.Errorf("second delivery: %v", err)
			}
			if s := l.Stats(); s.Errors != 1 || s.Locks != 2 || s.Waits != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// An error that comes after Unlock is delivered once, when the lock is next free,
// together with that of whoever has it meanwhile.
func TestFail(t *testing.T) {
	other := errors.New("another fault")
	for _, held := range []bool{false, true} {
		for _, unlock := range []error{nil, other} {
			l := NewLocker("cuda:0")
			mustLock(t, l)
			var f *Failure
			if unlock != nil {
				f = failure(unlock)
			}
			if !held {
				l.Unlock(nil, f)
			}
			l.Fail(failure(errWork))
			if held {
				l.Unlock(nil, f)
			}
			err := l.Lock(t.Context(), nil)
			asyncCause(t, err)
			if unlock != nil && !errors.Is(err, unlock) {
				t.Errorf("held %v: %v does not wrap what was given to Unlock", held, err)
			}
			mustLock(t, l)
			l.Unlock(nil, nil)
			if err := l.Barrier(t.Context()); err != nil {
				t.Errorf("held %v: second delivery: %v", held, err)
			}
		}
	}
}

// Of the calls after a failure, which get it: work of the owner until it is told, a barrier, and
// nobody else.
func TestFailureBelongsToItsOwner(t *testing.T) {
	const owner, other = "owner", "other"
	lockAs := func(who any) func(*Locker) error {
		return func(l *Locker) error {
			err := l.Lock(t.Context(), who)
			if err == nil {
				l.Unlock(who, nil)
			}
			return err
		}
	}
	barrier := func(l *Locker) error { return l.Barrier(t.Context()) }
	tests := []struct {
		name  string
		owner any
		told  bool // by a reader, before the calls
		calls []func(*Locker) error
		got   []bool
	}{
		{"the owner", owner, false, []func(*Locker) error{lockAs(other), lockAs(nil), lockAs(owner), lockAs(owner), barrier}, []bool{false, false, true, false, false}},
		{"a barrier", owner, false, []func(*Locker) error{lockAs(other), barrier, lockAs(owner)}, []bool{false, true, false}},
		{"a reader", owner, true, []func(*Locker) error{lockAs(owner), barrier}, []bool{false, false}},
		{"nobody's", nil, false, []func(*Locker) error{lockAs(other), lockAs(owner), barrier}, []bool{true, false, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLocker("cpu:0")
			mustLock(t, l)
			f := &Failure{Err: errWork, Owner: tt.owner}
			l.Unlock(nil, f)
			if tt.told {
				f.Tell()
			}
			for i, call := range tt.calls {
				err := call(l)
				if (err != nil) != tt.got[i] {
					t.Errorf("call %d: %v", i, err)
				}
				if err != nil {
					asyncCause(t, err)
				}
			}
			if !f.Told() {
				t.Error("nobody was told")
			}
		})
	}
}

// Sessions that fail and are never used again take no memory.
func TestFailuresAreBounded(t *testing.T) {
	var l Locker
	for i := range 3 * MaxFailures {
		mustLock(t, &l)
		l.Unlock(nil, &Failure{Err: errWork, Owner: i})
	}
	if n := len(l.failures); n != MaxFailures {
		t.Errorf("%d failures are kept, want %d", n, MaxFailures)
	}
	if err := l.Lock(t.Context(), 3*MaxFailures-1); err == nil {
		t.Error("the newest was dropped")
	}
	if err := l.Lock(t.Context(), 0); err != nil {
		t.Errorf("the oldest is kept: %v", err)
	}
}

func TestAsyncErrorWithoutName(t *testing.T) {
	var l Locker
	mustLock(t, &l)
	l.Unlock(nil, failure(errWork))
	err := l.Lock(t.Context(), nil)
	asyncCause(t, err)
	if want := "devicelock: earlier asynchronous work failed: kernel fault"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestUnlockOfUnlockedPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	new(Locker).Unlock(nil, nil)
}

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locker
		mustLock(t, &l)
		var mu sync.Mutex
		var order []int
		for i := range 8 {
			go func() {
				if i%3 == 2 {
					if err := l.Barrier(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					if err := l.Lock(t.Context(), nil); err != nil {
						t.Error(err)
					}
					defer l.Unlock(nil, nil)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second) // others get in only if the lock lets them
			}()
			synctest.Wait()
		}
		l.Unlock(nil, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		// A barrier passes at the same moment as the lock behind it is taken.
		for _, pair := range [][2]int{{2, 3}, {5, 6}} {
			i := slices.Index(order, pair[0])
			if i > 0 && order[i-1] == pair[1] {
				order[i-1], order[i] = order[i], order[i-1]
			}
		}
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// Short work passes long work that waits, but for no longer than that takes itself, and nothing else.
func TestShortWorkPassesLong(t *testing.T) {
	type call struct {
		owner   string
		long    time.Duration
		barrier bool
	}
	const ms = time.Millisecond
	tests := []struct {
		name  string
		calls []call // that find the lock held, in order
		want  []int
	}{
		{"none says", []call{{owner: "a"}, {owner: "b"}}, []int{0, 1}},
		{"short behind long", []call{{"a", 30 * ms, false}, {"b", ms, false}}, []int{1, 0}},
		{"nearly as long", []call{{"a", 2 * ms, false}, {"b", ms, false}}, []int{0, 1}},
		{"long behind short", []call{{"a", ms, false}, {"b", 30 * ms, false}}, []int{0, 1}},
		{"short ones keep their order", []call{{"a", 30 * ms, false}, {"b", ms, false}, {"c", ms, false}}, []int{1, 2, 0}},
		{"of the same owner", []call{{"a", 30 * ms, false}, {"a", ms, false}}, []int{0, 1}},
		{"behind a barrier", []call{{"a", 30 * ms, false}, {barrier: true}, {"b", ms, false}}, []int{0, 1, 2}},
		{"behind one that does not say", []call{{"a", 30 * ms, false}, {owner: "b"}, {"c", ms, false}}, []int{0, 1, 2}},
		{"not for longer than its own", []call{{"a", 9 * ms, false}, {"b", 4 * ms, false}, {"b", 4 * ms, false}, {"b", 4 * ms, false}}, []int{1, 2, 0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := NewLocker("cpu:0")
				mustLock(t, l)
				var mu sync.Mutex
				var got []int
				for i, c := range tt.calls {
					go func() {
						var err error
						if c.barrier {
							err = l.Barrier(t.Context())
						} else if err = l.LockFor(t.Context(), c.owner, Alone, c.long); err == nil {
							defer l.Unlock(c.owner, nil)
						}
						if err != nil {
							t.Error(err)
						}
						if !c.barrier {
							time.Sleep(time.Millisecond) // a Barrier passes as the Lock behind it is taken
						}
						mu.Lock()
						defer mu.Unlock()
						got = append(got, i)
					}()
					synctest.Wait()
				}
				l.Unlock(nil, nil)
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, tt.want) {
					t.Errorf("the lock went to %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestErrorGoesToFirstWaiterAndLockToSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locker
		mustLock(t, &l)
		errs := make([]error, 2)
		for i := range errs {
			go func() { errs[i] = l.Lock(t.Context(), nil) }()
			synctest.Wait()
		}
		l.Unlock(nil, failure(errWork))
		synctest.Wait()
		asyncCause(t, errs[0])
		if errs[1] != nil {
			t.Fatalf("second waiter: %v", errs[1])
		}
		l.Unlock(nil, nil)
	})
}

func TestBarrierWaitsForHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locker
		mustLock(t, &l)
		var err error
		passed := false
		go func() {
			err = l.Barrier(t.Context())
			passed = true
		}()
		synctest.Wait()
		if passed {
			t.Fatal("passed a held lock")
		}
		l.Unlock(nil, failure(errWork))
		synctest.Wait()
		if !passed {
			t.Fatal("did not pass")
		}
		asyncCause(t, err)
		mustLock(t, &l) // the barrier left the lock free
	})
}

func TestCancelledWaiterLeaves(t *testing.T) {
	tests := []struct {
		name string
		wait func(*Locker, context.Context) error
	}{
		{"Lock", lock},
		{"Barrier", (*Locker).Barrier},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Locker
				mustLock(t, &l)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := tt.wait(&l, ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v", err)
				}
				// A waiter that left must not be handed the lock or the error.
				l.Unlock(nil, failure(errWork))
				asyncCause(t, l.Lock(t.Context(), nil))
				mustLock(t, &l)
				if err := tt.wait(&l, ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("ended context on a held lock: got %v", err)
				}
				l.Unlock(nil, nil)
				if err := tt.wait(&l, ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("ended context on a free lock: got %v", err)
				}
				mustLock(t, &l)
			})
		})
	}
}

// The grant and the cancellation of a waiter can coincide; wait is called
// directly to make them do so.
func TestSettledAndCancelledAtOnce(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// select picks at random among the ready cases, so repeat.
	for range 50 {
		var l Locker
		mustLock(t, &l)
		w, e := l.enqueue(&waiter{})
		l.Unlock(nil, nil) // grants the lock to w
		if err := l.wait(ended, w, e); err != nil {
			mustLock(t, &l) // given back
		}
		l.Unlock(nil, nil)

		mustLock(t, &l)
		w, e = l.enqueue(&waiter{barrier: true})
		l.Unlock(nil, failure(errWork))
		asyncCause(t, l.wait(ended, w, e)) // never lost
		mustLock(t, &l)
	}
}

func TestWaitStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locker
		mustLock(t, &l)
		done := make(chan error)
		go func() { done <- l.Lock(t.Context(), nil) }()
		time.Sleep(3 * time.Second)
		l.Unlock(nil, nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := Stats{Locks: 2, Waits: 1, WaitTime: 3 * time.Second}
		if got := l.Stats(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestLockerStress(t *testing.T) {
	var l Locker
	var wg sync.WaitGroup
	held, given := 0, 0 // guarded by l
	got := make([]int, 8)
	for g := range got {
		wg.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == g%7 {
					go cancel()
				}
				var a *AsyncError
				err := l.Lock(ctx, nil)
				switch {
				case errors.As(err, &a):
					got[g]++
				case err == nil:
					if held++; held != 1 {
						t.Errorf("%d holders", held)
					}
					held--
					if i%5 == 0 {
						given++
						l.Unlock(nil, failure(errWork))
					} else {
						l.Unlock(nil, nil)
					}
				case !errors.Is(err, context.Canceled):
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	delivered := 0
	for _, n := range got {
		delivered += n
	}
	if l.Barrier(t.Context()) != nil {
		delivered++
	}
	if delivered != given {
		t.Errorf("%d errors given, %d delivered", given, delivered)
	}
	if len(l.holders) != 0 || l.queue.Len() != 0 {
		t.Errorf("held by %v with %d waiters at rest", l.holders, l.queue.Len())
	}
}

func BenchmarkLockUnlock(b *testing.B) {
	ctx := context.Background()
	var l Locker
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Lock(ctx, nil); err != nil {
			b.Fatal(err)
		}
		l.Unlock(nil, nil)
	}
}
