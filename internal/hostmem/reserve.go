package hostmem

import (
	"runtime/debug"
	"strings"
	"sync"
)

// A program with a small model has a heap of a megabyte or two, which the garbage collector goes through each time
// that the program has made four. A step of some ten microseconds makes some ten kilobytes, so a fifth of its time
// goes to the collector. An Allocator therefore holds memory of the heap that it never writes to, and that the
// operating system hence gives no pages for: the collector runs as it would beside a model of that size.
const (
	reserveBytes = 8 << 20
	// reserveLimit is the least memory limit of the Go runtime (GOMEMLIMIT) beside which memory is held, as the
	// runtime counts it.
	reserveLimit = 64 * reserveBytes
)

// reserve is memory that is held and never used.
type reserve struct {
	once sync.Once
	mem  strings.Builder // does not clear what it holds
}

// hold takes the memory, once.
func (r *reserve) hold() {
	r.once.Do(func() {
		if debug.SetMemoryLimit(-1) >= reserveLimit {
			r.mem.Grow(reserveBytes)
		}
	})
}
