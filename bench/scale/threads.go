package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/bench/limit"
	"github.com/loris-ml/loris/bench/workloads"
	"github.com/loris-ml/loris/internal/parallel"
)

// scale prints the table of workloads by threads.
func scale(ctx context.Context, w io.Writer, s settings) error {
	if len(s.workloads) == 0 {
		return nil
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	machines := make([]limit.Machine, len(s.threads))
	fmt.Fprintf(w, "%d processors\n", runtime.NumCPU())
	for i, n := range s.threads {
		machines[i] = limit.Measure(n, s.vectors)
		fmt.Fprintln(w, machines[i])
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "workload\tthreads\ttime\tspeed-up\tlinear\twork\tone thread\tlate\timbalance\toutside\tslower\tGB/s\tof stream\t")
	for _, load := range s.workloads {
		var first *sample
		for i, n := range s.threads {
			runtime.GOMAXPROCS(n)
			x, err := measure(ctx, load, s.time)
			if err != nil {
				return fmt.Errorf("%s: %w", load.Name, err)
			}
			x.threads = n
			if first == nil {
				first = x
			}
			x.row(tw, load.Name, first, machines[i])
		}
	}
	return tw.Flush()
}

// sample is what was seen of a workload on a number of threads.
type sample struct {
	threads int
	run     time.Duration // the median of a run that nobody looks at

	// What follows is the sum of runs that were observed.
	wall, steps time.Duration
	bytes       int64
	loops       time.Duration // in parallel loops
	cut         time.Duration // in loops, times the goroutines for which each was cut
	busy, late  time.Duration
}

// shares says where the time of all threads goes, as parts that add up to 1.
type shares struct{ work, single, late, imbalance, outside float64 }

func (x *sample) shares() shares {
	n := float64(x.threads)
	all := n * float64(max(x.wall, 1))
	serial := float64(max(x.steps-x.loops, 0)) // of kernels, on one goroutine
	return shares{
		work:   (float64(x.busy) + serial) / all,
		single: ((n-1)*serial + n*float64(x.loops) - float64(x.cut)) / all,
		late:   float64(x.late) / all,
		// What remains of loops is goroutines that wait for the others.
		imbalance: float64(x.cut-x.busy-x.late) / all,
		outside:   1 - float64(max(x.steps, x.loops))/float64(max(x.wall, 1)),
	}
}

// row prints a line of the table; first is the same workload on the least threads.
func (x *sample) row(w io.Writer, name string, first *sample, m limit.Machine) {
	h, one := x.shares(), first.shares()
	up := float64(first.run) / float64(max(x.run, 1))
	work := func(x *sample, h shares) float64 { return h.work * float64(x.threads) * float64(x.run) }
	perSecond := float64(x.bytes) / float64(max(x.wall, 1)) * float64(time.Second)
	fmt.Fprintf(w, "%s\t%d\t%v\t%.2f\t%.0f%%\t%.1f%%\t%.1f%%\t%.1f%%\t%.1f%%\t%.1f%%\t%.2f\t%.1f\t%.0f%%\t\n", name, x.threads, short(x.run), up,
		100*up*float64(first.threads)/float64(x.threads), 100*h.work, 100*h.single, 100*h.late, 100*h.imbalance, 100*h.outside,
		work(x, h)/max(work(first, one), 1), perSecond/1e9, 100*perSecond/max(m.Triad, m.Stream))
}

// short rounds a duration to three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// watching is held while loops and steps of this process are observed: there is one observer.
var watching sync.Mutex

// measure runs a workload in a session of its own, first for its time and then for where it goes.
func measure(ctx context.Context, load *workloads.Workload, long time.Duration) (_ *sample, err error) {
	be, err := backend.For(cpu.Device)
	if err != nil {
		return nil, err
	}
	b, ok := be.(*cpu.Backend)
	if !ok {
		return nil, fmt.Errorf("the backend of %v is a %T", cpu.Device, be)
	}
	session, err := loris.New(append(slices.Clone(load.Session), loris.WithTrimNodes(-1))...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	in, err := load.Open(ctx, session)
	if err != nil {
		return nil, err
	}
	for range 3 {
		if err := in.Run(ctx); err != nil {
			return nil, err
		}
	}
	x := &sample{}
	times, err := repeat(ctx, in, long)
	if err != nil {
		return nil, err
	}
	slices.Sort(times)
	x.run = times[len(times)/2]
	watching.Lock()
	defer watching.Unlock()
	var mu sync.Mutex
	b.Observe(func(s cpu.Step) {
		mu.Lock()
		defer mu.Unlock()
		x.steps += s.Duration
		x.bytes += s.Bytes
	})
	defer b.Observe(nil)
	parallel.Observe(func(l parallel.Loop) {
		mu.Lock()
		defer mu.Unlock()
		x.loops += l.Wall
		x.cut += time.Duration(l.Threads) * l.Wall
		x.busy += l.Busy
		x.late += l.Late
	})
	defer parallel.Observe(nil)
	times, err = repeat(ctx, in, long/2)
	for _, t := range times {
		x.wall += t
	}
	return x, err
}

// repeat runs a workload for some time, at least three times, and returns how long each run took.
func repeat(ctx context.Context, in *workloads.Instance, long time.Duration) (times []time.Duration, err error) {
	for begin := time.Now(); len(times) < 3 || time.Since(begin) < long; {
		start := time.Now()
		if err := in.Run(ctx); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}
