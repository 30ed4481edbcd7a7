package parallel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
	"github.com/loris-ml/loris/dist/parallel"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// run runs fn on ranks of this process, each with a session.
func run(t *testing.T, ranks int, fn func(ctx context.Context, g *dist.Group, s *loris.Session) error, opts ...dist.Option) error {
	t.Helper()
	return local.Run(t.Context(), ranks, func(ctx context.Context, g *dist.Group) error {
		s, err := g.Session(loris.WithThreads(1), loris.WithDeterministic())
		if err != nil {
			return err
		}
		defer s.Close(context.WithoutCancel(ctx))
		return fn(ctx, g, s)
	}, append(opts, dist.WithLimit(10*time.Second))...)
}

// numbers are made-up data.
func numbers(m loris.Maker, seed int, dims ...int) *loris.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*7+seed*13+1))) * 0.5
	}
	return m.FromSlice(x, dims...)
}

// values reads variables.
func values(ctx context.Context, params iter.Seq2[string, *loris.Variable]) (map[string][]float32, error) {
	out := map[string][]float32{}
	for name, v := range params {
		x, err := v.Value().Cast(loris.F32).Float32s(ctx)
		if err != nil {
			return nil, err
		}
		out[name] = x
	}
	return out, nil
}

func near(t *testing.T, what string, got, want map[string][]float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if len(g) != len(w) {
			t.Errorf("%s: %s has %d elements, want %d", what, name, len(g), len(w))
			continue
		}
		for i := range w {
			if !(math.Abs(float64(g[i]-w[i])) <= tolerance) {
				t.Errorf("%s: element %d of %s is %v, want %v", what, i, name, g[i], w[i])
				break
			}
		}
	}
}

type build = func(parts iter.Seq2[string, *loris.Variable]) *optim.Optimizer

var algorithms = map[string]build{
	"SGD": func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
		return optim.NewSGD(p, 0.1, optim.Momentum(0.9))
	},
	"AdamW": func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer { return optim.NewAdamW(p, 0.01) },
	"Lion":  func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer { return optim.NewLion(p, 0.01) },
	"RMSprop": func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
		return optim.NewRMSprop(p, 0.01, optim.Momentum(0.5))
	},
	"AdamW, master": func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
		return optim.NewAdamW(p, 0.01, optim.MasterWeights())
	},
}

// trainShards takes steps with 4 shards on any number of ranks; divided or not. It returns the weights, and how
// many elements of state a rank has.
func trainShards(t *testing.T, ranks int, d loris.DType, b build, divided bool) (weights map[string][]float32, held int) {
	t.Helper()
	err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		m := s.With(loris.As(d))
		net := nn.NewSequential(nn.NewLinear(6, 7, nn.With(m)), nn.Func((*loris.Tensor).Tanh), nn.NewLinear(7, 3, nn.With(m)))
		var plain *optim.Optimizer
		var parts *parallel.Optimizer
		if divided {
			parts = parallel.NewOptimizer(g, net.Params(), b)
			plain = parts.Inner()
		} else {
			plain = b(net.Params())
		}
		var wrt []any
		for _, v := range net.Params() {
			wrt = append(wrt, v)
		}
		first, n, all := g.Shards()
		for step := range 4 {
			err := s.Step(ctx, func() error {
				var grads [][]*loris.Tensor
				for k := range n {
					y := net.Forward(numbers(s.With(), step*all+first+k, 5, 6).Cast(d))
					grads = append(grads, loris.Grad(y.Mul(y).Mean(), wrt...))
				}
				if divided {
					parts.Step(grads...)
				} else {
					plain.Step(g.Average(grads...))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		w, err := values(ctx, net.Params())
		if err != nil || g.Rank() != ranks-1 {
			return err
		}
		weights = w
		for _, v := range plain.State() {
			held += v.Shape().Numel()
		}
		return nil
	}, dist.WithShards(4), dist.WithBucketBytes(100))
	if err != nil {
		t.Fatal(err)
	}
	return weights, held
}

// TestOptimizer divides optimisers among ranks: weights are the bits of the whole one on one rank, and a rank
// has its part of the state.
func TestOptimizer(t *testing.T) {
	for name, b := range algorithms {
		for _, d := range []loris.DType{loris.F32, loris.BF16} {
			want, all := trainShards(t, 1, d, b, false)
			for _, ranks := range []int{1, 2, 4} {
				got, held := trainShards(t, ranks, d, b, true)
				near(t, fmt.Sprintf("%s, %v, %d ranks", name, d, ranks), got, want, 0)
				if most := all/ranks + 4*3; held > most {
					t.Errorf("%s: one of %d ranks has %d elements of state, of %d", name, ranks, held, all)
				}
			}
		}
	}
}

func TestOptimizerRefuses(t *testing.T) {
	for name, f := range map[string]func(g *dist.Group, m loris.Maker){
		"element by element": func(g *dist.Group, m loris.Maker) {
			parallel.NewOptimizer(g, nn.NewLinear(6, 6, nn.With(m)).Params(), func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
				return optim.NewAdafactor(p, 0.1)
			})
		},
		"0 gradients for 2 parameters": func(g *dist.Group, m loris.Maker) {
			parallel.NewOptimizer(g, nn.NewLinear(6, 6, nn.With(m)).Params(), algorithms["SGD"]).Step(nil)
		},
		"f32[3]": func(g *dist.Group, m loris.Maker) {
			parallel.NewOptimizer(g, nn.NewLinear(6, 6, nn.NoBias(), nn.With(m)).Params(), algorithms["SGD"]).Step([]*loris.Tensor{m.Ones(3)})
		},
		"7 outputs cannot be divided among 2 ranks": func(g *dist.Group, m loris.Maker) {
			parallel.NewLayers(g).Column(6, 7, nn.With(m))
		},
		"3 heads": func(g *dist.Group, m loris.Maker) { parallel.NewLayers(g).Attention(6, 3, false, nn.With(m)) },
		"with heads that can be divided": func(g *dist.Group, m loris.Maker) {
			parallel.SequenceAttention(g, m.Ones(1, 3, 2, 2), m.Ones(1, 3, 2, 2), m.Ones(1, 3, 2, 2), false)
		},
		"0 parts": func(g *dist.Group, m loris.Maker) { parallel.Pipeline(g, m, 0, loris.MakeShape(loris.F32), nil) },
	} {
		err := run(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			return loris.Try(func() { f(g, s.With()) })
		})
		if e := (*loris.OpError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestParam trains a product of which each rank keeps its part of the weights alone.
func TestParam(t *testing.T) {
	train := func(ranks int) map[string][]float32 {
		out := map[string][]float32{}
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			m := s.With()
			w := parallel.NewParam(g, numbers(m, 3, 5, 3))
			rows := 8 / g.Size()
			for step := range 3 {
				err := s.Step(ctx, func() error {
					x := numbers(m, step, 8, 5).Narrow(0, g.Rank()*rows, rows)
					y := x.MatMul(w.Value()).Tanh()
					grad := loris.Grad(y.Mul(y).Mean().Div(g.Size()), w.Part())[0]
					w.Part().Assign(w.Part().Value().Sub(grad.Mul(0.5)))
					return nil
				})
				if err != nil {
					return err
				}
			}
			if got, most := w.Part().Shape().Numel(), (15+ranks-1)/ranks; got != most {
				t.Errorf("a rank of %d keeps %d elements, want %d", ranks, got, most)
			}
			x, err := w.Value().Float32s(ctx)
			if g.Rank() == 0 {
				out["w"] = x
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := train(1)
	for _, ranks := range []int{2, 4} {
		near(t, fmt.Sprint(ranks, " ranks"), train(ranks), want, 1e-6)
	}
}

// block is a transformer block over tokens whose weights are divided.
type block struct {
	nn.Base
	table    nn.Layer
	attend   nn.Layer
	up, down nn.Layer
	norm     *nn.LayerNorm
}

func (b *block) register() *block {
	b.Add("table", b.table)
	b.Add("attend", b.attend)
	b.Add("norm", b.norm)
	b.Add("up", b.up)
	b.Add("down", b.down)
	return b
}

func (b *block) loss(ids *loris.Tensor) *loris.Tensor {
	x := b.table.Forward(ids)
	x = x.Add(b.attend.Forward(x))
	x = x.Add(b.down.Forward(b.up.Forward(b.norm.Forward(x)).Relu()))
	return x.Mul(x).Mean()
}

func (b *block) train(ctx context.Context, s *loris.Session, grad func(loss *loris.Tensor, params iter.Seq2[string, *loris.Variable]) []*loris.Tensor) error {
	opt := optim.NewSGD(b.Params(), 0.5, optim.Momentum(0.9)) // an adaptive rate makes steps of gradients that are rounding alone
	for range 3 {
		err := s.Step(ctx, func() error {
			opt.Step(grad(b.loss(s.With().FromSlice([]int64{3, 0, 7, 5, 5, 2}, 2, 3)), b.Params()))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestLayers trains a block whose layers are divided and holds it against that of package nn on one rank.
func TestLayers(t *testing.T) {
	const vocabulary, dim, heads, inner = 8, 12, 4, 20
	var want map[string][]float32
	err := run(t, 1, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		with := nn.With(s.With())
		b := (&block{table: nn.NewEmbedding(vocabulary, dim, with), attend: nn.NewMultiheadAttention(dim, heads, nn.Causal(), with),
			up: nn.NewLinear(dim, inner, with), down: nn.NewLinear(inner, dim, with), norm: nn.NewLayerNorm([]int{dim}, with)}).register()
		plain := func(loss *loris.Tensor, params iter.Seq2[string, *loris.Variable]) []*loris.Tensor {
			var wrt []any
			for _, v := range params {
				wrt = append(wrt, v)
			}
			return loris.Grad(loss, wrt...)
		}
		err := b.train(ctx, s, plain)
		if err == nil {
			want, err = values(ctx, b.Params())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{1, 2, 4} {
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			with := nn.With(s.With())
			l := parallel.NewLayers(g)
			b := (&block{table: l.Embedding(vocabulary, dim, with), attend: l.Attention(dim, heads, true, with),
				up: l.Column(dim, inner, with), down: l.Row(inner, dim, with), norm: nn.NewLayerNorm([]int{dim}, with)}).register()
			if err := b.train(ctx, s, l.Grad); err != nil {
				return err
			}
			got := map[string][]float32{}
			for name, v := range b.Params() {
				x, err := l.Whole(v).Float32s(ctx)
				if err != nil {
					return err
				}
				got[name] = x
			}
			near(t, fmt.Sprintf("rank %d of %d", g.Rank(), ranks), got, want, 1e-5)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSequenceAttention divides a sequence among ranks; values and gradients are those of one rank.
func TestSequenceAttention(t *testing.T) {
	const batch, heads, length, size = 2, 4, 8, 3
	attend := func(ranks int, causal bool) map[string][]float32 {
		parts := make([]map[string][]float32, ranks)
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			n := length / g.Size()
			part := func(seed int) *loris.Tensor {
				return numbers(s.With(), seed, batch, heads, length, size).Narrow(2, g.Rank()*n, n)
			}
			q, k, v := part(1), part(2), part(3)
			y := parallel.SequenceAttention(g, q, k, v, causal)
			out := map[string][]float32{}
			for name, x := range map[string]*loris.Tensor{"y": y} {
				x, err := x.Transpose(0, 2).Float32s(ctx)
				if err != nil {
					return err
				}
				out[name] = x
			}
			for i, x := range loris.Grad(y.Mul(y).Sum(), q, k, v) {
				x, err := x.Transpose(0, 2).Float32s(ctx)
				if err != nil {
					return err
				}
				out[fmt.Sprint("gradient ", i)] = x
			}
			parts[g.Rank()] = out
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]float32{}
		for name := range parts[0] {
			for _, p := range parts {
				all[name] = slices.Concat(all[name], p[name])
			}
		}
		return all
	}
	for _, causal := range []bool{false, true} {
		want := attend(1, causal)
		for _, ranks := range []int{2, 4} {
			near(t, fmt.Sprintf("causal %v, %d ranks", causal, ranks), attend(ranks, causal), want, 1e-5)
		}
	}
}

// TestPipeline trains twelve layers on one rank, and cut into stages on more.
func TestPipeline(t *testing.T) {
	const layers, parts, rows, width = 12, 3, 2, 5
	train := func(ranks int) map[string][]float32 {
		var all []map[string][]float32
		for range ranks {
			all = append(all, nil)
		}
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			m := s.With()
			own := layers / g.Size()
			var params []*loris.Variable
			for i := range own {
				params = append(params, loris.NewVariable(numbers(m, 20+g.Rank()*own+i, width, width)))
			}
			stage := func(k int, x *loris.Tensor) *loris.Tensor {
				if g.Rank() == 0 {
					x = numbers(m, k, rows, width)
				}
				for _, w := range params {
					x = x.MatMul(w.Value()).Tanh()
				}
				if g.Rank() == g.Size()-1 {
					return x.Mul(x).Mean()
				}
				return x
			}
			for range 2 {
				err := s.Step(ctx, func() error {
					loss, grads := parallel.Pipeline(g, m, parts, loris.MakeShape(loris.F32, rows, width), stage, params...)
					if (loss != nil) != (g.Rank() == g.Size()-1) {
						t.Errorf("the loss of rank %d is %v", g.Rank(), loss)
					}
					for i, w := range params {
						w.Assign(w.Value().Sub(grads[i].Mul(0.5)))
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			out := map[string][]float32{}
			for i, w := range params {
				x, err := w.Value().Float32s(ctx)
				if err != nil {
					return err
				}
				out[fmt.Sprint(g.Rank()*own+i)] = x
			}
			all[g.Rank()] = out
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]float32{}
		for _, x := range all {
			for name, v := range x {
				out[name] = v
			}
		}
		return out
	}
	want := train(1)
	for _, ranks := range []int{2, 3, 4} {
		near(t, fmt.Sprint(ranks, " ranks"), train(ranks), want, 1e-6)
	}
}
