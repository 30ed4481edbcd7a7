package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/workloads"
)

// decoder makes the logits of a token at a place, with what it keeps of those before.
type decoder func(place int, token *loris.Tensor) *loris.Tensor

// decode makes tokens with both kinds of caches and prints what one takes.
func decode(ctx context.Context, w io.Writer, n int, cpuprofile string) error {
	stop, err := profile(cpuprofile)
	if err != nil {
		return err
	}
	growing, err := decodeWith(ctx, n, growingCache)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	fixed, err := decodeWith(ctx, n, fixedCache)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "decode %d tokens: growing cache %v a token, fixed cache with mask %v, ratio %.2f\n", n, round(growing), round(fixed),
		float64(growing)/float64(fixed))
	return nil
}

// decodeWith returns the median time of a token, the logits of each being read before the next.
func decodeWith(ctx context.Context, n int, open func(g *workloads.SmallGPT, m loris.Maker, places int) decoder) (typical time.Duration, err error) {
	s, err := loris.New()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	m := s.With()
	next := open(workloads.NewSmallGPT(m), m, n)
	given := workloads.NewData(m).Ints(n, workloads.SmallVocab)
	if err := s.MarkStep(ctx); err != nil {
		return 0, err
	}
	times := make([]time.Duration, n)
	for place, token := range given {
		start := time.Now()
		logits := next(place, m.FromSlice([]int64{token}))
		if err := s.MarkStep(ctx); err != nil { // before reading, which would compute the logits alone
			return 0, err
		}
		if _, err := logits.Float32s(ctx); err != nil {
			return 0, err
		}
		times[place] = time.Since(start)
	}
	return median(times), nil
}

// growingCache appends each token's keys and values to those before.
func growingCache(g *workloads.SmallGPT, m loris.Maker, _ int) decoder {
	type cache struct{ keys, values *loris.Tensor }
	caches := make([]cache, workloads.SmallLayers)
	return func(place int, token *loris.Tensor) *loris.Tensor {
		at := m.FromSlice([]int64{int64(place)})
		x := loris.Embedding(g.Words.Value(), token).Add(loris.Embedding(g.Places.Value(), at))
		return g.Body(x, func(i int, q, k, v *loris.Tensor) *loris.Tensor {
			c := &caches[i]
			if place > 0 {
				k, v = loris.Cat([]*loris.Tensor{c.keys, k}, loris.Dim(1)), loris.Cat([]*loris.Tensor{c.values, v}, loris.Dim(1))
			}
			c.keys, c.values = k, v
			loris.Keep(k, v)
			return loris.ScaledDotProductAttention(q, k, v)
		})
	}
}

// fixedCache writes each token's keys and values to their places among all, of which those up to
// the token are attended to.
func fixedCache(g *workloads.SmallGPT, m loris.Maker, places int) decoder {
	type cache struct{ keys, values *loris.Variable }
	var caches []cache
	for range workloads.SmallLayers {
		empty := func() *loris.Variable {
			return loris.NewVariable(m.Zeros(workloads.SmallHeads, places, workloads.SmallDim/workloads.SmallHeads))
		}
		caches = append(caches, cache{empty(), empty()})
	}
	all := m.With(loris.As(loris.I64)).Arange(0, places, 1)
	return func(place int, token *loris.Tensor) *loris.Tensor {
		at := m.FromSlice([]int64{int64(place)})
		mask := all.Le(at).Unsqueeze(0)
		x := loris.Embedding(g.Words.Value(), token).Add(loris.Embedding(g.Places.Value(), at))
		return g.Body(x, func(i int, q, k, v *loris.Tensor) *loris.Tensor {
			c := caches[i]
			k, v = c.keys.Value().IndexCopy(1, at, k), c.values.Value().IndexCopy(1, at, v)
			c.keys.Assign(k)
			c.values.Assign(v)
			return loris.ScaledDotProductAttention(q, k, v, loris.AttnMask(mask))
		})
	}
}
