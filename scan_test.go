package loris_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

// near checks that two lists of tensors have about the same elements.
func near(t *testing.T, got, want []*loris.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d tensors, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Shape() != want[i].Shape() {
			t.Fatalf("tensor %d is %v, want %v", i, got[i].Shape(), want[i].Shape())
		}
		diff, err := got[i].Sub(want[i]).Abs().Cast(loris.F32).Float32s(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for k, d := range diff {
			if !(d < 1e-3) {
				t.Fatalf("tensor %d: element %d differs by %v", i, k, d)
			}
		}
	}
}

// A Scan is the loop that Go would run, forwards and in its gradients.
func TestScanIsALoop(t *testing.T) {
	type ts = []*loris.Tensor
	for name, opts := range map[string][]loris.ScanOption{
		"forwards":      nil,
		"backwards":     {loris.ScanReverse()},
		"pieces":        {loris.ScanCheckpoint(3)},
		"larger pieces": {loris.ScanCheckpoint(20)},
		"both":          {loris.ScanReverse(), loris.ScanCheckpoint(2)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScanSession(t)
			const n = 7
			xs, h0 := s.With().Randn(n, 2, 3), s.With().Randn(2, 3)
			w := loris.NewVariable(s.With().Randn(3, 3))
			scale := s.With().Randn(3).Exp() // pending, made before the loop
			body := func(carry, x ts) (next, results ts) {
				h := x[0].Add(carry[0].MatMul(w.Value().Transpose(0, 1))).Tanh().Mul(scale)
				return ts{h, carry[1].Add(1)}, ts{h.Mul(0.5), carry[1], scale}
			}
			start := ts{h0, s.With(loris.As(loris.I64)).Zeros()}
			last, results := loris.Scan(body, start, ts{xs}, opts...)
			carry := start
			wantResults := make([]ts, 3)
			for i := range n {
				if strings.HasPrefix(name, "back") || name == "both" {
					i = n - 1 - i
				}
				var r ts
				carry, r = body(carry, ts{xs.Select(0, i)})
				for k, v := range r {
					wantResults[k] = append(wantResults[k], v)
				}
			}
			var want ts
			for _, list := range wantResults {
				if strings.HasPrefix(name, "back") || name == "both" {
					slices.Reverse(list)
				}
				want = append(want, loris.Stack(list))
			}
			near(t, append(last, results...), append(carry, want...))
			near(t, loris.GradOf(ts{last[0], results[0], results[2]}, ts{last[0], results[0], nil}, w, h0, xs, scale),
				loris.GradOf(ts{carry[0], want[0], want[2]}, ts{carry[0], want[0], nil}, w, h0, xs, scale))
		})
	}
}

// A loop in a loop's body, whose inner one uses values of the outer.
func TestScanNested(t *testing.T) {
	type ts = []*loris.Tensor
	s := newScanSession(t)
	x, w := s.With().Randn(3, 4), s.With().Randn(4)
	sums := func(scale *loris.Tensor) *loris.Tensor {
		last, _ := loris.Scan(func(c, x ts) (ts, ts) { return ts{c[0].Add(x[0].Mul(scale)).Sin()}, nil }, ts{s.With().Zeros()}, ts{w})
		return last[0]
	}
	_, ys := loris.Scan(func(_, x ts) (ts, ts) { return nil, ts{sums(x[0].Sum())} }, nil, ts{x})
	var want ts
	for i := range 3 {
		want = append(want, sums(x.Select(0, i).Sum()))
	}
	near(t, ts{ys[0]}, ts{loris.Stack(want)})
	near(t, loris.Grad(ys[0], w, x), loris.Grad(loris.Stack(want), w, x))
}

// A new length compiles a Program of as many instructions, and inside Compile a Scan reads the
// variables at each call.
func TestScanLengths(t *testing.T) {
	type ts = []*loris.Tensor
	ctx := t.Context()
	s := newScanSession(t)
	w := loris.NewVariable(s.With().Full(2.0))
	f := loris.Compile(func(in ...*loris.Tensor) ts {
		last, _ := loris.Scan(func(c, x ts) (ts, ts) { return ts{c[0].Mul(0.5).Add(x[0].Mul(w.Value()))}, nil }, ts{s.With().Zeros()}, ts{in[0]})
		return append(last, loris.Grad(last[0], w)...)
	})
	lines := map[int]bool{}
	for _, n := range []int{2, 50, 1000} {
		x := s.With().Ones(n)
		for _, value := range []float64{2, 3} {
			w.Assign(s.With().Full(value))
			out, err := f.Call(ctx, x)
			if err != nil {
				t.Fatal(err)
			}
			got, err := out[0].Float32s(ctx)
			sum := 0.0
			for range n {
				sum = sum/2 + value
			}
			if err != nil || max(float64(got[0])-sum, sum-float64(got[0])) > 1e-5 {
				t.Errorf("%d elements: %v, %v, want %v", n, got, err, sum)
			}
		}
		text, _ := f.Program(x)
		lines[strings.Count(text, "\n")] = true
	}
	if len(lines) != 1 {
		t.Errorf("Programs of %v lines", lines)
	}
}

func TestScanMistakes(t *testing.T) {
	type ts = []*loris.Tensor
	ctx := t.Context()
	s := newScanSession(t)
	h, x := s.With().Zeros(2), s.With().Zeros(3, 2)
	v := loris.NewVariable(s.With().Zeros(2))
	same := func(c, x ts) (ts, ts) { return c, nil }
	var leaked *loris.Tensor
	within := func(f func(c ts) error) func() {
		return func() {
			loris.Scan(func(c, x ts) (ts, ts) {
				if err := f(c); err != nil {
					panic(&loris.OpError{Op: "test", Err: err})
				}
				return c, nil
			}, ts{h}, ts{x})
		}
	}
	for name, c := range map[string]struct {
		do   func()
		kind error
		says string
	}{
		"nothing":    {func() { loris.Scan(same, nil, nil) }, loris.ErrArg, "neither"},
		"no length":  {func() { loris.Scan(same, ts{h}, nil) }, loris.ErrArg, "ScanLength"},
		"checkpoint": {func() { loris.Scan(same, ts{h}, ts{x}, loris.ScanCheckpoint(0)) }, loris.ErrArg, "at least 1"},
		"lengths":    {func() { loris.Scan(same, ts{h}, ts{x, s.With().Zeros(2)}) }, loris.ErrShape, "sequence 1"},
		"a scalar":   {func() { loris.Scan(same, ts{h}, ts{s.With().Zeros()}, loris.ScanLength(3)) }, loris.ErrShape, "sequence 0"},
		"carried": {func() {
			loris.Scan(func(c, x ts) (ts, ts) { return ts{c[0].Sum()}, nil }, ts{h}, ts{x})
		}, loris.ErrShape, "carried value 0 is f32[2] and becomes f32[]"},
		"too few": {func() { loris.Scan(func(c, x ts) (ts, ts) { return nil, nil }, ts{h}, ts{x}) }, loris.ErrArg, "0 carried values for 1"},
		"read": {within(func(c ts) error {
			_, err := c[0].Add(1).Float32s(ctx)
			return err
		}), nil, "Scan"},
		"mark":   {within(func(c ts) error { return s.MarkStep(ctx) }), nil, "Scan"},
		"assign": {within(func(c ts) error { v.Assign(c[0]); return nil }), nil, "Scan"},
	} {
		err := loris.Try(c.do)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	loris.Scan(func(c, x ts) (ts, ts) { leaked = c[0].Add(1); return c, nil }, ts{h}, ts{x})
	if _, err := leaked.Float32s(ctx); err == nil || !strings.Contains(err.Error(), "Scan") {
		t.Errorf("a value of a body: %v", err)
	}
	if _, err := h.Add(1).Float32s(ctx); err != nil {
		t.Errorf("after the mistakes: %v", err)
	}
}

func ExampleScan() {
	// A running maximum that forgets: half of what was, or the element.
	x := loris.FromSlice([]float32{1, 5, 2, 2, 9})
	_, ys := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		m := carry[0].Mul(0.5).Maximum(x[0])
		return []*loris.Tensor{m}, []*loris.Tensor{m}
	}, []*loris.Tensor{loris.Zeros()}, []*loris.Tensor{x})
	fmt.Println(ys[0].Float32s(context.Background()))
	// Output:
	// [1 5 2.5 2 9] <nil>
}

func newScanSession(t *testing.T) *loris.Session {
	t.Helper()
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
	})
	return s
}

// A Checkpoint has the values and gradients of what it wraps, and its activations are no operands of
// the gradients.
func TestCheckpoint(t *testing.T) {
	type ts = []*loris.Tensor
	s := newScanSession(t)
	w := loris.NewVariable(s.With().Randn(8, 8).Mul(0.3))
	x := s.With().Randn(5, 8)
	block := func(in ...*loris.Tensor) ts {
		h := in[0]
		for range 3 {
			h = h.MatMul(w.Value()).Tanh().Dropout(0.3)
		}
		return ts{h, in[0].Sum()}
	}
	s.SetSeed(4)
	plain := block(x)
	s.SetSeed(4)
	again := loris.Checkpoint(block, x)
	near(t, again, plain)
	near(t, loris.Grad(again[0].Square(), w, x), loris.Grad(plain[0].Square(), w, x))
	if err := loris.Try(func() { loris.Checkpoint(block) }); !errors.Is(err, loris.ErrArg) {
		t.Errorf("without inputs: %v", err)
	}
	text, err := s.Dump(true, loris.Grad(again[0].Square(), w)...)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "scan("); n != 2 {
		t.Errorf("%d loops, want one for the values and one for the gradients:\n%s", n, text)
	}
}
