package optim

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

// Sums of halves are the gradient of the whole, recorded in steps and compiled.
func TestAccumulator(t *testing.T) {
	ctx := t.Context()
	whole, parts, compiled := newRegression(t, newSession(t), loris.F64), newRegression(t, newSession(t), loris.F64), newRegression(t, newSession(t), loris.F64)
	opts := []*Optimizer{NewAdam(whole.params(), 0.1), NewAdam(parts.params(), 0.1), NewAdam(compiled.params(), 0.1)}
	acc, acc2 := NewAccumulator(opts[1]), NewAccumulator(opts[2])
	add := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		acc2.Add(opts[2].Grads(compiled.loss()), 0.25)
		return nil
	})
	take := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { opts[2].Step(acc2.Take()); return nil })
	for range 3 {
		whole.step(t, opts[0])
		for range 4 {
			acc.Add(opts[1].Grads(parts.loss()), 0.25)
			if err := parts.s.MarkStep(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := add.Call(ctx, compiled.x); err != nil {
				t.Fatal(err)
			}
		}
		opts[1].Step(acc.Take())
		if err := parts.s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := take.Call(ctx, compiled.x); err != nil {
			t.Fatal(err)
		}
		near(t, "parts", floats(t, parts.w.Value()), floats(t, whole.w.Value()), 1e-12)
		near(t, "compiled", floats(t, compiled.w.Value()), floats(t, whole.w.Value()), 1e-12)
	}
	for name, v := range acc.State() {
		for _, x := range floats(t, v.Value()) {
			if x != 0 {
				t.Errorf("the sum of %s is not zero after Take", name)
			}
		}
	}
}

func TestEMA(t *testing.T) {
	t.Run("recorded", func(t *testing.T) {
		testEMA(t, func(r *regression, step func()) error { step(); return r.s.MarkStep(t.Context()) })
	})
	t.Run("compiled", func(t *testing.T) {
		var f *loris.Function
		testEMA(t, func(r *regression, step func()) error {
			if f == nil {
				f = loris.Compile(func(...*loris.Tensor) []*loris.Tensor { step(); return nil })
			}
			_, err := f.Call(t.Context(), r.x)
			return err
		})
	})
}

// testEMA compares averages over steps that run takes with their formula.
func testEMA(t *testing.T, run func(r *regression, step func()) error) {
	r := newRegression(t, newSession(t), loris.F64)
	opt := NewSGD(r.params(), 0.05)
	ema := NewEMA(r.params(), 0.75)
	want := floats(t, r.w.Value())
	for range 4 {
		if err := run(r, func() { opt.Minimize(r.loss()); ema.Update() }); err != nil {
			t.Fatal(err)
		}
		for i, v := range floats(t, r.w.Value()) {
			want[i] = 0.75*want[i] + 0.25*v
		}
	}
	trained := floats(t, r.w.Value())
	for i, w := range [][]float64{want, trained, want} {
		if ema.Swap(); i == 1 {
			if err := r.s.MarkStep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "swapped", floats(t, r.w.Value()), w, 1e-14)
	}
	for name, v := range ema.State() {
		if name == "w" {
			near(t, "state", floats(t, v.Value()), trained, 1e-14)
		}
	}
}

// A step with a gradient that is not finite changes nothing but the scale.
func TestLossScaler(t *testing.T) {
	r := newRegression(t, newSession(t), loris.F32)
	plain := newRegression(t, newSession(t), loris.F32)
	opt, opt2 := NewAdam(r.params(), 0.1, Captured()), NewAdam(plain.params(), 0.1, Captured())
	scaler := NewLossScaler(r.s)
	scaler.SetGrowth(4, 0.5, 2)
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{scaler.Step(opt, opt.Grads(scaler.Scaled(r.loss().Mul(in[0]))))}
	})
	scale := 65536.0
	for i, factor := range []float64{1, 1, math.Inf(1), 1, math.NaN(), 1, 1} {
		before := floats(t, r.w.Value().Cast(loris.F64))
		out, err := f.Call(t.Context(), r.s.With().FromSlice([]float32{float32(factor)}).Reshape())
		if err != nil {
			t.Fatal(err)
		}
		finite, err := out[0].Bools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if finite[0] != (factor == 1) {
			t.Errorf("step %d is finite: %v", i, finite)
		}
		if factor == 1 {
			plain.step(t, opt2)
		} else {
			scale /= 2
			near(t, "left out", floats(t, r.w.Value().Cast(loris.F64)), before, 0)
		}
		if i == 1 || i == 6 {
			scale *= 4
		}
		if got := floats(t, scaler.Scale.Value().Cast(loris.F64)); got[0] != scale {
			t.Errorf("after step %d the scale is %v, want %v", i, got, scale)
		}
		near(t, "scaled", floats(t, r.w.Value().Cast(loris.F64)), floats(t, plain.w.Value().Cast(loris.F64)), 1e-5)
	}
}

// Steps below the precision of bf16 add up in its master, as in f32.
func TestMasterWeights(t *testing.T) {
	for _, how := range []string{"recorded", "captured", "compiled"} {
		s := newSession(t)
		value := func(d loris.DType) *loris.Variable {
			return loris.NewVariable(s.With(loris.As(d)).Full(1.0, 2))
		}
		vars := map[string]*loris.Variable{"narrow": value(loris.BF16), "kept": value(loris.BF16), "wide": value(loris.F32)}
		for name, v := range vars {
			opts := []Option{}
			if name == "kept" {
				opts = append(opts, MasterWeights())
			}
			if how == "captured" {
				opts = append(opts, Captured())
			}
			opt := NewSGD(func(yield func(string, *loris.Variable) bool) { yield(name, v) }, 1e-4, opts...)
			g := s.With(loris.As(v.Shape().DType())).Ones(2)
			f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { opt.Step(in); return nil })
			for range 200 {
				if how == "compiled" {
					if _, err := f.Call(t.Context(), g); err != nil {
						t.Fatal(err)
					}
					continue
				}
				opt.Step([]*loris.Tensor{g})
				if err := s.MarkStep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for n, m := range opt.State() {
				if strings.HasSuffix(n, ".master") {
					near(t, n, floats(t, m.Value().Cast(loris.F64)), []float64{0.98, 0.98}, 1e-5)
				}
			}
		}
		for name, want := range map[string]float64{"narrow": 1, "kept": 0.98046875, "wide": 0.98} {
			near(t, name, floats(t, vars[name].Value().Cast(loris.F64)), []float64{want, want}, 1e-5)
		}
	}
}

func TestGroupMistakes(t *testing.T) {
	r := newRegression(t, newSession(t), loris.F32)
	all := func(string, *loris.Variable) bool { return true }
	for name, c := range map[string]struct {
		do   func()
		says string
	}{
		"option":  {func() { NewSGD(r.params(), 1, Group(all, Momentum(0.5))) }, "no option Momentum"},
		"scale":   {func() { NewSGD(r.params(), 1, Group(all, LRScale(-1))) }, "LRScale is -1"},
		"decay":   {func() { NewSGD(r.params(), 1, Group(all, WeightDecay(-1))) }, "decay is -1"},
		"outside": {func() { NewSGD(r.params(), 1, LRScale(2)) }, "no option LRScale"},
		"scaler":  {func() { NewLossScaler(r.s).Step(NewSGD(r.params(), 1), nil) }, "Captured"},
		"ema":     {func() { NewEMA(iter.Seq2[string, *loris.Variable](r.params()), 1) }, "[0, 1)"},
		"beta":    {func() { NewLion(r.params(), 1, Betas(1, 0)) }, "a beta"},
		"clip":    {func() { NewAdafactor(r.params(), 1, ClipUpdate(0)) }, "ClipUpdate"},
		"sums":    {func() { NewAccumulator(NewSGD(r.params(), 1)).Add(nil, 1) }, "0 gradients"},
	} {
		if err := loris.Try(c.do); !errors.Is(err, loris.ErrArg) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
