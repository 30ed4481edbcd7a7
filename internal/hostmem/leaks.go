package hostmem

import (
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/internal/ir"
)

// tracker is the record of buffers made while leak tracking is on, for the
// whole process: a test sees only backends, not their allocators.
var tracker struct {
	users atomic.Int32 // of Track; recording is on while it is not 0
	next  atomic.Uint64
	mu    sync.Mutex
	made  map[uint64]made // guarded by mu: buffers not released yet
}

type made struct {
	shape ir.Shape
	pcs   []uintptr
}

// Leak is one buffer that was not released.
type Leak struct {
	Shape ir.Shape
	// Stack is where it was made: lines of "function\n\tfile:line".
	Stack string
}

// Track begins to record where buffers are made. Leaks, which may be called any
// number of times, returns those made since then, by any allocator, that are
// not released; stop ends the recording.
func Track() (leaks func() []Leak, stop func()) {
	first := tracker.next.Load()
	tracker.users.Add(1)
	var once sync.Once
	return func() []Leak { return leaksSince(first) }, func() { once.Do(stopTracking) }
}

func stopTracking() {
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	if tracker.users.Add(-1) == 0 {
		tracker.made = nil
	}
}

// TB is what CheckLeaks needs of a *testing.T.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// CheckLeaks fails the test at its end for each buffer that was made from here
// on and is not released by then, with the stack of its allocation. Tests that
// run in parallel would see each other's buffers.
func CheckLeaks(t TB) {
	t.Helper()
	leaks, stop := Track()
	t.Cleanup(func() {
		t.Helper()
		for _, l := range leaks() {
			t.Errorf("buffer %v is not released; it was made at\n%s", l.Shape, l.Stack)
		}
		stop()
	})
}

// trackNew records a new buffer and returns its number, 0 when tracking is off.
func trackNew(s ir.Shape) uint64 {
	if tracker.users.Load() == 0 {
		return 0
	}
	var pcs [32]uintptr
	n := runtime.Callers(3, pcs[:])
	id := tracker.next.Add(1)
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	if tracker.made == nil {
		tracker.made = map[uint64]made{}
	}
	tracker.made[id] = made{s, append([]uintptr(nil), pcs[:n]...)}
	return id
}

func trackRelease(id uint64) {
	if id == 0 {
		return
	}
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	delete(tracker.made, id)
}

func leaksSince(first uint64) []Leak {
	tracker.mu.Lock()
	defer tracker.mu.Unlock()
	var ids []uint64
	for id := range tracker.made {
		if id > first {
			ids = append(ids, id)
		}
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	var out []Leak
	for _, id := range ids {
		m := tracker.made[id]
		out = append(out, Leak{m.shape, stack(m.pcs)})
	}
	return out
}

func stack(pcs []uintptr) string {
	var b strings.Builder
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}
