package export_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/nn"
)

// What a function assigns is state of the package, which goes on from run to run as the variables do
// here: the statistics of a batch norm, a counter, a cache, and a variable that is never read.
func TestAssignedVariablesAreState(t *testing.T) {
	ctx := context.Background()
	norm := nn.NewBatchNorm2d(3)
	count := loris.NewVariable(loris.With(loris.As(loris.I64)).Zeros())
	cache := loris.NewVariable(loris.Zeros(4, 2))
	last := loris.NewVariable(loris.Zeros())
	fn := func(in ...*loris.Tensor) []*loris.Tensor {
		y := norm.Forward(in[0])
		before := count.Value()
		count.Assign(before.Add(1))
		row := in[0].Mean(loris.Dim(1, 2, 3)).Reshape(1, 2)
		at := loris.With(loris.As(loris.I64)).Zeros(1, 2).Add(before)
		cache.Assign(cache.Value().Scatter(0, at, row))
		last.Assign(in[0].Sum())
		return []*loris.Tensor{y, before, cache.Value()}
	}
	x := loris.Randn(2, 3, 4, 4)
	if err := loris.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	var pkg bytes.Buffer
	if err := export.Function(ctx, &pkg, fn, []*loris.Tensor{x}, export.Options{Module: norm}); err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	kinds := map[string]backend.ConstantType{}
	for _, c := range r.Constants() {
		kinds[c.OriginalName] = c.Type
	}
	if kinds["weight"] != backend.ConstantParameter || kinds["running_mean"] != backend.ConstantBuffer || len(kinds) != 8 {
		t.Errorf("the constants are %v", kinds)
	}
	for range 3 {
		want := fn(x)
		data, err := loris.Fetch(ctx, append([]*loris.Tensor{x}, want...)...)
		if err != nil {
			t.Fatal(err)
		}
		bufs := make([]backend.Buffer, len(data))
		for i, v := range append([]*loris.Tensor{x}, want...) {
			if bufs[i], err = aoti.FromBytes(data[i], v.Shape().DType(), v.Shape().Dims()...); err != nil {
				t.Fatal(err)
			}
		}
		if err := loris.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		got, err := r.Run(ctx, bufs[0])
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, bufs[1:])
	}
}

// Results may be assigned to parameters by name: to a constant, for the next run, and to an input, which is
// the caller's tensor.
func TestResultsAreAssignedByName(t *testing.T) {
	ctx := context.Background()
	p := parse(t, `program @p {
  %x = parameter "x" : f32[2]
  %c = parameter "cache" : f32[3,2]
  %n = parameter "wn" : i64[]
  %0 = add(%n, full([], 1, dtype=i64))
  %1 = cat([narrow(%c, 0, 1, 2), reshape(%x, [1,2])], 0)
  return %0, mul(%x, %x), %1
}`)
	s := sampleOf(t, p, 1)
	s.constants["wn"] = aoti.ConstantValue{Shape: ir.MakeShape(ir.I64), Data: make([]byte, 8)}
	var pkg bytes.Buffer
	if err := export.Program(ctx, &pkg, p, export.Options{Constants: s.constants, Assign: map[string]int{"wn": 0, "cache": 2}}); err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	cache, err := aoti.FromBytes(make([]byte, 24), ir.F32, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := floats(t, s.in[0])
	for n := range 3 {
		out, err := r.Run(ctx, s.in[0], cache)
		if err != nil || len(out) != 1 || floats(t, out[0])[1] != float64(float32(x[1]*x[1])) {
			t.Fatal(out, err)
		}
		for i, v := range floats(t, cache) {
			if want := x[i%2]; i/2 >= 2-n && v != float64(want) || i/2 < 2-n && v != 0 {
				t.Errorf("after %d runs the cache has %g at %d", n+1, v, i)
			}
		}
	}
	for want, assign := range map[string]map[string]int{"no parameter": {"nobody": 0}, "result 3": {"cache": 3}, "cannot be assigned": {"cache": 1}, "twice": {"cache": 2, "x": 2}} {
		pkg.Reset()
		err := export.Program(ctx, &pkg, p, export.Options{Constants: s.constants, Assign: assign})
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ir.ErrArg) && !errors.Is(err, ir.ErrShape) || pkg.Len() > 0 {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Runs that assign wait for each other: no count is lost, and what two variables share is the same in both.
func TestStateUnderConcurrentRuns(t *testing.T) {
	ctx := context.Background()
	p := parse(t, `program @p {
  %x = parameter "x" : i64[64]
  %n = parameter "wn" : i64[64]
  %m = parameter "wm" : i64[64]
  %0 = add(%n, %x)
  return %0, add(%m, %x), sub(%n, %m)
}`)
	zero := aoti.ConstantValue{Shape: ir.MakeShape(ir.I64, 64), Data: make([]byte, 512)}
	var pkg bytes.Buffer
	o := export.Options{Constants: map[string]aoti.ConstantValue{"wn": zero, "wm": zero}, Assign: map[string]int{"wn": 0, "wm": 1}}
	if err := export.Program(ctx, &pkg, p, o); err != nil {
		t.Fatal(err)
	}
	r := load(t, pkg.Bytes())
	x, err := aoti.FromBytes(bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 64), ir.I64, 64)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				out, err := r.Run(ctx, x)
				if err != nil {
					t.Error(err)
					return
				}
				for _, v := range floats(t, out[0]) {
					if v != 0 {
						t.Errorf("two assigned constants differ by %g", v)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// Outputs may be inputs, constants, views of either, and the same value twice.
func TestOutputsMayBeViews(t *testing.T) {
	s := sampleOf(t, parse(t, `program @p {
  %x = parameter "x" : f32[4,6]
  %w = parameter "w" : f32[4,6]
  %t = permute(%x, [1,0])
  return %x, %t, slice(%x, dim=1, start=1, end=6, step=2), %w, reshape(%w, [24]), expand(narrow(%w, 0, 0, 1), [3,6]), %x, flip(%x, [0])
}`), 5)
	got, err := load(t, s.export(t)).Run(context.Background(), s.in...)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, s.want(t))
}
