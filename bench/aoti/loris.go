package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cuda" // packages for GPUs run on it
	"github.com/loris-ml/loris/internal/ir"
)

// ours is a package loaded in this process.
type ours struct {
	runner  *aoti.Runner
	inputs  []aoti.Buffer
	outputs []aoti.Buffer // of the last run
	load    time.Duration
	threads int
	batch   int  // of runs that are waited for together
	fresh   bool // runs make new outputs
}

// openLoris loads a package and runs it once.
func openLoris(ctx context.Context, path string, in []stored, threads int, s settings, opts ...aoti.Option) (*ours, error) {
	o := &ours{threads: threads, batch: s.batch, fresh: s.gpu() || s.export}
	for i, one := range in {
		b, err := placed(ctx, one, s.device)
		if err != nil {
			return nil, fmt.Errorf("in%d: %w", i, err)
		}
		o.inputs = append(o.inputs, b)
	}
	begin := time.Now()
	r, err := aoti.Load(ctx, path, append(opts, aoti.Device(s.device.String()), aoti.Threads(threads))...)
	if err != nil {
		return nil, err
	}
	o.runner, o.load = r, time.Since(begin)
	if o.outputs, err = r.Run(ctx, o.inputs...); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return o, nil
}

// placed returns a tensor on the device.
func placed(ctx context.Context, in stored, d ir.Device) (aoti.Buffer, error) {
	b, err := aoti.FromBytes(in.data, in.shape.DType(), in.shape.Dims()...)
	if err != nil || d.Type == b.Device().Type {
		return b, err
	}
	be, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	return be.Upload(ctx, in.shape, d, in.data)
}

// run runs the package once and may return before the device is done. PyTorch makes new outputs
// always. Here packages of PyTorch's on the CPU have theirs copied over those of the run before.
func (o *ours) run(ctx context.Context) error {
	if !o.fresh {
		return o.runner.RunInto(ctx, o.inputs, o.outputs)
	}
	outs, err := o.runner.Run(ctx, o.inputs...)
	if err != nil {
		return err
	}
	releaseAll(o.outputs)
	o.outputs = outs
	return nil
}

// finish waits for the last run, behind which there is nothing in the device's stream.
func (o *ours) finish(ctx context.Context) error {
	for _, b := range o.outputs {
		if a, ok := b.(backend.AsyncBuffer); ok {
			if err := a.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
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
		for range o.batch {
			if err := o.run(ctx); err != nil {
				return 0, err
			}
		}
		if err := o.finish(ctx); err != nil {
			return 0, err
		}
		now := time.Now()
		times = append(times, now.Sub(begin).Nanoseconds()/int64(o.batch))
		if now.After(end) {
			slices.Sort(times)
			return times[len(times)/2], nil
		}
	}
}

// results returns the elements of the outputs of the last run.
func (o *ours) results(ctx context.Context) ([][]byte, error) { return contents(ctx, o.outputs) }

func (o *ours) close() error {
	releaseAll(o.inputs)
	releaseAll(o.outputs)
	o.inputs, o.outputs = nil, nil
	return o.runner.Close()
}

// contents returns copies of the elements of tensors.
func contents(ctx context.Context, all []aoti.Buffer) ([][]byte, error) {
	out := make([][]byte, len(all))
	for i, b := range all {
		data, err := b.Bytes(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = slices.Clone(data)
	}
	return out, nil
}

func releaseAll(all []aoti.Buffer) {
	for _, b := range all {
		b.Release()
	}
}
