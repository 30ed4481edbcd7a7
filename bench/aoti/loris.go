package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/ir"
)

// ours is a package loaded in this process.
type ours struct {
	runner  *aoti.Runner
	inputs  []aoti.Buffer
	outputs []aoti.Buffer
	load    time.Duration
	threads int
}

func openLoris(ctx context.Context, path string, in []input, threads int) (*ours, error) {
	o := &ours{threads: threads}
	for i, one := range in {
		b, err := tensor(one)
		if err != nil {
			return nil, fmt.Errorf("in%d: %w", i, err)
		}
		o.inputs = append(o.inputs, b)
	}
	begin := time.Now()
	r, err := aoti.Load(ctx, path, aoti.Threads(threads))
	if err != nil {
		return nil, err
	}
	o.runner, o.load = r, time.Since(begin)
	// The first run makes the outputs that further ones are written to.
	if o.outputs, err = r.Run(ctx, o.inputs...); err != nil {
		return nil, fmt.Errorf("%w; %w", err, r.Close())
	}
	return o, nil
}

// tensor returns an input as the runner takes it.
func tensor(in input) (aoti.Buffer, error) {
	dtype, err := ir.ParseDType(strings.ToLower(string(in.info.DType)))
	if err != nil {
		return nil, err
	}
	dims := make([]int, len(in.info.Shape))
	for i, d := range in.info.Shape {
		dims[i] = int(d)
	}
	return aoti.FromBytes(in.data, dtype, dims...)
}

// turn runs the package for a while and returns the median nanoseconds of a run.
func (o *ours) turn(ctx context.Context, d time.Duration) (int64, error) {
	// One more than compute: with none to spare the Go runtime's monitor would look
	// for one every 20 µs.
	before := runtime.GOMAXPROCS(max(o.threads, 1) + 1)
	defer runtime.GOMAXPROCS(before)
	times := make([]int64, 0, 1<<16)
	for end := time.Now().Add(d); ; {
		begin := time.Now()
		if err := o.runner.RunInto(ctx, o.inputs, o.outputs); err != nil {
			return 0, err
		}
		now := time.Now()
		times = append(times, now.Sub(begin).Nanoseconds())
		if now.After(end) {
			slices.Sort(times)
			return times[len(times)/2], nil
		}
	}
}

func (o *ours) close() error { return o.runner.Close() }
