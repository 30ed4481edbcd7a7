package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// piecesPerWorker is how many chunks each worker gets on average: more even out
// workers of different speed, fewer cost less hand-over.
const piecesPerWorker = 8

// limit is what SetThreads was given.
var limit atomic.Int32

// job is one parallel loop. Its units are cut into chunks, and these shared out as
// one part for each goroutine, which first does the chunks of the part that it begins
// with and then what is left of the others. A loop over the same units in the next
// step of a model meets in each processor's cache what the last has left there, and
// who comes late or is slow only does less.
type job struct {
	body    func(lo, hi int)
	run     func() // what lent threads do, made once
	chunk   int
	parts   []part
	arrived atomic.Int32 // threads that somebody has lent, so far
	helpers []*worker    // that were called
	woke    bool         // one of them slept
	fault   atomic.Pointer[fault]

	// pending counts the helpers that have not finished; the caller adds
	// asleep when it stops spinning, and the last helper then sends on done.
	// After its count a helper does not touch the job again.
	pending atomic.Int32
	done    chan struct{}

	seated bool // helpers have seats; else they are guests
}

// part is adjacent chunks.
type part struct {
	next atomic.Int64 // the first unit that no one has taken
	end  int
	_    [cacheLine - 16]byte // parts are apart, as each is mostly used by one processor
}

const cacheLine = 64

// asleep is more than any number of helpers.
const asleep = 1 << 30

type fault struct{ value any }

var jobs = sync.Pool{New: func() any {
	j := &job{done: make(chan struct{}, 1)}
	j.run = func() { j.take(int(j.arrived.Add(1)-1), false) }
	return j
}}

// lent, if set, runs work on threads that are not of the crew.
var lent atomic.Pointer[func(threads int, work func())]

// SetTeam makes all parallel loops run on threads that somebody else has: run
// calls work on up to so many of them at once, the calling one among them, and
// returns when all calls have. Two sets of threads, each of which looks out for
// its own work for a while before it sleeps, would be in each other's way. nil
// makes those that begin later run on goroutines again.
func SetTeam(run func(threads int, work func())) {
	if run == nil {
		lent.Store(nil)
		return
	}
	lent.Store(&run)
}

// For calls body on ranges that together cover 0..n-1 exactly once, on several
// goroutines if there are more than grain units; grain should stand for some ten
// microseconds of work. The calling goroutine takes part. A panic of body is
// passed on to the caller after all workers have stopped.
func For(n, grain int, body func(lo, hi int)) { ForThreads(0, n, grain, body) }

// Threads returns how many goroutines a call of For uses at most.
func Threads() int {
	procs := int(processors())
	if n := int(limit.Load()); n > 0 {
		return min(n, procs)
	}
	return procs
}

func processors() int32 { return int32(runtime.GOMAXPROCS(0)) }

// SetThreads bounds the goroutines of each later call of For; zero lifts the
// bound. There are never more than GOMAXPROCS.
func SetThreads(n int) { limit.Store(int32(max(n, 0))) }

// ForThreads is For on at most the given number of goroutines, the calling one
// included; zero stands for Threads().
func ForThreads(threads, n, grain int, body func(lo, hi int)) {
	(*Share)(nil).ForThreads(threads, n, grain, body)
}

// loop is ForThreads with helpers, for a caller that has a seat, or is a guest.
func loop(seated bool, threads, n, grain int, body func(lo, hi int)) {
	pieces := min((n+grain-1)/grain, piecesPerWorker*threads)
	j := jobs.Get().(*job)
	j.body, j.seated = body, seated
	j.cut(n, (n+pieces-1)/pieces, threads)
	j.share(len(j.parts))
	f := j.fault.Swap(nil)
	j.body = nil
	jobs.Put(j)
	if f != nil {
		panic(f.value)
	}
}

// cut makes the parts of n units in chunks of a size, for at most so many goroutines.
func (j *job) cut(n, chunk, threads int) {
	chunks := (n + chunk - 1) / chunk
	threads = min(threads, chunks)
	if cap(j.parts) < threads {
		j.parts = make([]part, threads)
	}
	j.chunk, j.parts = chunk, j.parts[:threads]
	j.arrived.Store(0)
	for i := range j.parts {
		p := &j.parts[i]
		p.next.Store(int64(i * chunks / threads * chunk))
		p.end = min((i+1)*chunks/threads*chunk, n)
	}
}

// share works on a job with helpers, on at most so many goroutines in all.
func (j *job) share(threads int) {
	run := lent.Load()
	switch {
	case run != nil && j.seated:
		j.shareLent(*run, threads)
	case run != nil:
		(*run)(threads, j.run)
	default:
		if !j.seated {
			team.guests.Add(1)
		}
		team.call(j, threads-1)
		j.take(0, false)
		if !j.seated {
			team.guests.Add(-1)
		}
		j.join()
	}
}

// shareLent is share on other threads than the crew's. Their seats are taken
// beforehand, as nobody knows which of them come.
func (j *job) shareLent(run func(int, func()), threads int) {
	n := 1
	for n < threads && seats.spare() {
		n++
	}
	if n == 1 {
		j.take(0, false)
		return
	}
	run(n, j.run)
	for range n - 1 {
		seats.give()
	}
}

// join waits for the helpers that have begun and sends the others away.
func (j *job) join() {
	for _, w := range j.helpers {
		if w.mail.CompareAndSwap(j, idle) {
			team.dismiss(j.seated)
			j.pending.Add(-1)
		}
	}
	clear(j.helpers)
	j.helpers = j.helpers[:0]
	for range joinSpins {
		if j.pending.Load() == 0 {
			return
		}
		pause()
	}
	if j.pending.Add(asleep) != asleep {
		<-j.done
	}
	j.pending.Store(0)
}

// finished tells the caller that a helper is done with the job.
func (j *job) finished() {
	if j.pending.Add(-1) == asleep {
		j.done <- struct{}{}
	}
}

// take does chunks, those of the part at a place first, until there are no more; a
// helper with a seat leaves when somebody waits for one.
func (j *job) take(place int, helper bool) {
	defer func() {
		if r := recover(); r != nil {
			j.fault.CompareAndSwap(nil, &fault{r})
			for i := range j.parts { // the others stop after their chunk
				j.parts[i].next.Store(int64(j.parts[i].end))
			}
		}
	}()
	for i := range j.parts {
		p := &j.parts[(place+i)%len(j.parts)]
		for {
			hi := int(p.next.Add(int64(j.chunk)))
			lo := hi - j.chunk
			if lo >= p.end {
				break
			}
			j.body(lo, min(hi, p.end))
			if helper && j.seated && seats.waiting.Load() > 0 {
				return
			}
		}
	}
}
