package batch

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/loris-ml/loris/serve/internal/model"
)

// lead runs a batch that begins with it, whose slot the caller has, tells the others
// what came of it, and passes the slot on.
func (s *Scheduler) lead(it *item) (Outcome, error) {
	var few [8]*item
	items := s.collect(it, few[:0])
	defer s.passOn()
	ctx := it.ctx
	if len(items) > 1 { // the leader's end is not that of the others
		ctx = context.WithoutCancel(ctx)
	}
	started := time.Now()
	works := it.works[:0]
	rows := int64(0)
	for _, other := range items {
		works = append(works, other.Work)
		rows += other.Work.Rows
	}
	result, err := s.run(ctx, works...)
	if err == nil {
		s.mu.Lock()
		took := result.Input + result.Infer + result.Output
		s.fit.add(float64(max(rows, 1)), took)
		s.sizes.add(rows, took)
		s.mu.Unlock()
	}
	if err != nil && len(items) > 1 {
		return s.alone(items, started)
	}
	var own signal
	for i, other := range items {
		sig := signal{err: err}
		if err == nil {
			sig.out = Outcome{Outputs: result.Outputs[i], Result: result, Queue: started.Sub(other.entered), Rows: rows, First: i == 0}
		}
		if i == 0 {
			own = sig
		} else {
			other.signals <- sig
		}
	}
	return own.out, own.err
}

// PanicError is a run that panicked. Those whose requests it had are told as of any failure.
type PanicError struct {
	Value any
	Stack []byte
}

// Error says what the model panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("the model panicked: %v", e.Value) }

func (s *Scheduler) run(ctx context.Context, works ...*model.Work) (_ *model.Result, err error) {
	ended := false
	defer func() {
		if !ended {
			err = &PanicError{recover(), debug.Stack()}
		}
	}()
	result, err := s.runner.Run(ctx, works...)
	ended = true
	return result, err
}

// alone runs each item by itself, after the run of all of them has failed: a request
// that a model refuses is no reason to refuse others.
func (s *Scheduler) alone(items []*item, started time.Time) (Outcome, error) {
	var own signal
	for i, it := range items {
		result, err := s.run(context.WithoutCancel(it.ctx), it.Work)
		sig := signal{err: err}
		if err == nil {
			sig.out = Outcome{Outputs: result.Outputs[0], Result: result, Queue: started.Sub(it.entered), Rows: it.Work.Rows, First: true}
		}
		if i == 0 {
			own = sig
		} else {
			it.signals <- sig
		}
	}
	return own.out, own.err
}

// collect returns the items of the leader's run: itself and those of the queue that fit.
// It waits for more of them as long as the delay allows and that pays.
func (s *Scheduler) collect(it *item, items []*item) []*item {
	items = append(items, it)
	if s.config.MaxRows == 0 {
		return items
	}
	rows := it.Work.Rows
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untried++; s.crowd > crowded || s.untried >= tryCrowd {
		s.untried = 0
		s.mu.Unlock()
		runtime.Gosched() // to those whose requests have arrived and are not read yet
		s.mu.Lock()
		if s.waiting > 0 {
			s.crowd = 1
		}
	}
	var timer *time.Timer
	for {
		target := s.target(rows)
		var full bool
		items, rows, full = s.take(items, rows, target)
		left := s.config.Delay - time.Since(it.entered)
		if full || rows >= target && s.preferred(rows) || rows >= s.config.MaxRows || left <= 0 || s.leader != nil || !s.pays(rows) {
			break
		}
		if timer == nil {
			timer = time.NewTimer(left)
			defer timer.Stop()
			it.more = make(chan struct{}, 1)
		}
		s.leader = it
		s.mu.Unlock()
		expired := false
		select {
		case <-it.more:
		case <-timer.C:
			expired = true
		case <-it.ctx.Done():
			expired = true
		}
		s.mu.Lock()
		s.leader = nil
		if expired {
			items, _, _ = s.take(items, rows, s.config.MaxRows)
			break
		}
	}
	if s.free > 0 && s.waiting > 0 && s.leader == nil {
		s.promote() // what did not fit need not wait for this run
	}
	return items
}

// target returns how many rows a run should have: the largest preferred number that
// is there, or as many as fit, unless smaller runs cost less.
func (s *Scheduler) target(rows int64) int64 {
	there := rows
	for _, q := range s.levels {
		for _, it := range q {
			there += it.Work.Rows
		}
	}
	best := int64(0)
	for _, p := range s.config.Preferred {
		if p <= there && p > best {
			best = p
		}
	}
	if best > 0 {
		return best
	}
	if n := s.sizes.best(min(there, s.config.MaxRows)); n < there {
		return n
	}
	return s.config.MaxRows
}

func (s *Scheduler) preferred(rows int64) bool {
	for _, p := range s.config.Preferred {
		if p == rows {
			return true
		}
	}
	return false
}

// take moves items of the queue to a batch of rows, in their order and by priority, up to
// target rows. full says that the next one does not fit: nobody overtakes it.
func (s *Scheduler) take(items []*item, rows, target int64) (_ []*item, _ int64, full bool) {
	for l := range s.levels {
		for len(s.levels[l]) > 0 {
			next := s.levels[l][0]
			if rows+next.Work.Rows > target || !model.Compatible(items[0].Work, next.Work) {
				return items, rows, true
			}
			s.levels[l][0] = nil
			s.levels[l] = s.levels[l][1:]
			next.queued = false
			s.waiting--
			items = append(items, next)
			rows += next.Work.Rows
		}
	}
	return items, rows, false
}

// pays reports whether waiting for one more request is worth the time of those with the
// given rows: its run would cost what a run costs whatever its rows, and they lose
// the time until it comes.
func (s *Scheduler) pays(rows int64) bool {
	base, ok := s.fit.base()
	return !ok || s.gap == 0 || float64(max(rows, 1))*s.gap < base
}

// crowded is the share of requests that meet others from which on a run lets those come in first that
// are about to. Nobody waits for that: who could run has a turn before the leader, and if nobody can,
// he goes on. On one processor requests do not meet by themselves, so one of tryCrowd runs tries it.
const (
	crowded  = 1. / 16
	tryCrowd = 64
)

// countCrowd smooths whether requests meet others.
func (s *Scheduler) countCrowd(met bool) {
	const weight = 1. / 32
	now := 0.
	if met {
		now = 1
	}
	s.crowd += weight * (now - s.crowd)
}

// countArrival smooths the time between arrivals.
func (s *Scheduler) countArrival(now time.Time) {
	if !s.arrived.IsZero() {
		const weight = 0.1
		gap := now.Sub(s.arrived).Seconds()
		if s.gap == 0 {
			s.gap = gap
		}
		s.gap += weight * (gap - s.gap)
	}
	s.arrived = now
}
