// Package chaos runs everything at once, from many goroutines, and checks every number that it reads
// against a model: training that fails at random, servers on forks, sessions that come and go,
// compiled functions of many sizes, and containers whose constants are swapped while they run.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/attack/held"
)

// Options say how Run runs.
type Options struct {
	// Seed decides what each goroutine does; when, the machine does.
	Seed uint64
	Time time.Duration
	// Goroutines is the number of each kind of worker.
	Goroutines int
	// Only are the kinds of worker that work; all if it is empty.
	Only []string
}

// Kinds are the names of the kinds of worker.
var Kinds = []string{"train", "serve", "compute", "call", "sessions", "storm"}

// Counts are what was done, and checked.
type Counts struct {
	Steps, FailedSteps     atomic.Int64
	Reads, Snapshots       atomic.Int64
	Requests, BadRequests  atomic.Int64
	Calls, Sessions        atomic.Int64
	Swaps, Runs, SavedRuns atomic.Int64
	Cancelled              atomic.Int64
}

// Row is one of the Counts.
type Row struct {
	What  string
	Count int64
}

// Rows returns the counts with what each is of.
func (c *Counts) Rows() []Row {
	return []Row{
		{"steps committed", c.Steps.Load()},
		{"steps that failed as they should", c.FailedSteps.Load()},
		{"reads of variables, none torn", c.Reads.Load()},
		{"of them by snapshots", c.Snapshots.Load()},
		{"requests answered", c.Requests.Load()},
		{"requests refused for their index", c.BadRequests.Load()},
		{"calls of compiled functions", c.Calls.Load()},
		{"sessions made and closed", c.Sessions.Load()},
		{"swaps of constants", c.Swaps.Load()},
		{"runs beside swaps", c.Runs.Load()},
		{"of saved sets", c.SavedRuns.Load()},
		{"contexts cancelled", c.Cancelled.Load()},
	}
}

// run is what the workers share.
type run struct {
	Options
	c   *Counts
	s   *loris.Session
	a   *loris.Variable // each element is the number of steps
	b   *loris.Variable // each element is twice that of a
	tab *loris.Variable // element i is i
	// begun and done are the steps that may, and that must, have been committed.
	begun, done atomic.Int64
}

const width = 64

// Run lets the workers work until the time is over or one finds what must not be. It then closes
// all, and compares what is left with what there was before.
func Run(ctx context.Context, o Options, c *Counts) error {
	before := held.Now()
	if err := work(ctx, o, c); err != nil {
		return err
	}
	return held.Back(before)
}

func work(ctx context.Context, o Options, c *Counts) (err error) {
	s, err := loris.New(loris.WithSeed(o.Seed))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(context.Background())) }()
	in := s.With()
	index := make([]float32, width)
	for i := range index {
		index[i] = float32(i)
	}
	r := &run{Options: o, c: c, s: s,
		a: loris.NewVariable(in.Full(0.0, width)), b: loris.NewVariable(in.Full(0.0, width)), tab: loris.NewVariable(in.FromSlice(index))}
	if err := s.MarkStep(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	for i, kind := range []struct {
		n    int
		loop func(ctx context.Context, rng *rand.Rand) error
	}{{1, r.train}, {o.Goroutines, r.serve}, {o.Goroutines, r.compute}, {o.Goroutines, r.call}, {o.Goroutines, r.sessions}, {1, r.storm}} {
		if len(o.Only) > 0 && !slices.Contains(o.Only, Kinds[i]) {
			continue
		}
		for j := range kind.n {
			rng := rand.New(rand.NewPCG(o.Seed, uint64(i+1)<<32|uint64(j)))
			group.Go(func() error {
				if err := guard(func() error { return kind.loop(ctx, rng) }); err != nil {
					return fmt.Errorf("%s, worker %d: %w", Kinds[i], j, err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// guard makes a panic an error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 8<<10)
			err = fmt.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
		}
	}()
	return fn()
}

// over reports whether a loop ends; what fails because of that is no fault.
func over(ctx context.Context) bool { return ctx.Err() != nil }

var errOwn = errors.New("the step's own error")

// train steps a and b, and fails in many ways, after each of which they are what they were.
func (r *run) train(ctx context.Context, rng *rand.Rand) error {
	for !over(ctx) {
		fault := rng.IntN(8)
		step, cancel := context.WithCancel(ctx)
		want := r.begun.Add(1)
		err := r.s.Step(step, func() error {
			a := r.a.Value().Add(1)
			r.a.Assign(a)
			r.b.Assign(a.Mul(2))
			switch fault {
			case 0:
				return errOwn
			case 1:
				cancel()
			}
			return nil
		})
		cancel()
		switch {
		case err == nil && fault == 0:
			return errors.New("a Step whose function fails returned nil")
		case err == nil:
			r.c.Steps.Add(1)
			r.done.Store(want)
		case over(ctx):
			return nil
		case fault == 0 && errors.Is(err, errOwn), fault == 1 && errors.Is(err, context.Canceled):
			r.c.FailedSteps.Add(1)
			r.begun.Add(-1)
		default:
			return fmt.Errorf("step: %w", err)
		}
		if rng.IntN(16) == 0 {
			if err := r.badGraph(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// badGraph marks a step with a run that fails, of which the variables take nothing.
func (r *run) badGraph(ctx context.Context) error {
	in := r.s.With()
	bad := r.tab.Value().Gather(0, in.FromSlice([]int64{width}))
	_, err := loris.Read[float32](ctx, bad)
	if over(ctx) {
		return nil
	}
	if !errors.Is(err, loris.ErrIndex) {
		return fmt.Errorf("reading a bad index in training: %w", wrongError(err))
	}
	r.c.BadRequests.Add(1)
	return nil
}

// serve reads the variables from forks, alone and by snapshots.
func (r *run) serve(ctx context.Context, rng *rand.Rand) error {
	fork := r.s.Fork()
	last := float32(0)
	for !over(ctx) {
		low := float32(r.done.Load())
		var a, b *loris.Tensor
		if rng.IntN(2) == 0 {
			sn := fork.Snapshot(r.a, r.b)
			a, b = sn.Value(fork, r.a), sn.Value(fork, r.b)
			if rng.IntN(2) == 0 {
				sn.Release()
			}
			r.c.Snapshots.Add(1)
		} else {
			a, b = r.a.ValueIn(fork), r.b.ValueIn(fork)
		}
		both := a.Mul(4).Sub(b) // 2a
		got, err := loris.Fetch(ctx, both, a)
		if over(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		two, one := floats(got[0]), floats(got[1])
		for i := range one {
			if one[i] != one[0] || two[i] != 2*one[0] {
				return fmt.Errorf("torn: a is %v and 4a-b %v at %d, a is %v at 0", one[i], two[i], i, one[0])
			}
		}
		if one[0] < last || one[0] < low || one[0] > float32(r.begun.Load()) {
			return fmt.Errorf("a is %v after %v; %v steps were done, %v begun", one[0], last, low, r.begun.Load())
		}
		last = one[0]
		r.c.Reads.Add(1)
		if err := r.request(ctx, fork, rng); err != nil {
			return err
		}
	}
	return nil
}

// request gathers of the table: some requests have a bad index, some are cancelled.
func (r *run) request(ctx context.Context, fork *loris.Session, rng *rand.Rand) error {
	kind, n := rng.IntN(6), 1+rng.IntN(9)
	index := make([]int64, n)
	for i := range index {
		index[i] = int64(rng.IntN(width))
	}
	if kind == 0 {
		index[rng.IntN(n)] = width + int64(rng.IntN(1000))
	}
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	if kind == 1 {
		cancel()
	}
	got, err := loris.Read[float32](asked, r.tab.ValueIn(fork).Gather(0, fork.With().FromSlice(index)))
	switch {
	case over(ctx):
	case kind == 0 && errors.Is(err, loris.ErrIndex):
		r.c.BadRequests.Add(1)
	case kind == 1 && errors.Is(err, context.Canceled):
		r.c.Cancelled.Add(1)
	case kind == 0, err != nil:
		return fmt.Errorf("request of kind %d: %w", kind, wrongError(err))
	default:
		for i := range got {
			if got[i] != float32(index[i]) {
				return fmt.Errorf("request for %v got %v", index, got)
			}
		}
		r.c.Requests.Add(1)
	}
	return nil
}

func wrongError(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
