package hostmem

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Tensors that a program drops are found by the garbage collector, which by itself runs when the heap
// has doubled. Beside weights of a gigabyte that is after a gigabyte of results: each is made in
// memory that the operating system has to map and clear, though the storage of the last one is free.
const (
	// collectBytes is how much fresh storage is worth a collection, which takes a fraction of a
	// millisecond where the heap has few pointers: storage has none.
	collectBytes = 32 << 20
	// collectPause is how long no collection follows another, in times of what that took, for
	// programs whose heap has many.
	collectPause = 20
)

// nudge is the collections that fresh storage has caused.
var nudge struct {
	fresh  atomic.Int64 // bytes since the last one
	busy   atomic.Bool
	resume atomic.Int64 // when the next may begin, in nanoseconds since began
}

var began = time.Now()

// noteFresh counts fresh storage and has the collector look for storage that was dropped, beside the
// caller, where that has become much.
func noteFresh(bytes int64) {
	n := &nudge
	if n.fresh.Add(bytes) < collectBytes || int64(time.Since(began)) < n.resume.Load() || !n.busy.CompareAndSwap(false, true) {
		return
	}
	n.fresh.Store(0)
	go func() {
		begin := time.Since(began)
		runtime.GC()
		end := time.Since(began)
		n.resume.Store(int64(end + collectPause*(end-begin)))
		n.busy.Store(false)
	}()
}
