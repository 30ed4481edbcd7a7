package loris_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

// frequencies returns how often each of n classes is drawn.
func frequencies(t *testing.T, x *loris.Tensor, n int) []float64 {
	t.Helper()
	drawn, err := x.Int64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, n)
	for _, i := range drawn {
		out[i] += 1 / float64(len(drawn))
	}
	return out
}

func TestDraws(t *testing.T) {
	s := newScanSession(t)
	const n = 20_000
	p := []float64{0.1, 0, 0.4, 0.2, 0.3}
	probs := s.With().FromSlice([]float32{1, 0, 4, 2, 3})
	logits := probs.Log().Unsqueeze(0).Expand(n, 5)
	f16 := logits.Cast(loris.F16)
	for name, c := range map[string]struct {
		x    *loris.Tensor
		want []float64
	}{
		"multinomial":          {loris.Multinomial(probs, n, true), p},
		"rows":                 {loris.Multinomial(probs.Unsqueeze(0).Expand(n, 5), 1, false), p},
		"categorical":          {loris.Categorical(logits), p},
		"f16":                  {loris.Categorical(f16), p},
		"greedy":               {loris.Categorical(logits, loris.Temperature(0)), []float64{0, 0, 1, 0, 0}},
		"temperature":          {loris.Categorical(logits, loris.Temperature(0.5)), []float64{1.0 / 30, 0, 16.0 / 30, 4.0 / 30, 9.0 / 30}},
		"top k":                {loris.Categorical(logits, loris.TopK(2)), []float64{0, 0, 4.0 / 7, 0, 3.0 / 7}},
		"top k of more":        {loris.Categorical(logits, loris.TopK(9)), p},
		"top p":                {loris.Categorical(logits, loris.TopP(0.75)), []float64{0, 0, 4.0 / 9, 2.0 / 9, 3.0 / 9}},
		"top p 0":              {loris.Categorical(logits, loris.TopP(0)), []float64{0, 0, 1, 0, 0}},
		"top p after top k":    {loris.Categorical(logits, loris.TopK(3), loris.TopP(0.5)), []float64{0, 0, 4.0 / 7, 0, 3.0 / 7}},
		"top p of temperature": {loris.Categorical(logits, loris.Temperature(0.5), loris.TopP(s.With().Scalar(0.6))), []float64{0, 0, 16.0 / 25, 0, 9.0 / 25}},
	} {
		for i, got := range frequencies(t, c.x, 5) {
			if math.Abs(got-c.want[i]) > 0.015 || c.want[i] == 0 && got != 0 {
				t.Errorf("%s: class %d is drawn with frequency %v, want %v", name, i, got, c.want[i])
			}
		}
	}
	twice, err := loris.Multinomial(probs.Unsqueeze(0).Expand(100, 5), 4, false).Int64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for row := range slices.Chunk(twice, 4) {
		slices.Sort(row)
		if !slices.Equal(row, []int64{0, 2, 3, 4}) {
			t.Fatalf("4 of 4 without replacement: %v", row)
		}
	}
}

func TestQuantile(t *testing.T) {
	s := newScanSession(t)
	nan := math.NaN()
	x := s.With().FromSlice([]float64{3, 1, 2, 10, 5, 5, 5, 5, nan, 1, 2, 3}, 3, 4)
	got, err := loris.Quantile(x, []float64{0, 0.5, 0.9, 1}, 1).Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 5, nan, 2.5, 5, nan, 7.9, 5, nan, 10, 5, nan} {
		if !(math.Abs(got[i]-want) < 1e-6) && !(math.IsNaN(want) && math.IsNaN(got[i])) {
			t.Errorf("element %d is %v, want %v", i, got[i], want)
		}
	}
}

func TestDynamicShapes(t *testing.T) {
	ctx := t.Context()
	s := newScanSession(t)
	for name, c := range map[string]struct {
		x                       *loris.Tensor
		values, inverse, counts []int64
		places                  []int64
	}{
		"matrix":  {s.With().FromSlice([]int64{3, 0, 3, -1, 0, 3}, 2, 3), []int64{-1, 0, 3}, []int64{2, 1, 2, 0, 1, 2}, []int64{1, 2, 3}, []int64{0, 0, 0, 2, 1, 0, 1, 2}},
		"one":     {s.With().FromSlice([]int64{7}), []int64{7}, []int64{0}, []int64{1}, []int64{0}},
		"equal":   {s.With().FromSlice([]int64{0, 0}), []int64{0}, []int64{0, 0}, []int64{2}, nil},
		"nothing": {s.With(loris.As(loris.I64)).Zeros(0, 2), nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			values, inverse, counts, err := loris.Unique(ctx, c.x)
			if err != nil {
				t.Fatal(err)
			}
			places, err := loris.Nonzero(ctx, c.x)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(inverse.Dims(), c.x.Dims()) || places.Dim(1) != c.x.Rank() {
				t.Errorf("inverse %v, places %v of %v", inverse.Shape(), places.Shape(), c.x.Shape())
			}
			for i, p := range []struct {
				got  *loris.Tensor
				want []int64
			}{{values, c.values}, {inverse, c.inverse}, {counts, c.counts}, {places, c.places}} {
				if got, err := p.got.Int64s(ctx); err != nil || !slices.Equal(got, p.want) {
					t.Errorf("result %d is %v, %v, want %v", i, got, err, p.want)
				}
			}
		})
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	x := s.With().Ones(3)
	if _, err := loris.Nonzero(cancelled, x); !errors.Is(err, context.Canceled) {
		t.Errorf("Nonzero of a cancelled context: %v", err)
	}
	if _, _, _, err := loris.Unique(cancelled, x); !errors.Is(err, context.Canceled) {
		t.Errorf("Unique of a cancelled context: %v", err)
	}
	_, err := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		if _, err := loris.Nonzero(ctx, in[0]); err != nil {
			panic(&loris.OpError{Op: "test", Err: err})
		}
		return in
	}).Call(ctx, x)
	if err == nil || !strings.Contains(err.Error(), "compiled") {
		t.Errorf("Nonzero in a function that is compiled: %v", err)
	}
}

func TestSamplingMistakes(t *testing.T) {
	s := newScanSession(t)
	x := s.With().Ones(3)
	for name, do := range map[string]func(){
		"too many": func() { loris.Multinomial(x, 4, false) },
		"none":     func() { loris.Multinomial(x, 0, true) },
		"integers": func() { loris.Categorical(x.Cast(loris.I64)) },
		"a scalar": func() { loris.Categorical(x.Sum()) },
		"q":        func() { loris.Quantile(x, []float64{2}, 0) },
		"no q":     func() { loris.Quantile(x, nil, 0) },
	} {
		if err := loris.Try(do); !errors.Is(err, loris.ErrArg) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleCategorical() {
	logits := loris.FromSlice([]float32{1, 5, 4, -2}, 1, 4)
	greedy := loris.Categorical(logits, loris.Temperature(0))
	drawn := loris.Categorical(logits, loris.TopK(1), loris.TopP(0.9), loris.Temperature(0.8))
	fmt.Println(greedy.Int64s(context.Background()))
	fmt.Println(drawn.Int64s(context.Background()))
	// Output:
	// [1] <nil>
	// [1] <nil>
}
