package parallel

import (
	"sync"
	"sync/atomic"
)

const (
	// chunksPerThread is how many chunks each goroutine gets on average: more even out
	// goroutines of different speed, fewer cost less hand-over.
	chunksPerThread = 8
	// joinSpins is how often a caller polls for the end of a job before it sleeps.
	joinSpins = 2000
	// cacheLine is the size of a line of the processor's cache.
	cacheLine = 64
)

// job is one parallel loop. Its units are cut into chunks, and the chunks into one
// part of adjacent ones for each goroutine. A goroutine first does the chunks of its
// own part, then what is left of the others. Since the parts depend on sizes only, the
// same loop in a model's next run finds in each processor's cache what the last run
// has left there, and a goroutine that starts late or is slow just does less.
type job struct {
	body    func(lo, hi int)
	metered bool   // workers hold permits
	run     func() // what the threads of another runtime do, made once
	chunk   int
	parts   []part
	arrived atomic.Int32 // threads of another runtime that have begun
	workers []*worker    // that were offered the job
	woke    bool         // one of them was asleep
	fault   atomic.Pointer[fault]
	clock   *clock // nil unless the loop is observed

	// pending counts the workers that have not finished. A caller that stops
	// spinning adds asleep to it, and the last worker then sends on done. After
	// its decrement a worker does not touch the job again.
	pending atomic.Int32
	done    chan struct{}
}

// part is adjacent chunks.
type part struct {
	next atomic.Int64 // the first unit that no goroutine has taken
	end  int
	_    [cacheLine - 16]byte // each part is mostly used by one processor, so it has a cache line of its own
}

// asleep is more than any number of workers.
const asleep = 1 << 30

// fault is what a call of body panicked with.
type fault struct{ value any }

var jobs = sync.Pool{New: func() any {
	j := &job{done: make(chan struct{}, 1)}
	j.run = func() { j.work(int(j.arrived.Add(1)-1), false) }
	return j
}}

// loop runs a loop on up to the given number of goroutines. metered says that the caller
// holds a permit.
func loop(metered bool, threads, n, grain int, body func(lo, hi int)) {
	chunks := min((n+grain-1)/grain, chunksPerThread*threads)
	j := jobs.Get().(*job)
	j.body, j.metered = body, metered
	j.cut(n, (n+chunks-1)/chunks, threads)
	if fn := observer.Load(); fn != nil {
		j.measure(*fn)
	} else {
		j.start(len(j.parts))
	}
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

// start runs the job on at most so many goroutines and returns when it is done.
func (j *job) start(threads int) {
	run := external.Load()
	switch {
	case run != nil && j.metered:
		j.startExternal(*run, threads)
	case run != nil:
		(*run)(threads, j.run)
	default:
		if !j.metered {
			pool.unmetered.Add(1)
		}
		pool.dispatch(j, threads-1)
		j.work(0, false)
		if !j.metered {
			pool.unmetered.Add(-1)
		}
		j.join()
	}
}

// startExternal runs a metered job on the threads of another runtime. It takes their
// permits beforehand, as there is no way to know which of the threads will come.
func (j *job) startExternal(run func(int, func()), threads int) {
	n := 1
	for n < threads && permits.spare() {
		n++
	}
	if n == 1 {
		j.work(0, false)
		return
	}
	run(n, j.run)
	for range n - 1 {
		permits.release()
	}
}

// join takes the job back from workers that have not begun and waits for the others.
func (j *job) join() {
	for _, w := range j.workers {
		if w.mail.CompareAndSwap(j, idle) {
			pool.unreserve(j.metered)
			j.pending.Add(-1)
		}
	}
	clear(j.workers)
	j.workers = j.workers[:0]
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

// finished tells the caller that a worker is done with the job.
func (j *job) finished() {
	if j.pending.Add(-1) == asleep {
		j.done <- struct{}{}
	}
}

// work does chunks until there are no more, beginning with those of the given part,
// modulo the number of parts. A worker that holds a permit returns early when a run
// waits for one.
func (j *job) work(first int, worker bool) {
	defer func() {
		if r := recover(); r != nil {
			j.fault.CompareAndSwap(nil, &fault{r})
			for i := range j.parts { // the others stop after their chunk
				j.parts[i].next.Store(int64(j.parts[i].end))
			}
		}
	}()
	if j.clock != nil {
		defer j.clock.enter()()
	}
	for i := range j.parts {
		p := &j.parts[(first+i)%len(j.parts)]
		for {
			hi := int(p.next.Add(int64(j.chunk)))
			lo := hi - j.chunk
			if lo >= p.end {
				break
			}
			j.body(lo, min(hi, p.end))
			if worker && j.metered && permits.waiting.Load() > 0 {
				return
			}
		}
	}
}
