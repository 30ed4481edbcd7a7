package kernels

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// The helpers of For live on between calls. After a job a helper looks out for
// the next one for a short time before it sleeps, because waking a sleeping
// thread takes longer than many a parallel region. It does not where all processors
// have work of their own, so that nobody could call it. A caller that finds its work
// done by the time a helper wakes takes the job back instead of waiting for it.

const (
	// spinTime is how long an idle helper looks out for work. It bridges what a run
	// computes on one goroutine, and what lies between two runs of a loop: the end of
	// the caller's last chunk, and recording.
	spinTime = 200 * time.Microsecond
	// spinsPerLook is how many looks at its mail a helper takes between those at
	// the clock, after each of which other goroutines may have the processor.
	spinsPerLook = 64
	// joinSpins is how many looks a caller takes before it sleeps.
	joinSpins = 2000
)

// worker is one helper. mail says what it is at: idle while it looks out,
// parked while it sleeps, nil while it works, or the job that it is called to.
type worker struct {
	place int // which part of a job it begins with, modulo their number
	mail  atomic.Pointer[job]
	wake  chan struct{}
}

// idle and parked are the marks in a worker's mail; either may be replaced by a
// job, and parked needs a token on wake then.
var idle, parked = new(job), new(job)

// crew is all helpers.
type crew struct {
	// guests counts the goroutines that compute without a seat: callers of For
	// and their helpers. No helper is called when these and the seats taken are
	// as many as processors.
	guests  atomic.Int32
	workers atomic.Pointer[[]*worker] // a copy is made to add one
	mu      sync.Mutex                // held to add one
}

var team crew

// call hands a job to at most n helpers.
func (t *crew) call(j *job, n int) {
	t.offer(j, n)
	if j.woke {
		j.woke = false
		go nudge()
	}
}

// nudge does nothing. The goroutine that was made ready last is the one that the
// caller's thread would run next, and others leave it to that for some 50 µs. Starting
// this one puts a woken helper where an idle thread takes it at once.
func nudge() {}

// offer makes the offers of call.
func (t *crew) offer(j *job, n int) {
	var all []*worker
	if l := t.workers.Load(); l != nil {
		all = *l
	}
	for i := 0; n > 0; i++ {
		if !t.admit(j.seated) {
			return
		}
		for ; i < len(all) && !all[i].take(j); i++ {
		}
		if i < len(all) {
			n--
			continue
		}
		if !t.hire(j, int(processors())) {
			t.dismiss(j.seated)
			return
		}
		n--
	}
}

// admit counts one more helper if there is a processor for it.
func (t *crew) admit(seated bool) bool {
	if seated {
		return seats.spare()
	}
	if t.guests.Add(1)+seats.taken.Load() > processors() {
		t.guests.Add(-1)
		return false
	}
	return true
}

// crowded reports whether there is no processor for a helper.
func crowded() bool {
	return seats.waiting.Load() > 0 || seats.taken.Load()+team.guests.Load() >= processors()
}

// dismiss counts one helper less.
func (t *crew) dismiss(seated bool) {
	if seated {
		seats.give()
	} else {
		t.guests.Add(-1)
	}
}

// take offers a job to a worker, which has it if it was not at another.
func (w *worker) take(j *job) bool {
	if m := w.mail.Load(); m != idle && m != parked {
		return false
	}
	j.pending.Add(1)
	if w.mail.CompareAndSwap(idle, j) {
		j.helpers = append(j.helpers, w)
		return true
	}
	if w.mail.CompareAndSwap(parked, j) {
		j.helpers = append(j.helpers, w)
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

// hire starts a new worker on a job unless there is one for each processor.
func (t *crew) hire(j *job, procs int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*worker
	if l := t.workers.Load(); l != nil {
		all = *l
	}
	if len(all) >= procs-1 {
		return false
	}
	w := &worker{place: len(all) + 1, wake: make(chan struct{}, 1)}
	w.mail.Store(j)
	j.pending.Add(1)
	j.helpers = append(j.helpers, w)
	more := append(all[:len(all):len(all)], w)
	t.workers.Store(&more)
	go w.run()
	return true
}

// labels is what SetLabels was given, or nil.
var labels atomic.Pointer[context.Context]

// SetLabels makes helpers carry the pprof labels of ctx while they work, for a
// profiler. There is one setting for all callers of For.
func SetLabels(ctx context.Context) { labels.Store(&ctx) }

// ClearLabels ends what SetLabels began.
func ClearLabels() { labels.Store(nil) }

// run is the life of a worker.
func (w *worker) run() {
	pprof.SetGoroutineLabels(context.Background()) // it starts with those of its first caller
	for {
		j := w.await()
		if l := labels.Load(); l != nil {
			pprof.SetGoroutineLabels(*l)
			j.take(w.place, true)
			pprof.SetGoroutineLabels(context.Background())
		} else {
			j.take(w.place, true)
		}
		team.dismiss(j.seated)
		w.mail.Store(idle)
		j.finished()
	}
}

// await returns the next job that the worker is called to and that has not been
// taken back.
func (w *worker) await() *job {
	for {
		start := time.Now()
		for {
			for range spinsPerLook {
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
