package steps_test

import (
	"context"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/backend/cuda/internal/steps"
	"github.com/loris-ml/loris/bench/workloads"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/null"
)

// lowerer is a null backend that counts the launches of what it compiles, for a
// GPU whose library computes all products.
type lowerer struct {
	*null.Backend
	launches []int // by Program
}

func (*lowerer) Supports(op ir.Op) bool { return steps.Supports(op) }

func (b *lowerer) Compile(ctx context.Context, p *graph.Program, d ir.Device, o backend.CompileOptions) (backend.Model, error) {
	s, err := steps.Lower(p, steps.Options{
		Limits: emit.Limits{Processors: 132, Threads: 1024, Tensor: true}, Aliases: o.Aliases,
		Product: func(*steps.Product) (int, any, bool) { return 0, nil, true },
	})
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range s.Steps {
		if k := s.Steps[i].Kernels; k != nil {
			n += len(k.Launches)
		} else if c := &s.Steps[i]; c.Copy == 0 || c.Refs[0] != c.Refs[1] {
			n++
		}
	}
	b.launches = append(b.launches, n)
	return b.Backend.Compile(ctx, p, d, o)
}

// TestLaunches bounds the launches of the workloads' steady state, which many of
// them take longer for than for computing.
func TestLaunches(t *testing.T) {
	t.Cleanup(func() { backend.Register(null.New()) })
	for name, most := range map[string]int{
		"pointwise-1M": 1, "softmax": 1, "layer-norm": 1,
		"mlp-step$":       14, // 8 of them products
		"digits-compiled": 20, // 8 of them products
		"encoder-block$":  12, // 6 of them products
	} {
		list, err := workloads.Select("^" + name)
		if err != nil {
			t.Fatal(err)
		}
		b := &lowerer{Backend: null.New()}
		backend.Register(b)
		s, err := loris.New(append(list[0].Session, loris.WithDevice(ir.Device{Type: null.DeviceType}), loris.WithTrimNodes(-1))...)
		if err != nil {
			t.Fatal(err)
		}
		in, err := list[0].Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := in.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.launches[len(b.launches)-1]; got > most {
			t.Errorf("%s: %d launches, want %d", list[0].Name, got, most)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
