// Package memlimit bounds the host memory that tensors hold. Go ends the process when an allocation
// fails, so whoever allocates in proportion to a size that comes from outside takes the bytes here
// first, and returns an *ir.OutOfMemory where they are too many.
//
// The count is the process's, as its memory is: the backends and the sessions share it.
package memlimit

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// The default limit is this fraction of the memory that the process may have. The rest is for
// garbage that is not collected yet and for what is no tensor.
const numerator, denominator = 4, 5

// Default returns the bytes that tensors may hold where no other limit is set: 80 % of the smallest
// of the machine's memory, the limit of the process's control group (version 1 or 2), its limit of
// address space, and GOMEMLIMIT. It is read once.
var Default = sync.OnceValue(func() int64 {
	limit := debug.SetMemoryLimit(-1) // reads GOMEMLIMIT
	return scale(min(limit, available()))
})

// Most is more bytes than any machine has, and few enough for sums and roundings of sizes up to it.
const Most = 1 << 56

// scale returns the fraction of a limit that tensors may hold.
func scale(limit int64) int64 { return min(limit/denominator*numerator, Most) }

// held is what Take has given and Give has not got back.
var held atomic.Int64

// Held returns the bytes taken by all of the process.
func Held() int64 { return held.Load() }

// Take reserves bytes, until Give, for memory that is about to be allocated. Where more than limit
// (0: Default) would be held, it drops what can be had again and collects garbage first; if that is
// not enough, it takes nothing and returns the error, whose Op, Shape and Line are the caller's to
// fill in.
func Take(bytes, limit int64) *ir.OutOfMemory {
	if limit <= 0 {
		limit = Default()
	}
	if f := refuse.Load(); f != nil && (*f)() {
		return &ir.OutOfMemory{Wanted: bytes, Held: Held(), Limit: limit}
	}
	if take(bytes, limit) {
		return nil
	}
	if bytes <= limit && reclaim(func() bool { return take(bytes, limit) }) {
		return nil
	}
	return &ir.OutOfMemory{Wanted: bytes, Held: Held(), Limit: limit}
}

// refuse is nil but where failures are injected.
var refuse atomic.Pointer[func() bool]

// Refuse has Take fail where f returns true, until undo is called. It is for tests of what becomes of
// programs that have no memory.
func Refuse(f func() bool) (undo func()) {
	refuse.Store(&f)
	return func() { refuse.Store(nil) }
}

// Trim drops what can be had again, as Take does where memory is short.
func Trim() {
	for _, release := range releases() {
		release()
	}
}

// Give returns bytes that Take reserved.
func Give(bytes int64) { held.Add(-bytes) }

// Check is Take for memory that the caller gives to somebody who is not counted: the bytes must fit
// now. The error is an *ir.OutOfMemory.
func Check(bytes, limit int64) error {
	if err := Take(bytes, limit); err != nil {
		return err
	}
	Give(bytes)
	return nil
}

// Sum adds sizes in bytes. What an int64 cannot hold becomes the largest one.
func Sum(sizes ...int64) int64 {
	total := int64(0)
	for _, n := range sizes {
		if n > math.MaxInt64-total {
			return math.MaxInt64
		}
		total += n
	}
	return total
}

// Times multiplies natural numbers. What an int64 cannot hold becomes the largest one.
func Times(a, b int64) int64 {
	if b != 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

func take(bytes, limit int64) bool {
	for {
		h := held.Load()
		if bytes > limit-h {
			return false
		}
		if held.CompareAndSwap(h, h+bytes) {
			return true
		}
	}
}

var pressure struct {
	collecting sync.Mutex // one collection at a time

	mu   sync.Mutex
	next int
	on   map[int]func() // guarded by mu
}

// OnPressure has release called where memory is short, until cancel is called: it is to drop what
// can be had again. It runs on the goroutine that allocates and must not wait for others.
func OnPressure(release func()) (cancel func()) {
	pressure.mu.Lock()
	defer pressure.mu.Unlock()
	if pressure.on == nil {
		pressure.on = map[int]func(){}
	}
	id := pressure.next
	pressure.next++
	pressure.on[id] = release
	return func() {
		pressure.mu.Lock()
		defer pressure.mu.Unlock()
		delete(pressure.on, id)
	}
}

// rounds bounds the collections for one allocation. What is found unreachable in one may release, in
// its cleanup, what only the next can find.
const rounds = 4

// reclaim releases and collects until enough reports true; false if it never does.
func reclaim(enough func() bool) bool {
	pressure.collecting.Lock()
	defer pressure.collecting.Unlock()
	for range rounds {
		if enough() {
			return true
		}
		for _, release := range releases() {
			release()
		}
		collect()
	}
	return enough()
}

func releases() []func() {
	pressure.mu.Lock()
	defer pressure.mu.Unlock()
	fs := make([]func(), 0, len(pressure.on))
	for _, f := range pressure.on {
		fs = append(fs, f)
	}
	return fs
}

// collect collects garbage and waits until the cleanups of what was found have run: one that is
// queued with them has. A cleanup may need a lock that the caller holds, so the wait is bounded.
func collect() {
	done := make(chan struct{})
	runtime.AddCleanup(&struct{ self *int }{new(int)}, func(done chan struct{}) { close(done) }, done)
	runtime.GC()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	runtime.Gosched() // cleanups that were taken from the queue at the same time end
}
