package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
	"github.com/loris-ml/loris/internal/ref"
)

// ranks does what a group does to tensors. Programs are written against it twice: for each rank with
// collectives, and for all ranks at once.
type ranks interface {
	AllReduce(x *loris.Tensor, r dist.Reduction) *loris.Tensor
	Broadcast(x *loris.Tensor, root int) *loris.Tensor
	AllGather(x *loris.Tensor, dim int) *loris.Tensor
	ReduceScatter(x *loris.Tensor, r dist.Reduction, dim int) *loris.Tensor
	AllToAll(x *loris.Tensor, dim int) *loris.Tensor
	Barrier(x *loris.Tensor) *loris.Tensor
}

// stacked is the definition: tensors have the ranks as their first dimension, and collectives are
// written in other ops.
type stacked struct{ n int }

func (s stacked) all(x *loris.Tensor) *loris.Tensor {
	return x.Expand(slices.Concat([]int{s.n}, x.Dims()[1:])...)
}

func (s stacked) AllReduce(x *loris.Tensor, r dist.Reduction) *loris.Tensor {
	switch r {
	case dist.Max:
		return s.all(x.Amax(loris.Dim(0), loris.Keepdim(true)))
	case dist.Min:
		return s.all(x.Amin(loris.Dim(0), loris.Keepdim(true)))
	case dist.Mean:
		return s.all(x.Mean(loris.Dim(0), loris.Keepdim(true)))
	}
	return s.all(x.Sum(loris.Dim(0), loris.Keepdim(true)))
}

func (s stacked) Broadcast(x *loris.Tensor, root int) *loris.Tensor {
	return s.all(x.Narrow(0, root, 1))
}

func (s stacked) AllGather(x *loris.Tensor, dim int) *loris.Tensor {
	var parts []*loris.Tensor
	for r := range s.n {
		parts = append(parts, x.Narrow(0, r, 1))
	}
	return s.all(loris.Cat(parts, loris.Dim(dim+1)))
}

func (s stacked) ReduceScatter(x *loris.Tensor, r dist.Reduction, dim int) *loris.Tensor {
	whole := s.AllReduce(x, r).Narrow(0, 0, 1)
	part := x.Dim(dim+1) / s.n
	var parts []*loris.Tensor
	for r := range s.n {
		parts = append(parts, whole.Narrow(dim+1, r*part, part))
	}
	return loris.Cat(parts, loris.Dim(0))
}

func (s stacked) AllToAll(x *loris.Tensor, dim int) *loris.Tensor {
	dims := x.Dims()
	cut := slices.Insert(slices.Clone(dims), dim+1, s.n)
	cut[dim+2] /= s.n
	return x.Reshape(cut...).Transpose(0, dim+1).Reshape(dims...)
}

func (s stacked) Barrier(x *loris.Tensor) *loris.Tensor { return x }

// program records a random program and returns a scalar for each rank, or one for all.
func program(seed uint64, n int, c ranks, x *loris.Tensor, lead int) *loris.Tensor {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	vals := []*loris.Tensor{x}
	for range 7 {
		x := vals[rng.IntN(len(vals))]
		dim := rng.IntN(2)
		size, most := x.Dim(dim+lead), x.Dim(lead)*x.Dim(lead+1)*n <= 4096
		kind := []dist.Reduction{dist.Sum, dist.Mean, dist.Max, dist.Min}[rng.IntN(4)]
		root := rng.IntN(n)
		var y *loris.Tensor
		switch k := rng.IntN(8); {
		case k == 0:
			y = c.AllReduce(x, kind)
		case k == 1:
			y = c.Broadcast(x, root)
		case k == 2 && most:
			y = c.AllGather(x, dim)
		case k == 3 && size%n == 0:
			y = c.ReduceScatter(x, kind, dim)
		case k == 4 && size%n == 0:
			y = c.AllToAll(x, dim)
		case k == 5:
			y = c.Barrier(x)
		case k == 6:
			y = x.Mul(x.Sub(1.0).Relu())
		default:
			y = x.Add(x.Neg().Relu()).Mul(0.5)
		}
		vals = append(vals, y)
	}
	var loss *loris.Tensor
	for i, y := range vals {
		term := y.Mul(float64(i + 1)).Sum()
		if loss == nil {
			loss = term
		} else {
			loss = loss.Add(term)
		}
	}
	return loss
}

// elements are small, so that sums are exact in f64, and all different, so that a maximum has one place.
func elements(n, rank int, dims ...int) []float64 {
	out := make([]float64, dims[0]*dims[1])
	for i := range out {
		out[i] = float64((i*7+rank*13)%17-8)/4 + float64(rank)/4096 + float64(i)/(1<<20)
	}
	return out
}

// TestRandomPrograms holds the loss and the gradients of random programs on n ranks against those of the
// definition.
func TestRandomPrograms(t *testing.T) {
	for _, x := range []struct {
		n, seeds int
		device   loris.Device
	}{{1, 3, loris.CPU}, {2, 12, loris.CPU}, {2, 6, ref.Device}, {3, 6, loris.CPU}, {4, 12, loris.CPU}, {64, 2, loris.CPU}} {
		for seed := range x.seeds {
			t.Run(fmt.Sprintf("%v/%d ranks/%d", x.device, x.n, seed), func(t *testing.T) {
				t.Parallel()
				compare(t, x.n, uint64(seed), x.device)
			})
		}
	}
}

func compare(t *testing.T, n int, seed uint64, d loris.Device) {
	dims := []int{n, 2}
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var all []float64
	for r := range n {
		all = append(all, elements(n, r, dims...)...)
	}
	x := s.With().FromSlice(all, slices.Concat([]int{n}, dims)...)
	loss := program(seed, n, stacked{n}, x, 1)
	grad, err := loris.Grad(loss, x)[0].Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := loss.Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	losses, grads := make([]float64, n), make([][]float64, n)
	err = local.Run(t.Context(), n, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session(loris.WithDevice(d), loris.WithThreads(1))
		if err != nil {
			return err
		}
		defer s.Close(context.Background())
		x := s.With().FromSlice(elements(n, g.Rank(), dims...), dims...)
		loss := program(seed, n, g, x, 0)
		gx := loris.Grad(loss, x)[0]
		loris.Keep(loss, gx)
		if err := s.MarkStep(ctx); err != nil {
			return err
		}
		if grads[g.Rank()], err = gx.Float64s(ctx); err != nil {
			return err
		}
		l, err := loss.Float64s(ctx)
		if err == nil {
			losses[g.Rank()] = l[0]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, l := range losses {
		sum += l
	}
	if !near(sum, want[0]) {
		t.Errorf("the loss is %v, want %v", sum, want[0])
	}
	for i, g := range slices.Concat(grads...) {
		if !near(g, grad[i]) {
			t.Fatalf("gradient %d of rank %d is %v, want %v", i%len(grads[0]), i/len(grads[0]), g, grad[i])
		}
	}
}

func near(x, y float64) bool { return abs(x-y) <= 1e-9*max(abs(x), abs(y), 1) }

func abs(x float64) float64 { return max(x, -x) }
