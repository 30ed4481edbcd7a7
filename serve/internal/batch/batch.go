// Package batch puts requests that wait for a model together, so that one run computes
// the rows of many.
//
// No goroutine belongs to a Scheduler. A request that finds a free slot runs at once, in
// its caller's goroutine; others queue, and whoever ends a run hands his slot to the
// first in the queue, who leads the next run: he takes along those that fit. Where requests meet,
// a leader gives way once before his run to those that could run and have not asked yet.
package batch

import (
	"context"
	"sync"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
)

// Config says how requests are put together.
type Config struct {
	// MaxRows bounds the rows of one run; 0 runs each request alone.
	MaxRows int64
	// Preferred are numbers of rows that a run rather has than others; nil for none.
	Preferred []int64
	// Slots is how many runs go on at once, at least one.
	Slots int
	// Delay is how long a request waits at most for others, and only while that is
	// worth its time.
	Delay time.Duration
	// Levels is how many priorities there are, from 1, the first to be served;
	// DefaultLevel is that of requests that say none. 0 stands for one level.
	Levels, DefaultLevel int
	// Policies are the bounds of the queue of each level, by level-1; the last one is
	// that of all further levels.
	Policies []Policy
}

// Policy bounds the queue of a priority level.
type Policy struct {
	// MaxQueue is how many requests may wait; 0 is no bound.
	MaxQueue int
	// Timeout is how long a request waits at most to begin, if it says nothing else;
	// 0 is no bound.
	Timeout time.Duration
	// Override lets a request ask for a shorter timeout.
	Override bool
}

// Runner runs works; *model.Model is one.
type Runner interface {
	Run(ctx context.Context, works ...*model.Work) (*model.Result, error)
}

// Scheduler is the queue of one model.
type Scheduler struct {
	runner Runner
	config Config

	mu      sync.Mutex
	free    int       // slots that nobody has
	levels  [][]*item // those that wait, by level
	waiting int
	leader  *item // has a slot and waits for more, nil for nobody
	arrived time.Time
	gap     float64 // smoothed time between arrivals, in seconds
	crowd   float64 // smoothed share of requests that came while others were there
	untried int     // runs since others were last let in
	fit     fit
	sizes   sizes

	items sync.Pool // of *item
}

// New returns a Scheduler.
func New(r Runner, c Config) *Scheduler {
	c.Slots, c.Levels = max(c.Slots, 1), max(c.Levels, 1)
	if c.DefaultLevel < 1 || c.DefaultLevel > c.Levels {
		c.DefaultLevel = c.Levels
	}
	if len(c.Policies) == 0 {
		c.Policies = []Policy{{Override: true}}
	}
	s := &Scheduler{runner: r, config: c, free: c.Slots, levels: make([][]*item, c.Levels)}
	s.items.New = func() any { return &item{signals: make(chan signal, 1)} }
	return s
}

// Request is one request for Do.
type Request struct {
	Work *model.Work
	// Priority is a level, 1 the first; 0 is the default.
	Priority int
	// Timeout bounds the wait in the queue; 0 leaves that to the policy.
	Timeout time.Duration
}

// Outcome is what a request gets.
type Outcome struct {
	Outputs []inference.Tensor
	// Result is the run's; its Release must be called once for each Outcome.
	Result *model.Result
	// Queue is how long it waited, and Rows how many rows the run had.
	Queue time.Duration
	Rows  int64
	// First says that it stands for the run in what is counted by run.
	First bool
}

// item is a request in the queue. Its fields but signals and more are guarded by the
// Scheduler's mu.
type item struct {
	Request
	ctx     context.Context
	level   int
	entered time.Time
	queued  bool
	signals chan signal    // one message, to one who waits; the next request uses it again
	more    chan struct{}  // wakes a leader who waits for others
	works   [8]*model.Work // room for those of the run that it leads
}

// signal tells one who waits that he leads, having a slot, or what came of his request.
type signal struct {
	lead bool
	out  Outcome
	err  error
}

// forget lets another request use an item that nobody else has any more, and whose signal, if there
// was one, was received.
func (s *Scheduler) forget(it *item) {
	*it = item{signals: it.signals}
	s.items.Put(it)
}

// Do waits for its turn and runs the request, alone or with others. The work's data is
// read until Do returns. Its errors are *inference.Errors of the kinds
// ResourceExhausted for a full queue, DeadlineExceeded for a wait that was too
// long, and Canceled; and those of the run.
func (s *Scheduler) Do(ctx context.Context, r Request) (Outcome, error) {
	it := s.items.Get().(*item)
	it.Request, it.ctx, it.entered = r, ctx, time.Now()
	defer s.forget(it)
	lead, err := s.enter(it)
	if err != nil {
		return Outcome{}, err
	}
	if !lead {
		sig, err := s.wait(it)
		if err != nil || !sig.lead {
			return sig.out, err
		}
	}
	return s.lead(it)
}

// enter takes a slot or a place in the queue.
func (s *Scheduler) enter(it *item) (lead bool, err error) {
	level := it.Priority
	if level == 0 {
		level = s.config.DefaultLevel
	}
	if level < 1 || level > s.config.Levels {
		return false, inference.Errorf(inference.InvalidArgument, "priority %d: the model has the levels 1 to %d", it.Priority, s.config.Levels)
	}
	it.level = level - 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countArrival(it.entered)
	s.countCrowd(s.free < s.config.Slots || s.waiting > 0)
	if s.free > 0 && s.waiting == 0 && s.leader == nil {
		s.free--
		return true, nil
	}
	if p := s.policy(it.level); p.MaxQueue > 0 && len(s.levels[it.level]) >= p.MaxQueue {
		return false, &inference.Error{
			Kind:       inference.ResourceExhausted,
			Msg:        "the model's queue is full",
			RetryAfter: max(s.fit.cost(float64(s.waiting)), time.Second),
		}
	}
	it.queued = true
	s.levels[it.level] = append(s.levels[it.level], it)
	s.waiting++
	if s.leader != nil {
		select {
		case s.leader.more <- struct{}{}:
		default: // told already
		}
	} else if s.free > 0 { // one who waited with a slot has just gone
		s.promote()
	}
	return false, nil
}

func (s *Scheduler) policy(level int) Policy {
	return s.config.Policies[min(level, len(s.config.Policies)-1)]
}

// timeout returns how long an item may wait in the queue; 0 for no bound.
func (s *Scheduler) timeout(it *item) time.Duration {
	p := s.policy(it.level)
	if p.Override && it.Timeout > 0 && (p.Timeout == 0 || it.Timeout < p.Timeout) {
		return it.Timeout
	}
	return p.Timeout
}

// wait waits for a signal, for the end of the item's context, or for its timeout. Both
// count in the queue only.
func (s *Scheduler) wait(it *item) (signal, error) {
	var expired <-chan time.Time
	if d := s.timeout(it); d > 0 {
		t := time.NewTimer(d - time.Since(it.entered))
		defer t.Stop()
		expired = t.C
	}
	var end *inference.Error
	select {
	case sig := <-it.signals:
		return sig, sig.err
	case <-it.ctx.Done():
		end = inference.AsError(it.ctx.Err())
	case <-expired:
		end = inference.Errorf(inference.DeadlineExceeded, "the request's timeout of %v is over before it could begin", s.timeout(it))
	}
	if s.leave(it) {
		return signal{}, end
	}
	sig := <-it.signals // chosen meanwhile: the run reads the data
	switch {
	case end.Kind != inference.Canceled:
		return sig, sig.err // it has begun in time, near enough
	case sig.lead:
		s.passOn()
	case sig.err == nil:
		sig.out.Result.Release()
	}
	return signal{}, end
}

// leave takes an item out of the queue; false if it is not there any more.
func (s *Scheduler) leave(it *item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !it.queued {
		return false
	}
	q := s.levels[it.level]
	for i := range q {
		if q[i] == it {
			copy(q[i:], q[i+1:])
			q[len(q)-1] = nil
			s.levels[it.level] = q[:len(q)-1]
			break
		}
	}
	it.queued = false
	s.waiting--
	return true
}

// passOn gives a slot to the first in the queue, or back.
func (s *Scheduler) passOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.leader == nil {
		s.promote()
	}
}

// promote makes the first in the queue a leader with one of the free slots.
func (s *Scheduler) promote() {
	for l, q := range s.levels {
		if len(q) > 0 {
			first := q[0]
			q[0] = nil
			s.levels[l] = q[1:]
			first.queued = false
			s.waiting--
			s.free--
			first.signals <- signal{lead: true}
			return
		}
	}
}

// MaxRows returns how many rows a run has at most; 0 if each request runs alone.
func (s *Scheduler) MaxRows() int64 { return s.config.MaxRows }

// Waiting returns how many requests wait in the queue.
func (s *Scheduler) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}
