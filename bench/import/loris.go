package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/torchexport"
)

// stored is a tensor of a file.
type stored struct {
	shape ir.Shape
	data  []byte
}

// example is what a model is run on, and what PyTorch makes of it. Cotangents are of the results that are floats; with
// some, out has the gradients of the inputs that are floats behind the results.
type example struct{ in, cotangents, out []stored }

func readExample(path string) (*example, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e := &example{}
	for prefix, all := range map[string]*[]stored{"in": &e.in, "cotangent": &e.cotangents, "out": &e.out} {
		for {
			shape, data, err := tensorfile.Read(f, prefix+strconv.Itoa(len(*all)))
			if errors.Is(err, safetensors.ErrNotFound) {
				break
			}
			if err != nil {
				return nil, err
			}
			*all = append(*all, stored{shape, slices.Clone(data)})
		}
	}
	return e, nil
}

// off returns the largest difference of outputs to the example's over the largest element.
func (e *example) off(outs [][]byte) (float64, error) {
	if len(outs) != len(e.out) {
		return 0, fmt.Errorf("%d outputs, the file has %d", len(outs), len(e.out))
	}
	worst := 0.0
	for i, want := range e.out {
		if len(outs[i]) != len(want.data) {
			return 0, fmt.Errorf("output %d has %d bytes, the file's is %v", i, len(outs[i]), want.shape)
		}
		largest, d := 0.0, 0.0
		for k := range want.shape.Numel() {
			a, b := elements.Number(want.shape.DType(), outs[i], k), elements.Number(want.shape.DType(), want.data, k)
			if !math.IsInf(b, 0) && !math.IsNaN(b) {
				largest = max(largest, math.Abs(b))
			}
			if a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				d = max(d, math.Abs(a-b))
			}
		}
		if d > 0 {
			d /= largest
		}
		worst = max(worst, d)
	}
	return worst, nil
}

// timed returns a turn of runs of f.
func timed(s settings, f func(ctx context.Context) error) func(context.Context, time.Duration) (median, least int64, err error) {
	return func(ctx context.Context, d time.Duration) (median, least int64, err error) {
		// One more than compute, for the Go runtime's own goroutines.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.threads + 1))
		var times []int64
		for end := time.Now().Add(d); len(times) == 0 || time.Now().Before(end); {
			begin, err := s.clock()
			if err == nil {
				err = f(ctx)
			}
			if err != nil {
				return 0, 0, err
			}
			now, err := s.clock()
			if err != nil {
				return 0, 0, err
			}
			times = append(times, now-begin)
		}
		slices.Sort(times)
		return times[len(times)/2], times[0], nil
	}
}

// openPackage runs what AOTInductor compiled.
func openPackage(ctx context.Context, s settings, e *example, base string) (*system, error) {
	begin := time.Now()
	r, err := aoti.Load(ctx, base+".aoti.pt2", aoti.Threads(s.threads))
	if err != nil {
		return nil, err
	}
	x := &system{name: "AOTI in Loris", load: time.Since(begin), close: r.Close}
	in := make([]aoti.Buffer, len(e.in))
	for i, t := range e.in {
		if in[i], err = aoti.FromBytes(t.data, t.shape.DType(), t.shape.Dims()...); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	out, err := r.Run(ctx, in...)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	data := make([][]byte, len(out))
	for i, b := range out {
		if data[i], err = b.Bytes(ctx); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	x.off, err = e.off(data)
	x.turn = timed(s, func(ctx context.Context) error { return r.RunInto(ctx, in, out) })
	return x, err
}

func openProgram(ctx context.Context, s settings, e *example, base string) (*system, error) {
	return openModel(ctx, s, e, "torchexport, compiled", true, func(m loris.Maker) (callable, error) {
		return torchexport.Load(ctx, base+".pt2", torchexport.With(m))
	})
}

func openRecorded(ctx context.Context, s settings, e *example, base string) (*system, error) {
	return openModel(ctx, s, e, "torchexport, recorded", false, func(m loris.Maker) (callable, error) {
		return torchexport.Load(ctx, base+".pt2", torchexport.With(m))
	})
}

func openONNX(ctx context.Context, s settings, e *example, base string) (*system, error) {
	return openModel(ctx, s, e, "onnx, compiled", true, func(m loris.Maker) (callable, error) {
		return onnx.Load(ctx, base+".onnx", onnx.With(m))
	})
}

// callable is an imported model.
type callable interface {
	model.Model
	Forward(inputs ...*loris.Tensor) []*loris.Tensor
}

// openModel loads a model into a session of its own. Compiled ones are traced once; others are recorded anew for each run.
func openModel(ctx context.Context, s settings, e *example, name string, compiled bool, load func(loris.Maker) (callable, error)) (*system, error) {
	session, err := loris.New(loris.WithThreads(s.threads))
	if err != nil {
		return nil, err
	}
	x := &system{name: name, close: func() error { return session.Close(context.WithoutCancel(ctx)) }}
	begin := time.Now()
	m, err := load(session.With())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), x.close())
	}
	x.load = time.Since(begin)
	in := make([]*loris.Tensor, 0, len(e.in)+len(e.cotangents))
	for _, t := range slices.Concat(e.in, e.cotangents) {
		in = append(in, session.With().FromBytes(t.data, t.shape))
	}
	forward, call := m.Forward, m.Call
	if len(e.cotangents) > 0 {
		forward = withGradients(m.Forward, len(e.in))
		call = func(_ context.Context, in ...*loris.Tensor) ([]*loris.Tensor, error) { return forward(in...), nil }
	}
	if compiled {
		call = loris.Compile(forward).Call
	}
	once := func(ctx context.Context) (outs []*loris.Tensor, err error) {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case *loris.OpError:
				outs, err = nil, r
			default:
				panic(r)
			}
		}()
		outs, err = call(ctx, in...)
		if err != nil {
			return nil, err
		}
		if err := session.MarkStep(ctx); err != nil {
			return nil, err
		}
		for _, o := range outs {
			if err := o.Wait(ctx); err != nil {
				return nil, err
			}
		}
		return outs, nil
	}
	outs, err := once(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), x.close())
	}
	data, err := loris.Fetch(ctx, outs...)
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	x.off, err = e.off(data)
	x.turn = timed(s, func(ctx context.Context) error {
		outs, err := once(ctx)
		for _, o := range outs {
			o.Release() // as Python drops what the last run returned
		}
		return err
	})
	return x, err
}

// withGradients returns a function whose results are those of f on its first n inputs and the gradients of these that are
// floats; the other inputs are the cotangents.
func withGradients(f func(...*loris.Tensor) []*loris.Tensor, n int) func(...*loris.Tensor) []*loris.Tensor {
	return func(in ...*loris.Tensor) []*loris.Tensor {
		outs := f(in[:n]...)
		var of []*loris.Tensor
		for _, o := range outs {
			if o.DType().IsFloat() {
				of = append(of, o)
			}
		}
		var wrt []any
		for _, x := range in[:n] {
			if x.DType().IsFloat() {
				wrt = append(wrt, x)
			}
		}
		return append(outs, loris.GradOf(of, in[n:], wrt...)...)
	}
}
