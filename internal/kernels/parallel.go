package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// piecesPerWorker is how many chunks each worker gets on average: more even out
// workers of different speed, fewer cost less hand-over.
const piecesPerWorker = 4

// busy counts the helping goroutines of all calls of For, so that calls from
// many goroutines at once do not start more than there are processors.
var busy atomic.Int32

// limit is what SetThreads was given.
var limit atomic.Int32

type job struct {
	body  func(lo, hi int)
	n     int
	chunk int
	next  atomic.Int64 // the first unit that no one has taken
	wg    sync.WaitGroup
	fault atomic.Pointer[fault]
}

type fault struct{ value any }

var jobs = sync.Pool{New: func() any { return new(job) }}

// For calls body on ranges that together cover 0..n-1 exactly once, on several
// goroutines if there are more than grain units; grain should stand for some
// tens of microseconds of work. The calling goroutine takes part. A panic of
// body is passed on to the caller after all workers have stopped.
func For(n, grain int, body func(lo, hi int)) { ForThreads(0, n, grain, body) }

// Threads returns how many goroutines a call of For uses at most.
func Threads() int {
	procs := runtime.GOMAXPROCS(0)
	if n := int(limit.Load()); n > 0 {
		return min(n, procs)
	}
	return procs
}

// SetThreads bounds the goroutines of each later call of For; zero lifts the
// bound. There are never more than GOMAXPROCS.
func SetThreads(n int) { limit.Store(int32(max(n, 0))) }

// ForThreads is For on at most the given number of goroutines, the calling one
// included; zero stands for Threads().
func ForThreads(threads, n, grain int, body func(lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	if n <= grain {
		body(0, n)
		return
	}
	procs := Threads()
	if threads > 0 {
		procs = min(procs, threads)
	}
	if procs == 1 {
		body(0, n)
		return
	}
	pieces := min((n+grain-1)/grain, piecesPerWorker*procs)
	j := jobs.Get().(*job)
	j.body, j.n, j.chunk = body, n, (n+pieces-1)/pieces
	j.next.Store(0)
	for range min(procs, pieces) - 1 {
		if int(busy.Add(1)) >= runtime.GOMAXPROCS(0) {
			busy.Add(-1)
			break
		}
		j.wg.Add(1)
		go j.help()
	}
	j.work()
	j.wg.Wait()
	f := j.fault.Swap(nil)
	j.body = nil
	jobs.Put(j)
	if f != nil {
		panic(f.value)
	}
}

func (j *job) help() {
	defer func() {
		busy.Add(-1)
		j.wg.Done()
	}()
	j.work()
}

func (j *job) work() {
	defer func() {
		if r := recover(); r != nil {
			j.fault.CompareAndSwap(nil, &fault{r})
			j.next.Store(int64(j.n)) // the others stop after their chunk
		}
	}()
	for {
		hi := int(j.next.Add(int64(j.chunk)))
		lo := hi - j.chunk
		if lo >= j.n {
			return
		}
		j.body(lo, min(hi, j.n))
	}
}
