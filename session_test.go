package loris

import (
	"context"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Hooks get the tensors and sessions of this package.
func TestHooks(t *testing.T) {
	walks := 0
	s := newSession(t, WithHooks(Hooks{RunPostOrder: func(roots []ir.Value, next func([]ir.Value) graph.PostOrder) graph.PostOrder {
		walks++
		return next(roots)
	}}))
	x := s.With().FromSlice([]float32{1, 2})
	wantFloats(t, x.Add(x), 2, 4)
	if walks != 1 {
		t.Errorf("the walk's hook was called %d times, want once", walks)
	}

	var left, kept *Tensor
	var asked *Session
	s = newSession(t, WithHooks(Hooks{
		ShouldSyncTensor: func(t *Tensor) bool { return t != left },
		RngSeed: func(f *Session, _ Device) ir.Value {
			asked = f
			return ir.NewScalar(&ir.ScalarLeaf{Int: 7}, I64, Device{}, false).Out(0)
		},
	}))
	left, kept = s.With().Rand(2), s.With().Rand(2)
	if err := s.MarkStep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left.ex().Data() != nil || kept.ex().Data() == nil {
		t.Error("the hook did not decide which tensors a step syncs")
	}
	if asked != s {
		t.Error("the hook for seeds was not asked with its session")
	}
}

// Host tensors beyond the bound of the data cache are uploaded again.
func TestDataCacheBytes(t *testing.T) {
	const n = 1024
	for _, c := range []struct {
		bound int64
		hits  bool
	}{{64 * n, true}, {n, false}} {
		s := newSession(t, WithDataCacheBytes(c.bound))
		data := []byte(strings.Repeat("x", 4*n))
		for range 2 {
			if err := s.With().Constant(data, MakeShape(F32, n)).Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		uploaded := int64(4 * n)
		if !c.hits {
			uploaded *= 2
		}
		if r := s.Report(); r.BytesUploaded != uploaded {
			t.Errorf("a bound of %d bytes: %d were uploaded, want %d", c.bound, r.BytesUploaded, uploaded)
		}
	}
}
