//go:build cuda && linux && cgo

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
	_ "github.com/loris-ml/loris/dist/nccl"
)

// gpus puts a stand-in with n of them in the place of the machine's, and NCCL's beside.
func gpus(t *testing.T, n int) *fakecuda.Fake {
	t.Helper()
	f := onFake(t)
	f.Set("devices", n)
	t.Setenv("LORIS_LIBNCCL", f.Path)
	return f
}

// onRanks runs fn on n ranks of this process, each with a session on a GPU of its own if there are as many.
func onRanks(t *testing.T, n int, fn func(ctx context.Context, g *dist.Group, s *loris.Session) error, opts ...dist.Option) error {
	there, err := cuda.Devices()
	if os.Getenv("LORIS_TEST_GPU") == "" {
		there, err = make([]cuda.Info, n), nil
	}
	if err != nil {
		return err
	}
	return local.Run(t.Context(), n, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session(loris.WithDevice(loris.CUDA(g.Rank() % len(there))))
		if err != nil {
			return err
		}
		defer s.Close(context.Background())
		return fn(ctx, g, s)
	}, opts...)
}

// operand returns the bytes of different numbers on each rank, which the host makes: each kernel less is a
// second less of the test.
func operand(ctx context.Context, host *loris.Session, rank int, d loris.DType, dims ...int) ([]byte, loris.Shape, error) {
	n := 1
	for _, x := range dims {
		n *= x
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Sin(float64(i+1)*(0.3+float64(rank)))) * 60
	}
	x := host.With().FromSlice(v, dims...)
	if d == loris.U8 {
		x = x.Abs()
	}
	x = x.Cast(d)
	data, err := x.Bytes(ctx)
	return data, x.Shape(), err
}

// Every collective gives on GPUs the bits that it gives on the host, in every dtype that is added in its
// own way; what is sent comes to the tag.
func TestCollectives(t *testing.T) {
	all := []loris.DType{loris.F32, loris.F64, loris.F16, loris.BF16, loris.I32, loris.U8}
	for _, n := range []int{2, 3, 4} {
		type row struct {
			name   string
			dtypes []loris.DType
			dims   []int
			fn     func(g *dist.Group, x *loris.Tensor) *loris.Tensor
		}
		reduce := func(r dist.Reduction) func(g *dist.Group, x *loris.Tensor) *loris.Tensor {
			return func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.AllReduce(x, r) }
		}
		next := func(g *dist.Group, step int) int { return (g.Rank() + step + n) % n }
		rows := []row{
			{"sum", all, []int{5, 7}, reduce(dist.Sum)},
			{"long sum", []loris.DType{loris.F32, loris.BF16}, []int{9001}, reduce(dist.Sum)},
			{"mean", all[:4], []int{11}, reduce(dist.Mean)},
			{"max", []loris.DType{loris.F32, loris.I32}, []int{11}, reduce(dist.Max)},
			{"min", []loris.DType{loris.F16}, []int{11}, reduce(dist.Min)},
			{"broadcast", []loris.DType{loris.F32, loris.U8}, []int{3, 5}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.Broadcast(x, n-1) }},
			{"gather 0", []loris.DType{loris.F16}, []int{3, 5}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.AllGather(x, 0) }},
			{"gather 1", []loris.DType{loris.F32}, []int{3, 5, 2}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.AllGather(x, 1) }},
			{"scatter 0", []loris.DType{loris.F32}, []int{2 * n, 5}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.ReduceScatter(x, dist.Sum, 0) }},
			{"scatter 1", []loris.DType{loris.BF16}, []int{3, 2 * n}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.ReduceScatter(x, dist.Mean, 1) }},
			{"all to all 0", []loris.DType{loris.F32}, []int{2 * n, 3}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.AllToAll(x, 0) }},
			{"all to all 1", []loris.DType{loris.U8}, []int{3, 2 * n}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.AllToAll(x, 1) }},
			{"barrier", []loris.DType{loris.F32}, []int{4}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor { return g.Barrier(x) }},
			{"gradient of a broadcast", []loris.DType{loris.F32}, []int{4}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor {
				return loris.Grad(g.Broadcast(x, 1).Mul(x.Detach()).Sum(), x)[0]
			}},
			{"ring", []loris.DType{loris.F32}, []int{4}, func(g *dist.Group, x *loris.Tensor) *loris.Tensor {
				token := g.Send(x, next(g, 1), 3)
				got := g.Recv(x.Narrow(0, 0, 1).Reshape().Detach(), next(g, -1), 3, x.DType(), 4)
				return loris.Cat([]*loris.Tensor{got, token.Reshape(1)}, loris.Dim(0))
			}},
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			if os.Getenv("LORIS_TEST_GPU") == "" { // see TestOnGPU
				gpus(t, n)
			}
			err := onRanks(t, n, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
				h, err := g.Session()
				if err != nil {
					return err
				}
				defer h.Close(context.Background())
				half, err := g.Split(ctx, g.Rank()%2, -g.Rank())
				if err != nil {
					return err
				}
				for i, r := range rows {
					if n != 3 && i%3 != 0 { // three ranks have them all
						continue
					}
					if n != 3 {
						r.dtypes = r.dtypes[:1]
					}
					for _, d := range r.dtypes {
						data, shape, err := operand(ctx, h, g.Rank(), d, r.dims...)
						if err != nil {
							return err
						}
						var got [2][]byte
						for i, x := range []*loris.Session{s, h} {
							if got[i], err = r.fn(g, x.With().FromBytes(data, shape)).Bytes(ctx); err != nil {
								return fmt.Errorf("%s %v on %v: %w", r.name, d, []string{"the GPU", "the host"}[i], err)
							}
						}
						if !slices.Equal(got[0], got[1]) {
							t.Errorf("%s, %v, rank %d: the GPU has %v, the host %v", r.name, d, g.Rank(), got[0], got[1])
						}
					}
				}
				got, err := half.AllGather(s.With().FromSlice([]float32{float32(g.Rank())}, 1), 0).Float32s(ctx)
				var want []float32 // those of the same parity, the last first
				for r := n - 1; r >= 0; r-- {
					if r%2 == g.Rank()%2 {
						want = append(want, float32(r))
					}
				}
				if err == nil && !slices.Equal(got, want) {
					t.Errorf("rank %d: its half has %v, want %v", g.Rank(), got, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A rank that dies, comes too late or does something else leaves no stream waiting: the others get errors
// that say what they waited for, and the device is whole.
func TestCollectivesFail(t *testing.T) {
	boom := errors.New("disk full")
	for _, x := range []struct {
		name string
		rank func(ctx context.Context, g *dist.Group, s *loris.Session) error // 1
		want []string
		opts []dist.Option
	}{
		{"ends", func(context.Context, *dist.Group, *loris.Session) error { return boom }, []string{"rank 1 has ended", "disk full"}, nil},
		{"never comes", func(ctx context.Context, _ *dist.Group, _ *loris.Session) error {
			time.Sleep(500 * time.Millisecond)
			return nil
		}, []string{"not all ranks came within 200ms"}, []dist.Option{dist.WithLimit(200 * time.Millisecond)}},
		{"computes on the host", func(ctx context.Context, g *dist.Group, _ *loris.Session) error {
			h, err := g.Session()
			if err != nil {
				return err
			}
			defer h.Close(context.Background())
			_, err = g.AllReduce(h.With().Ones(4), dist.Sum).Float32s(ctx)
			return err
		}, []string{"disagree", "all_reduce(f32[4], sum) on cuda", "rank 1 has all_reduce(f32[4], sum) (at cuda/collective_test.go"}, nil},
		{"sends something else", func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			_, err := g.AllReduce(s.With().Ones(3), dist.Sum).Float32s(ctx)
			return err
		}, []string{"disagree", "all_reduce(f32[3], sum) on cuda"}, nil},
		{"library fails", func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			_, err := g.AllReduce(s.With().Ones(4), dist.Sum).Float32s(ctx)
			return err
		}, []string{"ncclCommInitRankConfig", "all_reduce"}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			var said string
			f := gpus(t, 2)
			if x.name == "library fails" {
				f.Fail("ncclCommInitRankConfig", 3, 0, true)
			}
			err := onRanks(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
				if g.Rank() == 1 {
					return x.rank(ctx, g, s)
				}
				_, err := g.AllReduce(s.With().Ones(4), dist.Sum).Float32s(ctx)
				said = fmt.Sprint(err)
				return err
			}, x.opts...)
			if err == nil {
				t.Error("nobody noticed")
			}
			for _, w := range append(x.want, "collective_test.go:") {
				if !strings.Contains(said, w) {
					t.Errorf("rank 0 does not say %q: %v", w, said)
				}
			}
		})
	}
}

// A rank that fails after transfers have begun, which no agreement can see, has the others' streams go on.
func TestRankFailsUnderWay(t *testing.T) {
	ready := make(chan struct{})
	gpus(t, 2)
	err := onRanks(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		if g.Rank() == 1 {
			// It joins the group's communicator, and ends.
			if _, err := g.Broadcast(s.With().Ones(2), 0).Float32s(ctx); err != nil {
				return err
			}
			close(ready)
			lost, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("out of power"))
			return g.Close(lost)
		}
		if _, err := g.Broadcast(s.With().Ones(2), 0).Float32s(ctx); err != nil {
			return err
		}
		<-ready
		_, err := g.Recv(s.With().Zeros(), 1, 0, loris.F32, 2).Float32s(ctx)
		if err == nil || !strings.Contains(err.Error(), "out of power") {
			t.Errorf("rank 0: %v", err)
		}
		return errors.Join(err, g.Close(ctx))
	})
	if err == nil {
		t.Error("nobody noticed")
	}
}

// Without NCCL on the machine the error says so.
func TestNoNCCL(t *testing.T) {
	gpus(t, 2)
	t.Setenv("LORIS_LIBNCCL", t.TempDir())
	err := onRanks(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		_, err := g.AllReduce(s.With().Ones(4), dist.Sum).Float32s(ctx)
		return err
	})
	for _, w := range []string{"NCCL 2.14", "LORIS_LIBNCCL", "libnccl.so.2"} {
		if !strings.Contains(fmt.Sprint(err), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}
