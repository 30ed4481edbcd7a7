package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// The load of --swap, and the instances that carry it.
const callers, instances = 8, 4

// swapping is a package under load whose outputs are known for two sets of constants.
type swapping struct {
	*ours
	like []stored // the outputs' shapes
	sets [2]map[string]aoti.Buffer
	want [2][][]byte

	runs, inexact, torn atomic.Int64
	swaps               int
}

// swapAll swaps the constants of all packages under load.
func swapAll(ctx context.Context, w io.Writer, s settings) error {
	var wrong []error
	for _, p := range s.packages {
		err := swapOne(ctx, w, p, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", p, err))
		}
	}
	return errors.Join(wrong...)
}

func swapOne(ctx context.Context, w io.Writer, path string, s settings) (err error) {
	e, err := readExample(beside(path))
	if err != nil {
		return err
	}
	o, err := openLoris(ctx, path, e.in, s.threads[0], s, aoti.Instances(instances))
	if err != nil {
		return err
	}
	l := &swapping{ours: o}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.prepare(ctx); err != nil {
		return err
	}
	if err := l.swapFor(ctx, s.swap); err != nil {
		return err
	}
	runs, torn := l.runs.Load(), l.torn.Load()
	fmt.Fprintf(w, "%s on %v: %d goroutines, %d instances, %v: %d runs, %d swaps, torn=%d, not the same bits=%d\n",
		name(path), s.device, callers, instances, s.swap, runs, l.swaps, torn, l.inexact.Load())
	if torn > 0 {
		return fmt.Errorf("%d of %d results are of no set of constants", torn, runs)
	}
	return nil
}

// prepare makes the second set and runs the package with each. The first set lies where the package has it, the second on the host.
func (l *swapping) prepare(ctx context.Context) (err error) {
	if l.sets[0], err = l.runner.ExtractConstants(ctx, aoti.Active, true); err != nil {
		return err
	}
	l.sets[1] = make(map[string]aoti.Buffer, len(l.sets[0]))
	for key, b := range l.sets[0] {
		data, err := b.Bytes(ctx)
		if err != nil {
			return err
		}
		shape := b.Shape()
		other := otherwise(shape.DType(), data)
		if l.sets[1][key], err = aoti.FromBytes(other, shape.DType(), shape.Dims()...); err != nil {
			return err
		}
	}
	for i := range l.sets {
		if err := l.activate(ctx, i); err != nil {
			return err
		}
		outs, err := l.runner.Run(ctx, l.inputs...)
		if err != nil {
			return err
		}
		if l.want[i], err = contents(ctx, outs); err != nil {
			return err
		}
		l.like = l.like[:0]
		for k, b := range outs {
			l.like = append(l.like, stored{b.Shape(), l.want[i][k]})
		}
		releaseAll(outs)
	}
	if l.near(l.want[0], 1) {
		return errors.New("both sets of constants give the same")
	}
	return nil
}

// otherwise returns the elements of a tensor in the opposite order, floats by half as
// large.
func otherwise(d ir.DType, data []byte) []byte {
	if d.IsFloat() {
		values := elements.DecodeFloats(d, data)
		slices.Reverse(values)
		for i := range values {
			values[i] /= 2
		}
		return elements.EncodeFloats(d, values)
	}
	out := make([]byte, 0, len(data))
	for i := len(data) - d.Size(); i >= 0; i -= d.Size() {
		out = append(out, data[i:i+d.Size()]...)
	}
	return out
}

// activate swaps set i in.
func (l *swapping) activate(ctx context.Context, i int) error {
	if err := l.runner.Update(ctx, l.sets[i], aoti.Inactive); err != nil {
		return err
	}
	return l.runner.Swap(ctx)
}

// swapFor runs and swaps as fast as it goes, at least once each, until the time is over or one
// of them fails.
func (l *swapping) swapFor(ctx context.Context, d time.Duration) error {
	group, ctx := errgroup.WithContext(ctx)
	end := time.Now().Add(d)
	repeat := func(work func() error) {
		group.Go(func() error {
			for {
				if err := work(); err != nil || !time.Now().Before(end) {
					return err
				}
			}
		})
	}
	for range callers {
		repeat(func() error { return l.once(ctx) })
	}
	repeat(func() error {
		l.swaps++
		return l.activate(ctx, l.swaps%2)
	})
	return group.Wait()
}

// once runs the package and looks which set the results are of.
func (l *swapping) once(ctx context.Context) error {
	outs, err := l.runner.Run(ctx, l.inputs...)
	if err != nil {
		return err
	}
	defer releaseAll(outs)
	got, err := contents(ctx, outs)
	if err != nil {
		return err
	}
	l.runs.Add(1)
	if slices.EqualFunc(got, l.want[0], bytes.Equal) || slices.EqualFunc(got, l.want[1], bytes.Equal) {
		return nil
	}
	l.inexact.Add(1)
	if !l.near(got, 0) && !l.near(got, 1) {
		l.torn.Add(1)
	}
	return nil
}

// near reports whether results are those of set i, but for the order of sums.
func (l *swapping) near(got [][]byte, i int) bool {
	for k, w := range l.want[i] {
		d := l.like[k].shape.DType()
		if !(distance(d, got[k], w) <= allowed(d)) {
			return false
		}
	}
	return true
}

func (l *swapping) close() error {
	for _, set := range l.sets {
		releaseAll(slices.Collect(maps.Values(set)))
	}
	return l.ours.close()
}
