// Package parallel runs loops on several processors.
//
// For cuts a loop into chunks of independent units and shares them among the
// calling goroutine and the workers of one pool, which the whole process has and
// whose workers live on between loops. Programs that load libraries of OpenMP
// replace the pool by the threads of that runtime, see SetThreadPool.
//
// How many goroutines compute at a time is bounded by permits, of which there are
// as many as GOMAXPROCS. A model's run holds one through a Limiter and takes
// more for workers while there are any. Loops outside of runs are unmetered: they
// need no permit, begin at once and have workers only where permits are left over.
//
// Which goroutine does a unit depends on timing, so a loop's result may not depend
// on it.
package parallel

import (
	"runtime"
	"sync/atomic"
)

// limit is what SetThreads was given.
var limit atomic.Int32

// SetThreads bounds the goroutines of each later loop; zero lifts the bound. There
// are never more than GOMAXPROCS.
func SetThreads(n int) { limit.Store(int32(max(n, 0))) }

// Threads returns how many goroutines a loop uses at most.
func Threads() int {
	procs := int(processors())
	if n := int(limit.Load()); n > 0 {
		return min(n, procs)
	}
	return procs
}

func processors() int32 { return int32(runtime.GOMAXPROCS(0)) }

// external is what SetThreadPool was given, or nil.
var external atomic.Pointer[func(threads int, work func())]

// SetThreadPool makes all later loops run on the threads of another runtime instead
// of this package's workers: two pools whose threads spin while they wait for work
// would take the processors from each other. run must call work on at most the given
// number of its threads at once, the calling one among them, and return when all these
// calls have returned. A nil run goes back to the workers.
func SetThreadPool(run func(threads int, work func())) {
	if run == nil {
		external.Store(nil)
		return
	}
	external.Store(&run)
}

// For calls body on ranges that together cover 0..n-1 exactly once, on several
// goroutines if n exceeds grain; grain should stand for some ten microseconds of
// work. The calling goroutine takes part. If a call of body panics, For panics with
// the same value after all goroutines have stopped.
func For(n, grain int, body func(lo, hi int)) { ForThreads(0, n, grain, body) }

// ForThreads is For on at most the given number of goroutines, the calling one
// included; zero stands for Threads().
func ForThreads(threads, n, grain int, body func(lo, hi int)) {
	(*Limiter)(nil).ForThreads(threads, n, grain, body)
}
