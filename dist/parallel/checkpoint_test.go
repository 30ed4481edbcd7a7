package parallel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/parallel"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
)

// job is a training that can be saved: layers divided among the ranks, or an optimiser.
type job struct {
	net   *block
	c     *parallel.Checkpoint
	step  func() error
	whole func(v *loris.Variable) *loris.Tensor
}

func newJob(ctx context.Context, g *dist.Group, s *loris.Session, layers bool) *job {
	const vocabulary, dim, heads, inner = 8, 8, 4, 12
	with := nn.With(s.With())
	b := &block{norm: nn.NewLayerNorm([]int{dim}, with)}
	j := &job{net: b, c: &parallel.Checkpoint{Group: g, Model: b}, whole: func(v *loris.Variable) *loris.Tensor { return v.Value() }}
	build := func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
		return optim.NewSGD(p, 0.5, optim.Momentum(0.9))
	}
	var update func(loss *loris.Tensor)
	if layers {
		l := parallel.NewLayers(g)
		b.table, b.attend, b.up, b.down = l.Embedding(vocabulary, dim, with), l.Attention(dim, heads, true, with), l.Column(dim, inner, with), l.Row(inner, dim, with)
		opt := build(b.register().Params())
		j.c.Layers, j.c.Optimizer, j.whole = l, opt, l.Whole
		update = func(loss *loris.Tensor) { opt.Step(l.Grad(loss, b.Params())) }
	} else {
		b.table, b.attend, b.up, b.down = nn.NewEmbedding(vocabulary, dim, with), nn.NewMultiheadAttention(dim, heads, nn.Causal(), with), nn.NewLinear(dim, inner, with), nn.NewLinear(inner, dim, with)
		opt := parallel.NewOptimizer(g, b.register().Params(), build)
		j.c.Divided = opt
		update = func(loss *loris.Tensor) {
			var wrt []any
			for _, v := range b.Params() {
				wrt = append(wrt, v)
			}
			opt.Step(loris.Grad(loss, wrt...))
		}
	}
	j.step = func() error {
		return s.Step(ctx, func() error {
			update(b.loss(s.With().FromSlice([]int64{3, 0, 7, 5, 5, 2}, 2, 3)))
			return nil
		})
	}
	return j
}

func (j *job) weights(ctx context.Context) (map[string][]float32, error) {
	out := map[string][]float32{}
	for name, v := range j.net.Params() {
		x, err := j.whole(v).Float32s(ctx)
		if err != nil {
			return nil, err
		}
		out[name] = x
	}
	return out, nil
}

// TestCheckpoint saves after two steps on some ranks, and takes two more on others: weights are those of four
// steps on one rank. What has divided layers is loaded where an optimiser is divided, and the other way round.
func TestCheckpoint(t *testing.T) {
	var want map[string][]float32
	train := func(ranks int, layers bool, load, save string, steps int) (out map[string][]float32) {
		t.Helper()
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			j := newJob(ctx, g, s, layers)
			if load != "" {
				if err := j.c.Load(ctx, load); err != nil || j.c.Step != 2 {
					return errors.Join(err, errors.New("Step should be 2"))
				}
			}
			for range steps {
				if err := j.step(); err != nil {
					return err
				}
			}
			if save != "" {
				j.c.Step = int64(steps)
				if err := j.c.Save(ctx, save); err != nil {
					return err
				}
			}
			w, err := j.weights(ctx)
			if g.Rank() == ranks-1 {
				out = w
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want = train(1, false, "", "", 4)
	for _, x := range []struct {
		from, to             int
		layersFrom, layersTo bool
	}{{4, 2, false, false}, {2, 4, true, true}, {4, 1, true, false}, {1, 2, false, true}} {
		dir := filepath.Join(t.TempDir(), "checkpoint")
		train(x.from, x.layersFrom, "", dir, 2)
		train(x.from, x.layersFrom, dir, "", 0)
		near(t, fmt.Sprint("resumed ", x), train(x.to, x.layersTo, dir, "", 2), want, 1e-5)
		shards, _ := filepath.Glob(filepath.Join(dir, "shard-*"))
		f, err := safetensors.Open(filepath.Join(dir, "checkpoint.safetensors.index.json"))
		if err != nil || len(shards) != x.from {
			t.Fatalf("%d ranks wrote %d files, %v", x.from, len(shards), err)
		}
		if _, ok := f.Lookup("optim.attend.in_proj_weight.momentum_buffer"); !ok {
			t.Errorf("the checkpoint has %v", f.Tensors())
		}
		f.Close()
	}
}

// TestCheckpointStaysWhole has a rank that cannot write: all get an error, and the checkpoint from before is
// loaded still. The next one that is saved leaves no other files.
func TestCheckpointStaysWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoint")
	full := filepath.Join(dir, "file")
	err := run(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		j := newJob(ctx, g, s, true)
		j.c.Step = 1
		if err := j.c.Save(ctx, dir); err != nil {
			return err
		}
		before, err := j.weights(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(j.step(), os.WriteFile(full, nil, 0o600)); err != nil {
			return err
		}
		to := dir
		if g.Rank() == 1 {
			to = full // where no folder can be
		}
		j.c.Step = 2
		switch err := j.c.Save(ctx, to); {
		case err == nil:
			t.Errorf("rank %d: nobody noticed", g.Rank())
		case g.Rank() == 0 && !strings.Contains(err.Error(), "rank 1 could not write"):
			t.Errorf("rank 0: %v", err)
		}
		if err := j.c.Load(ctx, dir); err != nil || j.c.Step != 1 {
			t.Errorf("the checkpoint from before is of step %d, %v", j.c.Step, err)
		}
		after, err := j.weights(ctx)
		if err != nil {
			return err
		}
		near(t, "loaded", after, before, 0)
		if err := g.Wait(ctx); err != nil {
			return err
		}
		return j.c.Save(ctx, dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	shards, _ := filepath.Glob(filepath.Join(dir, "shard-*"))
	if len(shards) != 2 {
		t.Errorf("the folder has %v", shards)
	}
}

func TestCheckpointRefuses(t *testing.T) {
	dir := t.TempDir()
	err := run(t, 2, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		if err := newJob(ctx, g, s, true).c.Save(ctx, dir); err != nil {
			return err
		}
		other := &parallel.Checkpoint{Group: g, Model: nn.NewLinear(3, 3, nn.With(s.With()))}
		if err := other.Load(ctx, dir); !errors.Is(err, optim.ErrCheckpoint) {
			t.Errorf("without its optimiser: %v", err)
		}
		j := newJob(ctx, g, s, true)
		j.c.Model = nn.NewLinear(3, 3, nn.With(s.With()))
		if err := j.c.Load(ctx, dir); !errors.Is(err, nn.ErrMissing) || !errors.Is(err, nn.ErrUnexpected) {
			t.Errorf("another model: %v", err)
		}
		if err := j.c.Load(ctx, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no checkpoint: %v", err)
		}
		both := *j.c
		both.Divided = new(parallel.Optimizer)
		if err := both.Save(ctx, dir); !errors.Is(err, loris.ErrArg) {
			t.Errorf("two optimisers: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), "index.json") }) {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// gathered is a layer whose weights each rank has in part (ZeRO 3).
type gathered struct {
	nn.Base
	w *parallel.Param
	b *loris.Variable
}

// TestCheckpointOfParams trains a layer of which each rank keeps its part, on other numbers of ranks after
// each step: weights and the state of AdamW are those of one rank.
func TestCheckpointOfParams(t *testing.T) {
	train := func(dir string, ranks, steps int, loads bool) map[string][]float32 {
		t.Helper()
		out := map[string][]float32{}
		err := run(t, ranks, func(ctx context.Context, g *dist.Group, s *loris.Session) error {
			m := s.With()
			net := &gathered{w: parallel.NewParam(g, numbers(m, 3, 5, 3)), b: loris.NewVariable(numbers(m, 4, 3))}
			net.Param("w", net.w.Part())
			net.Param("b", net.b)
			opt := optim.NewAdamW(net.Params(), 0.1)
			c := &parallel.Checkpoint{Group: g, Model: net, Params: []*parallel.Param{net.w}, Optimizer: opt}
			if loads {
				if err := c.Load(ctx, dir); err != nil {
					return err
				}
			}
			for range steps {
				err := s.Step(ctx, func() error {
					y := numbers(m, 9, 8, 5).MatMul(net.w.Value()).Add(net.b.Value()).Tanh()
					grads := loris.Grad(y.Mul(y).Mean().Div(g.Size()), net.w.Part(), net.b)
					opt.Step([]*loris.Tensor{grads[0], g.Sum(grads[1:])[0]})
					return nil
				})
				if err != nil {
					return err
				}
			}
			if err := c.Save(ctx, dir); err != nil {
				return err
			}
			w, err := net.w.Value().Float32s(ctx)
			b, failed := net.b.Value().Float32s(ctx)
			if g.Rank() == ranks-1 {
				out["w"], out["b"] = w, b
			}
			return errors.Join(err, failed)
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := train(t.TempDir(), 1, 5, false)
	dir := t.TempDir()
	train(dir, 3, 1, false)
	for _, ranks := range []int{2, 5, 4} {
		train(dir, ranks, 1, true)
	}
	near(t, "on 3, 2, 5, 4 ranks and 1", train(dir, 1, 1, true), want, 1e-5)
	f, err := safetensors.Open(filepath.Join(dir, "checkpoint.safetensors.index.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"model.w", "optim.w.exp_avg"} {
		if info, ok := f.Lookup(name); !ok || !slices.Equal(info.Shape, []int64{5, 3}) {
			t.Errorf("%s is %v in %v", name, info.Shape, f.Tensors())
		}
	}
}
