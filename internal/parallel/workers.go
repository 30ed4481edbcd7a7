package parallel

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// Workers live on between loops. After a job a worker polls for the next one for a
// short time before it sleeps, because waking a sleeping thread takes longer than
// many a parallel loop. It does not poll while all processors are in use, since then no
// loop could call it. A caller that has finished the work by the time a worker wakes
// takes the job back instead of waiting for it.

const (
	// spinTime is how long an idle worker polls for a job. It bridges what a run
	// computes on one goroutine, and what lies between two runs of a training loop:
	// the end of the caller's last chunk, and recording.
	spinTime = 200 * time.Microsecond
	// spinsPerCheck is how often a worker polls between looks at the clock, after
	// each of which other goroutines may have the processor.
	spinsPerCheck = 64
)

// worker is one goroutine of the pool. mail is its state: idle while it polls, parked
// while it sleeps, nil while it works, or the job that it is offered.
type worker struct {
	first int // the part of a job with which it begins, modulo their number
	mail  atomic.Pointer[job]
	wake  chan struct{}
}

// idle and parked are states in a worker's mail. Either may be replaced by a job;
// parked then needs a token on wake.
var idle, parked = new(job), new(job)

// workerPool is all workers: at most one for each processor but one.
type workerPool struct {
	// unmetered counts the goroutines that compute without a permit: callers of For
	// and their workers. No worker is called when these and the permits taken are as
	// many as processors.
	unmetered atomic.Int32
	workers   atomic.Pointer[[]*worker] // immutable; spawn replaces it by a longer one
	mu        sync.Mutex                // held by spawn
}

// pool is the process's workers.
var pool workerPool

// all returns the workers that there are.
func (p *workerPool) all() []*worker {
	if l := p.workers.Load(); l != nil {
		return *l
	}
	return nil
}

// dispatch offers a job to at most n workers.
func (p *workerPool) dispatch(j *job, n int) {
	p.offer(j, n)
	if j.woke {
		j.woke = false
		go wakeIdleThread()
	}
}

// wakeIdleThread does nothing; starting a goroutine is what counts. The runtime gives
// the goroutine that was made ready last to the caller's thread to run next, and idle
// threads leave it there for some 50 µs. Making another one ready after a worker pushes the
// worker to where an idle thread takes it at once.
func wakeIdleThread() {}

// offer makes the offers of dispatch.
func (p *workerPool) offer(j *job, n int) {
	all := p.all()
	for i := 0; n > 0; i++ {
		if !p.reserve(j.metered) {
			return
		}
		for ; i < len(all) && !all[i].offer(j); i++ {
		}
		if i < len(all) {
			n--
			continue
		}
		if !p.spawn(j, int(processors())) {
			p.unreserve(j.metered)
			return
		}
		n--
	}
}

// reserve counts one more worker if there is a processor for it.
func (p *workerPool) reserve(metered bool) bool {
	if metered {
		return permits.spare()
	}
	if p.unmetered.Add(1)+permits.taken.Load() > processors() {
		p.unmetered.Add(-1)
		return false
	}
	return true
}

// unreserve counts one worker less.
func (p *workerPool) unreserve(metered bool) {
	if metered {
		permits.release()
	} else {
		p.unmetered.Add(-1)
	}
}

// crowded reports whether there is no processor for a worker.
func crowded() bool {
	return permits.waiting.Load() > 0 || permits.taken.Load()+pool.unmetered.Load() >= processors()
}

// offer gives a job to a worker, unless it is at another.
func (w *worker) offer(j *job) bool {
	if m := w.mail.Load(); m != idle && m != parked {
		return false
	}
	j.pending.Add(1)
	if w.mail.CompareAndSwap(idle, j) {
		j.workers = append(j.workers, w)
		return true
	}
	if w.mail.CompareAndSwap(parked, j) {
		j.workers = append(j.workers, w)
		j.woke = true
		select {
		case w.wake <- struct{}{}:
		default:
		}
		return true
	}
	j.pending.Add(-1)
	return false
}

// spawn starts a new worker on a job, unless there is one for each processor but one.
func (p *workerPool) spawn(j *job, procs int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all()
	if len(all) >= procs-1 {
		return false
	}
	w := &worker{first: len(all) + 1, wake: make(chan struct{}, 1)}
	w.mail.Store(j)
	j.pending.Add(1)
	j.workers = append(j.workers, w)
	more := append(all[:len(all):len(all)], w)
	p.workers.Store(&more)
	go w.run()
	return true
}

// labels is what SetLabels was given, or nil.
var labels atomic.Pointer[context.Context]

// SetLabels makes workers carry the pprof labels of ctx while they work. There is
// one setting for the process.
func SetLabels(ctx context.Context) { labels.Store(&ctx) }

// ClearLabels undoes SetLabels.
func ClearLabels() { labels.Store(nil) }

// run does the jobs that the worker is offered; it never returns.
func (w *worker) run() {
	pprof.SetGoroutineLabels(context.Background()) // not those of the caller that spawned it
	for {
		j := w.await()
		if l := labels.Load(); l != nil {
			pprof.SetGoroutineLabels(*l)
			j.work(w.first, true)
			pprof.SetGoroutineLabels(context.Background())
		} else {
			j.work(w.first, true)
		}
		pool.unreserve(j.metered)
		w.mail.Store(idle)
		j.finished()
	}
}

// await returns the next job that the worker is offered and that has not been taken
// back.
func (w *worker) await() *job {
	for {
		start := time.Now()
		for {
			for range spinsPerCheck {
				if j := w.mail.Load(); j != idle && w.mail.CompareAndSwap(j, nil) {
					return j
				}
				pause()
			}
			if time.Since(start) > spinTime || crowded() {
				break
			}
			runtime.Gosched()
		}
		if w.mail.CompareAndSwap(idle, parked) {
			<-w.wake
			// Unless there is a job, the token is of one that was taken back.
			w.mail.CompareAndSwap(parked, idle)
		}
	}
}
