package nn

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
)

// Tokens decoded in pieces are what all at once give, with the same mask.
func TestKVCache(t *testing.T) {
	for name, c := range map[string]struct {
		opts     []Option
		capacity int
		sliding  bool
		pieces   []int
	}{
		"one by one":      {nil, 7, false, []int{1, 1, 1, 1, 1, 1, 1}},
		"a prompt":        {[]Option{NoBias()}, 9, false, []int{4, 1, 2}},
		"groups":          {[]Option{KVHeads(2)}, 7, false, []int{3, 3, 1}},
		"rotary":          {[]Option{Rotary(100), KVHeads(1)}, 8, false, []int{2, 1, 4}},
		"window":          {[]Option{Rotary(100)}, 3, true, []int{1, 1, 1, 1, 1, 1, 1}},
		"window of a few": {nil, 3, true, []int{2, 3, 1, 1}},
		"wide window":     {nil, 20, true, []int{5, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			m := NewMultiheadAttention(16, 4, append(c.opts, With(s.With()))...)
			x := s.With().Randn(2, 7, 16)
			at := s.With(loris.As(loris.I64)).Arange(0, 7, 1)
			age := at.Unsqueeze(1).Sub(at)
			mask := age.Ge(0)
			if c.sliding {
				mask = mask.LogicalAnd(age.Lt(c.capacity))
			}
			want := m.Attend(x, x, x, mask)
			cache := m.NewKVCache(2, c.capacity, c.sliding)
			for range 2 { // again after Reset
				var parts []*loris.Tensor
				from := 0
				for _, n := range c.pieces {
					parts = append(parts, m.Decode(x.Narrow(1, from, n), cache))
					if from += n; from%2 == 1 {
						if err := s.MarkStep(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				for i, v := range floats(t, loris.Cat(parts, loris.Dim(1)).Sub(want).Abs()) {
					if !(v < 1e-5) {
						t.Fatalf("element %d differs by %v", i, v)
					}
				}
				cache.Reset()
			}
		})
	}
}

// Each token is the same graph, compiled once, and a full cache is an error.
func TestKVCacheCompiled(t *testing.T) {
	s := newSession(t)
	m := NewMultiheadAttention(8, 2, With(s.With()), Rotary(10000))
	cache := m.NewKVCache(1, 4, false)
	step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{m.Decode(in[0], cache)}
	})
	x := s.With().Randn(1, 1, 8)
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.Report().Compiles
	for i := range 5 {
		out, err := step.Call(t.Context(), x)
		if err == nil {
			_, err = out[0].Float32s(t.Context())
		}
		if (i == 4) != errors.Is(err, loris.ErrIndex) {
			t.Errorf("token %d: %v", i, err)
		}
	}
	if n := s.Report().Compiles - before; n != 1 {
		t.Errorf("%d compilations", n)
	}
	if err := loris.Try(func() { m.Decode(s.With().Zeros(2, 1, 8), cache) }); !errors.Is(err, loris.ErrShape) {
		t.Errorf("another batch: %v", err)
	}
}

// Turning by positions keeps lengths, and products depend on distances only.
func TestRotary(t *testing.T) {
	s := newSession(t)
	x, y := s.With(loris.As(loris.F64)).Randn(1, 1, 1, 6), s.With(loris.As(loris.F64)).Randn(1, 1, 1, 6)
	at := func(i int) *loris.Tensor { return s.With(loris.As(loris.I64)).Full(i, 1) }
	product := func(i, j int) float64 {
		return floats(t, rotate(x, at(i), 50).Mul(rotate(y, at(j), 50)).Sum())[0]
	}
	if a, b := product(2, 5), product(12, 15); math.Abs(a-b) > 1e-5 || math.Abs(a-product(2, 6)) < 1e-3 {
		t.Errorf("products at distance 3: %v and %v", a, b)
	}
	if a, b := floats(t, rotate(x, at(7), 50).Square().Sum())[0], floats(t, x.Square().Sum())[0]; math.Abs(a-b) > 1e-6 {
		t.Errorf("lengths %v and %v", a, b)
	}
}

// Without anything dropped, dropping attention is attention; with it, it differs in training only.
func TestAttentionDropout(t *testing.T) {
	s := newSession(t)
	q, kv := s.With().Randn(2, 5, 8), s.With().Randn(2, 4, 8)
	keep := s.With().FromSlice([]bool{true, false, true, true, false, false, false, false}, 2, 1, 1, 4)
	bias := s.With().Randn(5, 4)
	for name, c := range map[string]struct {
		opts []Option
		mask *loris.Tensor
	}{
		"no mask": {nil, nil}, "rows without keys": {nil, keep}, "bias": {[]Option{KVHeads(1)}, bias}, "causal": {[]Option{Causal(), KVHeads(2)}, nil},
	} {
		m := NewMultiheadAttention(8, 4, append(c.opts, With(s.With()), DropoutP(1e-12))...)
		got := floats(t, m.Attend(q, kv, kv, c.mask))
		m.SetTraining(false)
		want := m.Attend(q, kv, kv, c.mask)
		for i, v := range floats(t, want) {
			if !(math.Abs(v-got[i]) < 1e-5) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], v)
			}
		}
		m.SetTraining(true)
		m.dropout = 0.5
		if slices.Equal(floats(t, m.Attend(q, kv, kv, c.mask)), floats(t, want)) {
			t.Errorf("%s: nothing is dropped", name)
		}
	}
}
