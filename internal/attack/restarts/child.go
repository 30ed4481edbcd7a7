//go:build linux

package restarts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/attack/libraries"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/tensorboard"
)

// What lies in the directory.
const (
	cacheDir, eventsDir, checkpoint = "cache", "events", "weights.safetensors"
)

// Child is what a process is told.
type Child struct {
	Dir     string
	Seed    uint64
	Fault   Fault
	Amount  uint64 // decides how little there is, and from when on
	Time    time.Duration
	Package string
}

// Strings returns the Child as arguments of a command.
func (c Child) Strings() []string {
	return []string{c.Dir, fmt.Sprint(c.Seed), strconv.Itoa(int(c.Fault)), fmt.Sprint(c.Amount), c.Time.String(), c.Package}
}

// ParseChild is the opposite of Strings.
func ParseChild(args []string) (c Child, err error) {
	if len(args) != 6 {
		return c, errors.New("a child has 6 arguments")
	}
	fault := 0
	c.Dir, c.Package = args[0], args[5]
	_, err = fmt.Sscan(args[1]+" "+args[2]+" "+args[3], &c.Seed, &fault, &c.Amount)
	c.Fault = Fault(fault)
	d, timeErr := time.ParseDuration(args[4])
	c.Time = d
	return c, errors.Join(err, timeErr)
}

// work is a process at work.
type work struct {
	Child
	out    io.Writer
	outMu  sync.Mutex
	counts atomicCounts
	s      *loris.Session
	w      *loris.Variable // each element is the number of steps
	step   int64
}

// Run works until the time is over, and says on out what it does. Errors of the system that follow
// from the Fault are counted; the error is of anything else.
func (c Child) Run(ctx context.Context, out io.Writer) error {
	w := &work{Child: c, out: out}
	delay := time.Duration(c.Amount>>8%uint64(c.Time/2+1)) * time.Duration(c.Amount>>4&1) // or at once
	if delay == 0 {
		if err := c.limit(); err != nil {
			return err
		}
	}
	err := w.all(ctx, delay)
	if w.harmless(err) {
		err = nil
	}
	w.say("steps %d saves %d loads %d numbers %d errors %d times %d", w.counts.steps.Load(), w.counts.saves.Load(), w.counts.loads.Load(), w.counts.numbers.Load(), w.counts.errors.Load(), w.counts.jumps.Load())
	w.say("end 0")
	return err
}

// all does all at once. What fails before the work begins ends the process, as users' would.
func (w *work) all(ctx context.Context, delay time.Duration) (err error) {
	if w.s, err = loris.New(loris.WithSeed(w.Seed), loris.WithDiskCache(filepath.Join(w.Dir, cacheDir))); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.s.Close(context.Background())) }()
	w.w = loris.NewVariable(w.s.With().Full(0.0, 300))
	if err := w.restore(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, w.Time)
	defer cancel()
	for i, loop := range []func(context.Context, *rand.Rand) error{w.train, w.compute, w.compute, w.load, w.log} {
		rng := rand.New(rand.NewPCG(w.Seed, uint64(i)))
		group.Go(func() error {
			for ctx.Err() == nil {
				err := loop(ctx, rng)
				if err != nil && ctx.Err() == nil && !w.harmless(err) {
					return fmt.Errorf("loop %d: %w", i, err)
				}
			}
			return nil
		})
	}
	if delay > 0 {
		group.Go(func() error {
			time.Sleep(delay)
			return w.limit()
		})
	}
	if w.Fault == Jumps {
		installClock()
		group.Go(func() error { return w.jump(ctx) })
	}
	return group.Wait()
}

// harmless reports whether an error is one of the system that follows from the Fault, and counts it.
func (w *work) harmless(err error) bool {
	if err == nil || !w.Fault.explains(err) {
		return false
	}
	w.counts.errors.Add(1)
	return true
}

func (w *work) say(format string, args ...any) {
	w.outMu.Lock()
	defer w.outMu.Unlock()
	fmt.Fprintf(w.out, format+"\n", args...)
}

func (w *work) checkpoint() *optim.Checkpoint {
	return &optim.Checkpoint{Model: weights{w.w}, Session: w.s, Step: w.step}
}

// restore loads what the last process has saved, if one has.
func (w *work) restore(ctx context.Context) error {
	c := w.checkpoint()
	err := c.Load(ctx, filepath.Join(w.Dir, checkpoint))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.step = c.Step
	w.say("loaded %d", w.step)
	return w.check(ctx)
}

// check reads the weights, which are the number of steps, and small enough to be exact.
func (w *work) check(ctx context.Context) error {
	got, err := loris.Read[float32](ctx, w.w.Value())
	if err != nil {
		return err
	}
	for i, x := range got {
		if x != float32(w.step) {
			return fmt.Errorf("after step %d element %d is %v", w.step, i, x)
		}
	}
	w.counts.numbers.Add(1)
	return nil
}

// train takes a step, and now and then saves it. A step that fails leaves the weights as they were,
// or says that they are lost.
func (w *work) train(ctx context.Context, rng *rand.Rand) error {
	err := w.s.Step(ctx, func() error {
		w.w.Assign(w.w.Value().Add(1))
		return nil
	})
	if err == nil {
		err = w.s.WaitDeviceOps(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		w.step++
		w.counts.steps.Add(1)
	case !w.harmless(err):
		return fmt.Errorf("step: %w", err)
	}
	if err := w.check(ctx); err != nil {
		if w.Fault.explains(err) && ctx.Err() == nil { // the values are lost
			w.w.Assign(w.s.With().Full(float64(w.step), 300))
		}
		return err
	}
	if rng.IntN(8) > 0 {
		return nil
	}
	w.say("begun %d", w.step)
	if err := w.checkpoint().Save(context.WithoutCancel(ctx), filepath.Join(w.Dir, checkpoint)); err != nil {
		return err
	}
	w.say("saved %d", w.step)
	w.counts.saves.Add(1)
	return nil
}

// compute compiles a graph that is new most times, whose code goes to the disk, and checks its number.
func (w *work) compute(ctx context.Context, rng *rand.Rand) error {
	fork := w.s.Fork()
	n := 1 + rng.IntN(40)
	x := fork.With().Arange(0, n, 1).Cast(loris.F32)
	model := make([]float32, n)
	for i := range model {
		model[i] = float32(i)
	}
	each := func(f func(float32) float32) {
		for i := range model {
			model[i] = f(model[i])
		}
	}
	for range rng.IntN(7) {
		k := float32(rng.IntN(5))
		switch rng.IntN(5) {
		case 0:
			x = x.Add(k)
			each(func(v float32) float32 { return v + k })
		case 1:
			x = x.Mul(2)
			each(func(v float32) float32 { return 2 * v })
		case 2:
			x = x.Neg()
			each(func(v float32) float32 { return -v })
		case 3:
			x = x.Abs()
			each(func(v float32) float32 { return max(v, -v) })
		default:
			x = x.ClampMin(k)
			each(func(v float32) float32 { return max(v, k) })
		}
	}
	got, err := loris.Read[float32](ctx, x)
	if err != nil {
		return err
	}
	for i := range got {
		if got[i] != model[i] {
			return fmt.Errorf("compute: got %v, want %v", got, model)
		}
	}
	w.counts.numbers.Add(1)
	return nil
}

// load loads a compiled package, where that can be, and closes it.
func (w *work) load(ctx context.Context, _ *rand.Rand) error {
	if !libraries.Supported {
		<-ctx.Done()
		return nil
	}
	r, err := aoti.Load(ctx, w.Package)
	if err != nil {
		return err
	}
	w.counts.loads.Add(1)
	return r.Close()
}

// log writes an event file.
func (w *work) log(_ context.Context, rng *rand.Rand) error {
	dir := filepath.Join(w.Dir, eventsDir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	t, err := tensorboard.Create(dir)
	if err != nil {
		return err
	}
	for i := range int64(rng.IntN(200)) {
		err = errors.Join(err, t.Scalar("loss", i, float64(i)))
	}
	time.Sleep(time.Millisecond)
	return errors.Join(err, t.Close())
}

// jump sets the clock back and ahead, by seconds to decades, until the context ends.
func (w *work) jump(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(w.Seed, 99))
	for {
		seconds := rng.Int64N(1 << (1 + rng.IntN(30)))
		if rng.IntN(2) == 0 {
			seconds = -seconds
		}
		setAhead(seconds)
		w.counts.jumps.Add(1)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(rng.IntN(20)) * time.Millisecond):
		}
	}
}

// weights is a module of one variable.
type weights struct{ w *loris.Variable }

func (m weights) Params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) { yield("w", m.w) }
}

func (weights) Buffers() iter.Seq2[string, *loris.Variable] {
	return func(func(string, *loris.Variable) bool) {}
}

func (weights) SetTraining(bool) {}

type atomicCounts struct{ steps, saves, loads, numbers, errors, jumps atomic.Int64 }
