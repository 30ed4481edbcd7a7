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

// collections starts the collections that an Allocator's fresh storage is worth.
type collections struct {
	fresh   atomic.Int64 // bytes since the last one
	running atomic.Bool
	resume  atomic.Pointer[time.Time] // when the next may begin; nil before the first
}

// add counts fresh storage and has the collector look for storage that was dropped, beside the caller,
// where that has become much.
func (c *collections) add(bytes int64) {
	if c.fresh.Add(bytes) < collectBytes {
		return
	}
	if t := c.resume.Load(); t != nil && time.Now().Before(*t) || !c.running.CompareAndSwap(false, true) {
		return
	}
	c.fresh.Store(0)
	go func() {
		begin := time.Now()
		runtime.GC()
		end := time.Now()
		resume := end.Add(collectPause * end.Sub(begin))
		c.resume.Store(&resume)
		c.running.Store(false)
	}()
}
