package optim

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/safetensors"
)

// trainer is a session with a small network: convolution, batch norm, dropout.
type trainer struct {
	s      *loris.Session
	m      *nn.Sequential
	opt    *Optimizer
	losses []float64
}

func newTrainer(t testing.TB, seed uint64, make func(m nn.Module) *Optimizer) *trainer {
	t.Helper()
	s := newSession(t, loris.WithSeed(seed))
	w := nn.With(s.With())
	m := nn.NewSequential(nn.NewConv2d(1, 3, 3, w), nn.NewBatchNorm2d(3, w), nn.Func(nn.ReLU), nn.Func(nn.Flatten),
		nn.NewDropout(0.4), nn.NewLinear(12, 5, w))
	return &trainer{s: s, m: m, opt: make(m)}
}

// record records step i, on data that depends on i alone.
func (r *trainer) record(i int) *loris.Tensor {
	x := make([]float32, 8*16)
	for j := range x {
		x[j] = float32((j*31+i*17)%13)/6 - 1
	}
	y := make([]int64, 8)
	for j := range y {
		y[j] = int64((j*i + j) % 5)
	}
	in := r.s.With().FromSlice(x, 8, 1, 4, 4)
	loss := r.m.Forward(in).CrossEntropy(r.s.With().FromSlice(y))
	grads, _ := ClipGradNorm(r.opt.Grads(loss), 1)
	r.opt.Step(grads)
	return loss
}

// train takes the steps from from to before to.
func (r *trainer) train(t testing.TB, from, to int, scoped bool) {
	t.Helper()
	ctx := t.Context()
	for i := from; i < to; i++ {
		var loss *loris.Tensor
		var err error
		if scoped {
			err = r.s.Step(ctx, func() error {
				loss = r.record(i).Keep()
				return nil
			})
		} else {
			loss = r.record(i).Keep()
			err = r.s.MarkStep(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := loss.Item(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r.losses = append(r.losses, v)
	}
}

func (r *trainer) checkpoint() *Checkpoint { return &Checkpoint{Model: r.m, Optimizer: r.opt} }

// contents returns the bytes of every variable.
func (r *trainer) contents(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, v := range r.checkpoint().module().Params() {
		out[name] = r.bytes(t, v)
	}
	for name, v := range r.checkpoint().module().Buffers() {
		out[name] = r.bytes(t, v)
	}
	return out
}

func (r *trainer) bytes(t testing.TB, v *loris.Variable) string {
	t.Helper()
	b, err := v.Value().Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Saving in the middle and going on in another session gives the same bytes as
// not stopping at all, random numbers included.
func TestResume(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		make   func(m nn.Module) *Optimizer
		scoped bool
	}{
		{"adamw", func(m nn.Module) *Optimizer {
			o := NewAdamW(m.Params(), 1e-2, AMSGrad())
			o.SetSchedule(Warmup(0.1, 3, Cosine(1e-2, 0, 10)))
			return o
		}, false},
		{"sgd in Step", func(m nn.Module) *Optimizer { return NewSGD(m.Params(), 0.1, Momentum(0.9), Dampening(0.5)) }, true},
		{"captured", func(m nn.Module) *Optimizer { return NewAdam(m.Params(), 1e-2, Captured()) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ck.safetensors")
			whole := newTrainer(t, 5, c.make)
			whole.train(t, 0, 10, c.scoped)

			first := newTrainer(t, 5, c.make)
			first.train(t, 0, 5, c.scoped)
			ck := first.checkpoint()
			ck.Step, ck.Metadata = 5, map[string]string{"note": "half way"}
			if err := ck.Save(ctx, path); err != nil {
				t.Fatal(err)
			}
			// Saving changes nothing.
			first.train(t, 5, 10, c.scoped)
			compare(t, "after saving", first, whole, 0)

			second := newTrainer(t, 77, c.make)
			ck = second.checkpoint()
			if err := ck.Load(ctx, path); err != nil {
				t.Fatal(err)
			}
			if ck.Step != 5 || ck.Metadata["note"] != "half way" || len(ck.Metadata) != 2 {
				t.Errorf("step %d, metadata %q", ck.Step, ck.Metadata)
			}
			second.train(t, int(ck.Step), 10, c.scoped)
			compare(t, "resumed", second, whole, 5)
		})
	}
}

func compare(t *testing.T, what string, got, want *trainer, from int) {
	t.Helper()
	for i, v := range got.losses {
		if want.losses[from+i] != v {
			t.Errorf("%s: the loss of step %d is %v, want %v", what, from+i, v, want.losses[from+i])
		}
	}
	a, b := got.contents(t), want.contents(t)
	for name := range b {
		if a[name] != b[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

func newAdamOf(m nn.Module) *Optimizer { return NewAdam(m.Params(), 0.1) }

func TestState(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "adam.safetensors")
	a := newTrainer(t, 1, newAdamOf)
	a.train(t, 0, 2, false)
	a.opt.SetLR(0.03)
	if err := a.opt.SaveState(ctx, path); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.Lookup("0.weight.exp_avg_sq"); !ok || len(f.Tensors()) != 2*6 {
		t.Errorf("%d tensors, 0.weight.exp_avg_sq: %v", len(f.Tensors()), ok)
	}
	b := newTrainer(t, 1, newAdamOf)
	if err := b.opt.LoadState(ctx, path); err != nil {
		t.Fatal(err)
	}
	if b.opt.Steps() != 2 || b.opt.LR() != 0.03 {
		t.Errorf("%d steps, rate %v", b.opt.Steps(), b.opt.LR())
	}
	x, y := a.contents(t), b.contents(t)
	for name := range x {
		if strings.HasPrefix(name, "optim.") && x[name] != y[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestRefusedCheckpoints(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	whole, weights, state := filepath.Join(dir, "whole"), filepath.Join(dir, "weights"), filepath.Join(dir, "state")
	src := newTrainer(t, 1, newAdamOf)
	for _, err := range []error{
		src.checkpoint().Save(ctx, whole),
		nn.Save(ctx, weights, src.m, nil),
		src.opt.SaveState(ctx, state),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sgd := func(m nn.Module) *Optimizer { return NewSGD(m.Params(), 0.1) }
	amsgrad := func(m nn.Module) *Optimizer { return NewAdam(m.Params(), 0.1, AMSGrad()) }
	for _, c := range []struct {
		name string
		make func(m nn.Module) *Optimizer
		load func(r *trainer) error
		kind error
		says string
	}{
		{"weights only", newAdamOf, func(r *trainer) error { return r.checkpoint().Load(ctx, weights) }, ErrCheckpoint, "loris.step"},
		{"no step", newAdamOf, func(r *trainer) error { return r.checkpoint().Load(ctx, state) }, ErrCheckpoint, "loris.step"},
		{"algorithm", sgd, func(r *trainer) error { return r.checkpoint().Load(ctx, whole) }, ErrCheckpoint, "SGD"},
		{"algorithm of state", sgd, func(r *trainer) error { return r.opt.LoadState(ctx, state) }, ErrCheckpoint, "SGD"},
		{"no optimiser", newAdamOf, func(r *trainer) error { return (&Checkpoint{Model: r.m}).Load(ctx, whole) }, ErrCheckpoint, "Adam"},
		{"other state", amsgrad, func(r *trainer) error { return r.checkpoint().Load(ctx, whole) }, nn.ErrMissing, "optim.0.weight.max_exp_avg_sq"},
		{"state as weights", newAdamOf, func(r *trainer) error { return r.opt.LoadState(ctx, weights) }, ErrCheckpoint, "Adam"},
		{"no file", newAdamOf, func(r *trainer) error { return r.checkpoint().Load(ctx, filepath.Join(dir, "none")) }, nil, "none"},
		{"no model", newAdamOf, func(r *trainer) error { return (&Checkpoint{}).Load(ctx, whole) }, loris.ErrArg, "no model"},
		{"no parameters", newAdamOf, func(r *trainer) error { return (&Checkpoint{Model: nn.Func(nn.ReLU)}).Save(ctx, whole) }, loris.ErrArg, "Session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTrainer(t, 2, c.make)
			if err := r.s.MarkStep(context.Background()); err != nil {
				t.Fatal(err)
			}
			before, seed := r.contents(t), r.s.Seed()
			err := c.load(r)
			if err == nil || !strings.Contains(err.Error(), c.says) || (c.kind != nil && !errors.Is(err, c.kind)) {
				t.Fatalf("%v", err)
			}
			after := r.contents(t)
			for name := range before {
				if after[name] != before[name] {
					t.Errorf("%s was changed", name)
				}
			}
			if r.s.Seed() != seed || r.opt.Steps() != 0 || r.opt.LR() != 0.1 {
				t.Errorf("the seed or the optimiser was changed")
			}
		})
	}
}
