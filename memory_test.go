package loris

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestDataCacheScalars uses a number that changes at each step, beside one that
// does not and is kept from its second use on, and reads how many are looked up in vain.
func TestDataCacheScalars(t *testing.T) {
	for _, c := range []struct {
		keep, misses int
	}{{4, 52}, {-1, 100}} {
		s, err := New(WithDevice(Ref), WithDataCacheScalars(c.keep))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		w := NewVariable(s.With().FromSlice([]float32{1, 2}))
		for i := range 50 {
			w.Assign(w.Value().Mul(0.5).Add(float64(i) + 0.25))
			if err := s.MarkStep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Report().DataCacheMisses; got != uint64(c.misses) {
			t.Errorf("%d numbers kept: %d misses, want %d", c.keep, got, c.misses)
		}
	}
}

// TestMemoryStaysFlat runs loops that give up all but a few tensors at each turn
// and looks, once the collector has seen to it, at what is left.
func TestMemoryStaysFlat(t *testing.T) {
	const elements, turns = 1 << 12, 200
	for _, c := range []struct {
		name string
		turn func(ctx context.Context, s *Session, w *Variable) error
	}{
		{"MarkStep", func(ctx context.Context, s *Session, w *Variable) error {
			w.Assign(w.Value().Add(s.With().FromSlice(make([]float32, elements))))
			return s.MarkStep(ctx)
		}},
		{"a step of several slabs", func(ctx context.Context, s *Session, w *Variable) error {
			v := w.Value().Add(s.With().FromSlice(make([]float32, elements)))
			for range 150 {
				v = v.Neg()
			}
			w.Assign(v)
			return s.MarkStep(ctx)
		}},
		{"Step", func(ctx context.Context, s *Session, w *Variable) error {
			return s.Step(ctx, func() error {
				w.Assign(w.Value().Add(s.With().FromSlice(make([]float32, elements))))
				return nil
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			s := newSession(t)
			w := NewVariable(s.With().FromSlice(make([]float32, elements)))
			before := s.Report().MemoryInUse[s.Device().String()]
			for range turns {
				if err := c.turn(ctx, s, w); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.WaitDeviceOps(ctx); err != nil {
				t.Fatal(err)
			}
			const few = 4 * 4 * elements // of the present turn
			var more int64
			for range 100 { // cleanups run some time after a collection
				runtime.GC()
				if more = s.Report().MemoryInUse[s.Device().String()] - before; more <= few {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%d turns left %d bytes, more than %d", turns, more, few)
		})
	}
}
