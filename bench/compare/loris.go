package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/bench/workloads"
)

// ours is a workload in this process.
type ours struct {
	session  *loris.Session
	instance *workloads.Instance
	threads  int
	batch    int // of runs that are timed together
	results  []float32
}

// openLoris makes a workload on a device and runs it as often as its results need.
func openLoris(ctx context.Context, w *workloads.Workload, d loris.Device, threads int) (*ours, error) {
	s, err := loris.New(append(slices.Clone(w.Session), loris.WithTrimNodes(-1), loris.WithDevice(d))...)
	if err != nil {
		return nil, err
	}
	o := &ours{session: s, threads: threads, batch: w.Batch(d != loris.CPU)}
	if err := o.open(ctx, w); err != nil {
		return nil, errors.Join(err, o.close(ctx))
	}
	return o, nil
}

func (o *ours) open(ctx context.Context, w *workloads.Workload) (err error) {
	defer o.limit()()
	if o.instance, err = w.Open(ctx, o.session); err != nil {
		return err
	}
	for range w.Runs {
		if err := o.instance.Run(ctx); err != nil {
			return err
		}
	}
	o.results, err = o.instance.Results(ctx)
	return err
}

// limit gives the process as many threads as the peers have until the returned
// function is called.
func (o *ours) limit() func() {
	before := runtime.GOMAXPROCS(max(o.threads, 1))
	return func() { runtime.GOMAXPROCS(before) }
}

// turn runs the workload for a while and returns the median nanoseconds of a run.
func (o *ours) turn(ctx context.Context, d time.Duration) (int64, error) {
	defer o.limit()()
	times := make([]int64, 0, 1<<12)
	for end := time.Now().Add(d); ; {
		begin := time.Now()
		for range o.batch {
			if err := o.instance.Start(ctx); err != nil {
				return 0, err
			}
		}
		if err := o.instance.Finish(ctx); err != nil {
			return 0, err
		}
		now := time.Now()
		times = append(times, now.Sub(begin).Nanoseconds()/int64(o.batch))
		if now.After(end) {
			return median(times), nil
		}
	}
}

// peak returns the most bytes of tensors in a run beyond those that were there,
// which are not the results of the run before.
func (o *ours) peak(ctx context.Context) (int64, error) {
	be, err := backend.For(cpu.Device)
	if err != nil {
		return 0, err
	}
	b, ok := be.(*cpu.Backend)
	if !ok {
		return 0, fmt.Errorf("the backend of %v is a %T", cpu.Device, be)
	}
	if f := o.instance.Forget; f != nil {
		f()
	}
	// Buffers that were dropped count until the collector has found them.
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	before := b.BytesInUse(cpu.Device)
	most := before
	b.Observe(func(cpu.Step) { most = max(most, b.BytesInUse(cpu.Device)) })
	defer b.Observe(nil)
	if err := o.instance.Run(ctx); err != nil {
		return 0, err
	}
	return most - before, nil
}

func (o *ours) close(ctx context.Context) error { return o.session.Close(context.WithoutCancel(ctx)) }

func median(t []int64) int64 {
	slices.Sort(t)
	return t[len(t)/2]
}
