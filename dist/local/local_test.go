package local_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
	"github.com/loris-ml/loris/internal/ref"
)

// run calls fn on n ranks with a session for each.
func run(t *testing.T, n int, fn func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error, opts ...dist.Option) error {
	t.Helper()
	return local.Run(t.Context(), n, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session()
		if err != nil {
			return err
		}
		defer s.Close(context.Background())
		return fn(ctx, g, s.With(), s)
	}, opts...)
}

// f16 and bf16 are added in f32: of 1 and three halves of a unit in the last place, which one by one
// would be lost or rounded up, the sum is rounded once, to 2 units.
func TestNarrowFloatsAreAddedWide(t *testing.T) {
	for _, x := range []struct {
		d    loris.DType
		unit float64
	}{{loris.BF16, 1.0 / 128}, {loris.F16, 1.0 / 1024}} {
		err := run(t, 4, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
			v := x.unit / 2
			if g.Rank() == 0 {
				v = 1
			}
			sum, err := g.AllReduce(m.Full(v, 3).Cast(x.d), dist.Sum).Cast(loris.F64).Float64s(ctx)
			if err == nil && sum[2] != 1+2*x.unit {
				t.Errorf("%v: the sum is %v, want %v", x.d, sum[2], 1+2*x.unit)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The engine of this package adds nothing by a library.
func TestLibrarySums(t *testing.T) {
	for n, want := range map[int]error{1: nil, 2: loris.ErrArg} {
		err := run(t, n, func(context.Context, *dist.Group, loris.Maker, *loris.Session) error { return nil }, dist.WithLibrarySums())
		if !errors.Is(err, want) {
			t.Errorf("%d ranks: %v, want %v", n, err, want)
		}
	}
}

// Long tensors are cut into pieces of which the last is padded.
func TestLongReductions(t *testing.T) {
	for _, n := range []int{2, 3} {
		err := run(t, n, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
			const size = 600_011
			x := m.Arange(0, size, 1).Cast(loris.F32).Mul(float64(g.Rank() + 1))
			sum, err := g.AllReduce(x, dist.Sum).Float32s(ctx)
			if err != nil {
				return err
			}
			for i, v := range sum {
				if want := float32(i * n * (n + 1) / 2); math.Abs(float64(v-want)) > float64(want)*1e-6 {
					t.Errorf("%d ranks: element %d is %v, want %v", n, i, v, want)
					break
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A pipeline of two stages: the first sends what it computes and receives the gradient of it.
func TestPipeline(t *testing.T) {
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		w := loris.NewVariable(m.FromSlice([]float32{2, 3}, 2))
		for range 3 {
			if g.Rank() == 0 {
				sent := g.Send(w.Value().Mul(5.0), 1, 7)
				grad, err := loris.Grad(sent, w)[0].Float32s(ctx)
				if err != nil {
					return err
				}
				// The second stage computes sum((5w)² · v), v = 2, 3.
				if grad[0] != 2*10*5*2 || grad[1] != 2*15*5*3 {
					t.Errorf("the gradient of the first stage is %v", grad)
				}
				continue
			}
			token := m.Zeros()
			h := g.Recv(token, 0, 7, loris.F32, 2)
			loss := h.Mul(h).Mul(w.Value()).Sum()
			grads := loris.Grad(loss, w.Value(), token)
			loris.Keep(grads...)
			if err := s.MarkStep(ctx); err != nil {
				return err
			}
			if gw, err := grads[0].Float32s(ctx); err != nil || gw[0] != 100 || gw[1] != 225 {
				t.Errorf("the gradient of the second stage is %v, %v", gw, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Groups that are split from a group have their own ranks and order.
func TestSplit(t *testing.T) {
	err := run(t, 6, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
		sub, err := g.Split(ctx, g.Rank()%2, -g.Rank())
		if err != nil {
			return err
		}
		if want := 2 - g.Rank()/2; sub.Rank() != want || sub.Size() != 3 {
			t.Errorf("rank %d is rank %d of %d, want %d of 3", g.Rank(), sub.Rank(), sub.Size(), want)
		}
		sum, err := g.AllReduce(sub.AllGather(m.Full(float64(g.Rank()), 1), 0), dist.Sum).Float32s(ctx)
		// Each half gathers 4 2 0 or 5 3 1, and the sum is over both, three times.
		if err == nil && (sum[0] != 27 || sum[1] != 15 || sum[2] != 3) {
			t.Errorf("gathered %v", sum)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A session without a group, and a tensor of one, are errors that say what to do.
func TestNoGroup(t *testing.T) {
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
		err := loris.Try(func() { g.AllReduce(loris.Zeros(2), dist.Sum) })
		if !errors.Is(err, loris.ErrArg) || !strings.Contains(err.Error(), "Group.Session") {
			t.Errorf("a tensor of another session: %v", err)
		}
		err = loris.Try(func() { g.AllReduce(m.Zeros(2), "product") })
		if !errors.Is(err, loris.ErrArg) {
			t.Errorf("an unknown reduction: %v", err)
		}
		err = loris.Try(func() { g.ReduceScatter(m.Zeros(3), dist.Sum, 0) })
		if !errors.Is(err, loris.ErrShape) {
			t.Errorf("3 elements for 2 ranks: %v", err)
		}
		err = loris.Try(func() { g.Send(m.Zeros(3), g.Rank(), 0) })
		if !errors.Is(err, loris.ErrArg) {
			t.Errorf("a send to itself: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A group of one records nothing.
func TestOneRank(t *testing.T) {
	err := run(t, 1, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
		x := m.Zeros(2)
		for i, y := range []*loris.Tensor{g.AllReduce(x, dist.Mean), g.Broadcast(x, 0), g.AllGather(x, 0), g.ReduceScatter(x, dist.Sum, 0), g.AllToAll(x, 0), g.Barrier(x)} {
			if y != x {
				t.Errorf("collective %d records an op", i)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Collectives of a value that the step does not need otherwise run once and in their order on each
// backend; equal ones are two.
func TestEqualCollectivesRunTwice(t *testing.T) {
	for _, d := range []loris.Device{loris.CPU, ref.Device} {
		err := local.Run(t.Context(), 2, func(ctx context.Context, g *dist.Group) error {
			s, err := g.Session(loris.WithDevice(d))
			if err != nil {
				return err
			}
			defer s.Close(context.Background())
			x := s.With().Ones(2)
			a, b := g.AllReduce(x, dist.Sum), g.AllReduce(x, dist.Sum)
			sum, err := a.Add(b).Float32s(ctx)
			if err == nil && sum[0] != 4 {
				t.Errorf("%v: the sum is %v", d, sum)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestManyRanks has 64 ranks, which reduce, gather and divide themselves into eight groups.
func TestManyRanks(t *testing.T) {
	const n, sum = 64, 64 * 63 / 2
	err := run(t, n, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		row, err := g.Split(ctx, g.Rank()/8, 0)
		if err != nil {
			return err
		}
		x := m.Full(float64(g.Rank()), n)
		all := g.AllReduce(x, dist.Sum)
		own := g.AllGather(g.ReduceScatter(x, dist.Max, 0), 0)
		v, err := row.AllReduce(all.Add(own), dist.Mean).Float32s(ctx)
		if err == nil && (v[0] != sum+n-1 || v[n-1] != sum+n-1) {
			t.Errorf("rank %d has %v", g.Rank(), v)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
