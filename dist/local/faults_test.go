package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// TestMismatch has ranks that differ: all get an error that names the op, shapes and lines of two ranks,
// nothing was run, and they can go on.
func TestMismatch(t *testing.T) {
	both := func(g *dist.Group, a, b func(x *loris.Tensor) *loris.Tensor) func(x *loris.Tensor) *loris.Tensor {
		if g.Rank() == 0 {
			return a
		}
		return b
	}
	for name, x := range map[string]struct {
		fn   func(g *dist.Group) func(x *loris.Tensor) *loris.Tensor
		want []string
	}{
		"shape": {func(g *dist.Group) func(x *loris.Tensor) *loris.Tensor {
			return both(g, func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(x, dist.Sum) },
				func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(x.Narrow(0, 0, 3), dist.Sum) })
		}, []string{"all_reduce(f32[4], sum)", "all_reduce(f32[3], sum)"}},
		"reduction": {func(g *dist.Group) func(x *loris.Tensor) *loris.Tensor {
			return both(g, func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(x, dist.Sum) },
				func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(x, dist.Max) })
		}, []string{"all_reduce(f32[4], sum)", "all_reduce(f32[4], max)"}},
		"order": {func(g *dist.Group) func(x *loris.Tensor) *loris.Tensor {
			return both(g, func(x *loris.Tensor) *loris.Tensor { return g.Broadcast(g.AllToAll(x, 0), 1) },
				func(x *loris.Tensor) *loris.Tensor { return g.AllToAll(g.Broadcast(x, 1), 0) })
		}, []string{"collective 0", "all_to_all(f32[4], dim 0, 2 ranks)", "broadcast(f32[4], root 1)"}},
		"number": {func(g *dist.Group) func(x *loris.Tensor) *loris.Tensor {
			return both(g, func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(x, dist.Sum) },
				func(x *loris.Tensor) *loris.Tensor { return g.AllReduce(g.AllReduce(x, dist.Sum), dist.Sum) })
		}, []string{"collective 1", "rank 0 has no collective there", "rank 1 has all_reduce(f32[4], sum)"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
				_, err := x.fn(g)(m.Ones(4)).Float32s(ctx)
				var mismatch *dist.MismatchError
				if !errors.As(err, &mismatch) {
					t.Errorf("rank %d: %v", g.Rank(), err)
				}
				for _, w := range append(x.want, "faults_test.go:", "rank 0", "rank 1") {
					if !strings.Contains(fmt.Sprint(err), w) {
						t.Errorf("rank %d: the error does not say %q: %v", g.Rank(), w, err)
					}
				}
				sum, err := g.AllReduce(m.Ones(1), dist.Sum).Float32s(ctx)
				if err == nil && sum[0] != 2 {
					t.Errorf("afterwards the sum is %v", sum)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSentIsNotWanted has a receiver that wants another shape than what is sent.
func TestSentIsNotWanted(t *testing.T) {
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		if g.Rank() == 0 {
			_, err := g.Send(m.Ones(3), 1, 5).Float32s(ctx)
			return err
		}
		_, err := g.Recv(m.Zeros(), 0, 5, loris.F32, 4).Float32s(ctx)
		return err
	})
	for _, want := range []string{"recv(f32[4], peer 0, tag 5)", "send(f32[3], peer 1, tag 5)", "faults_test.go:", "rank 1: ", "rank 0: "} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the errors do not say %q: %v", want, err)
		}
	}
}

// TestRankFails has a rank that never comes or ends in some way. The others get an error that says
// what they waited for and where, within the limit.
func TestRankFails(t *testing.T) {
	for _, x := range []struct {
		name string
		rank func(ctx context.Context, g *dist.Group, m loris.Maker) error
		want []string
		opts []dist.Option
	}{
		{"error", func(context.Context, *dist.Group, loris.Maker) error { return errors.New("disk full") },
			[]string{"rank 1 has ended", "disk full"}, nil},
		{"panic", func(context.Context, *dist.Group, loris.Maker) error { panic("nil map") },
			[]string{"rank 1 has ended", "nil map"}, nil},
		{"returns", func(context.Context, *dist.Group, loris.Maker) error { return nil },
			[]string{"rank 1 has close"}, nil},
		{"step fails", func(ctx context.Context, g *dist.Group, m loris.Maker) error {
			i := m.FromSlice([]int64{7}, 1)
			_, err := g.AllReduce(m.Ones(4).IndexSelect(0, i), dist.Sum).Float32s(ctx)
			return err
		}, []string{"out of range"}, nil},
		{"stuck", func(ctx context.Context, g *dist.Group, m loris.Maker) error {
			time.Sleep(400 * time.Millisecond)
			return nil
		}, []string{"not all ranks came within 100ms", "rank 1 is at transfer 0, the others at 1"}, []dist.Option{dist.WithLimit(100 * time.Millisecond)}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var got error
			_ = local.Run(t.Context(), 3, func(ctx context.Context, g *dist.Group) error {
				s, err := g.Session()
				if err != nil {
					return err
				}
				defer s.Close(context.Background())
				if g.Rank() == 1 {
					return x.rank(ctx, g, s.With())
				}
				v := loris.NewVariable(s.With().Ones(1))
				v.Assign(g.AllReduce(v.Value(), dist.Sum))
				if err = s.MarkStep(ctx); err == nil {
					_, err = v.Value().Float32s(ctx)
				}
				if g.Rank() == 0 {
					got = err
				}
				return err
			}, x.opts...)
			for _, want := range append(x.want, "all_reduce", "faults_test.go:") {
				if !strings.Contains(fmt.Sprint(got), want) {
					t.Errorf("the error does not say %q: %v", want, got)
				}
			}
		})
	}
}

// The context of the group ends all waits.
func TestContextEndsWaits(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the pod is evicted")
	err := local.Run(ctx, 2, func(_ context.Context, g *dist.Group) error {
		if g.Rank() == 0 {
			return g.Wait(context.Background())
		}
		time.Sleep(20 * time.Millisecond)
		cancel(why)
		return nil
	})
	if !errors.Is(err, why) {
		t.Errorf("the error is %v", err)
	}
}
