//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
)

const (
	// tuneBudget is how long a compilation times products at most, by default.
	tuneBudget = 200 * time.Millisecond
	// tunedChoices is how many of cuBLASLt's proposals are timed.
	tunedChoices = 4
	tuneRounds   = 3
	// tuneRuns is how often a proposal runs in a round at most, and tuneTime how long
	// it runs about.
	tuneRuns = 8
	tuneTime = time.Millisecond
	// tuneGain is by how much a proposal must be faster than one before it: what is
	// about as fast is not worth other bits.
	tuneGain = 0.03
)

// TuneProducts says how long a compilation may time, on the device, in which of the
// ways that cuBLASLt proposes a product of matrices is fastest; 200 ms at first. What was
// timed is remembered for the device, and in artefacts. With 0, and in a session that
// is deterministic, the first proposal is taken. Proposals may add in different
// orders: which is the fastest may decide the last bits of results.
func (b *Backend) TuneProducts(budget time.Duration) { b.tune.Store(int64(budget)) }

// tuned are the choices that were found for products of a device.
type tuned struct {
	timing sync.Mutex // held by who times: one at a time

	mu   sync.Mutex
	best map[driver.MatmulSpec]int // guarded by mu
}

func (t *tuned) find(spec driver.MatmulSpec) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.best[spec]
	return c, ok
}

func (t *tuned) keep(spec driver.MatmulSpec, choice int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.best == nil {
		t.best = map[driver.MatmulSpec]int{}
	}
	t.best[spec] = choice
}

// tuner chooses the ways to compute the products of one compilation.
type tuner struct {
	d     *device
	until time.Time                 // when it stops to time; zero: it never starts
	kept  map[driver.MatmulSpec]int // choices of before
	used  map[driver.MatmulSpec]int // those that are remembered in the artefact
}

// newTuner returns the tuner of a compilation that starts now.
func (d *device) newTuner(fixed bool, kept map[driver.MatmulSpec]int) *tuner {
	t := &tuner{d: d, kept: kept, used: map[driver.MatmulSpec]int{}}
	if budget := d.backend.tune.Load(); budget > 0 && !fixed {
		t.until = time.Now().Add(time.Duration(budget))
	}
	return t
}

// choose returns the number of a product's choice.
func (t *tuner) choose(ctx context.Context, m *driver.Matmul, spec driver.MatmulSpec) (int, error) {
	n := min(len(m.Choices()), tunedChoices)
	if n == 1 || t.until.IsZero() {
		return 0, nil
	}
	c, known := t.d.tuned.find(spec)
	if !known {
		if c, known = t.kept[spec]; known && c < n {
			t.d.tuned.keep(spec, c)
		} else if known = false; time.Now().Before(t.until) {
			var err error
			if c, known, err = t.time(ctx, m, spec, n); err != nil {
				return 0, err
			}
		}
	}
	if !known {
		return 0, nil
	}
	t.used[spec] = c
	return c, nil
}

// time finds the fastest of the first n choices; known is false if that could not
// be told.
func (t *tuner) time(ctx context.Context, m *driver.Matmul, spec driver.MatmulSpec, n int) (choice int, known bool, err error) {
	t.d.tuned.timing.Lock()
	defer t.d.tuned.timing.Unlock()
	if c, ok := t.d.tuned.find(spec); ok {
		return c, true, nil // another compilation has just found it
	}
	within, cancel := context.WithDeadline(ctx, t.until)
	defer cancel()
	choice, err = t.d.fastest(within, m, spec, n)
	switch {
	case err == nil:
		t.d.tuned.keep(spec, choice)
		return choice, true, nil
	case ctx.Err() != nil:
		return 0, false, ctx.Err()
	case driver.IsLost(err):
		return 0, false, t.d.check(err)
	}
	// There is no time or no memory, or no choice runs: the first one is as good as any.
	return 0, false, nil
}

// fastest times choices on memory of their own.
func (d *device) fastest(ctx context.Context, m *driver.Matmul, spec driver.MatmulSpec, n int) (_ int, err error) {
	s, err := d.stream()
	if err != nil {
		return 0, err
	}
	defer d.putStream(s)
	args, bytes := layOut(m, spec, n)
	base, err := d.pool.Alloc(s, bytes) // what is short is not worth others' memory
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Free(base)) }()
	for _, p := range []*driver.DevicePtr{&args.A, &args.B, &args.D, &args.Bias, &args.ScaleA, &args.ScaleB, &args.Workspace} {
		*p += base
	}
	if !spec.Bias {
		args.Bias = 0
	}
	if !spec.ScaleRows {
		args.ScaleA, args.ScaleB = 0, 0
	}
	// Numbers near 1, for zeros take less power and so less time.
	if err := s.Set(base, 0x3c, 1, bytes); err != nil {
		return 0, err
	}
	w := stopwatch{s: s, m: m, args: args}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, e := range []**driver.Event{&w.start, &w.end} {
		if *e, err = d.ctx.NewEvent(true); err != nil {
			return 0, err
		}
	}
	return w.best(ctx, n)
}

// layOut returns where the operands are in memory of so many bytes.
func layOut(m *driver.Matmul, spec driver.MatmulSpec, n int) (args driver.MatmulArgs, bytes int64) {
	place := func(p *driver.DevicePtr, n int64) {
		*p = driver.DevicePtr(bytes)
		bytes += (n + steps.Alignment - 1) / steps.Alignment * steps.Alignment
	}
	batch := max(spec.Batch, 1)
	extent := func(x driver.Matrix, rows, cols int) int64 {
		if x.Trans {
			rows, cols = cols, rows
		}
		return int64((batch-1)*x.Stride+(rows-1)*max(x.LD, cols)+cols) * int64(x.Type.Size())
	}
	place(&args.A, extent(spec.A, spec.M, spec.K))
	place(&args.B, extent(spec.B, spec.K, spec.N))
	place(&args.D, extent(spec.D, spec.M, spec.N))
	place(&args.Bias, int64(spec.N*spec.D.Type.Size()))
	place(&args.ScaleA, int64(spec.M*driver.F32.Size()))
	place(&args.ScaleB, int64(spec.N*driver.F32.Size()))
	var most int64
	for _, c := range m.Choices()[:n] {
		most = max(most, c.Workspace)
	}
	place(&args.Workspace, most)
	args.Alpha = 1
	return args, bytes
}

// stopwatch times a product on the device.
type stopwatch struct {
	s          *driver.Stream
	m          *driver.Matmul
	args       driver.MatmulArgs
	start, end *driver.Event
}

func (w *stopwatch) close() error {
	var errs []error
	for _, e := range []*driver.Event{w.start, w.end} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// best returns the choice of the shortest time.
func (w *stopwatch) best(ctx context.Context, n int) (int, error) {
	shortest := make([]time.Duration, n)
	runs, rounds := tuneRuns, tuneRounds
	var refused error
	for round := -1; round < rounds; round++ {
		for c := range n {
			if shortest[c] < 0 {
				continue
			}
			times := runs
			if round < 0 {
				times = 1 // what is loaded when it first runs is no part of it
			}
			t, err := w.time(ctx, c, times)
			switch {
			case err != nil && (ctx.Err() != nil || driver.IsLost(err)):
				return 0, err
			case err != nil:
				shortest[c], refused = -1, err
			case round < 0 && t > tuneTime:
				rounds = 1
				runs = 1
			case round < 0 && t > 0:
				runs = min(runs, max(int(tuneTime/t), 1))
			case round == 0 || t < shortest[c]:
				shortest[c] = t
			}
		}
	}
	found := -1
	for c, t := range shortest {
		if t >= 0 && (found < 0 || float64(t) < float64(shortest[found])*(1-tuneGain)) {
			found = c
		}
	}
	if found < 0 {
		return 0, refused
	}
	return found, nil
}

// time returns how long a choice takes in one of several runs.
func (w *stopwatch) time(ctx context.Context, choice, runs int) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := w.start.Record(w.s); err != nil {
		return 0, err
	}
	w.args.Choice = choice
	for range runs {
		if err := w.m.Run(w.s, w.args); err != nil {
			return 0, err
		}
	}
	if err := w.end.Record(w.s); err != nil {
		return 0, err
	}
	if err := w.end.Wait(ctx); err != nil {
		return 0, err
	}
	t, err := w.end.Since(w.start)
	return t / time.Duration(runs), err
}
