package optim

import (
	"errors"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

// compiledStep returns a call of a function that takes the given number of steps of the optimiser.
func compiledStep(t *testing.T, r *regression, opt *Optimizer, steps int) func() error {
	f := loris.Compile(func(...*loris.Tensor) []*loris.Tensor {
		for range steps {
			opt.Minimize(r.loss())
		}
		return nil
	})
	return func() error {
		_, err := f.Call(t.Context(), r.x)
		return err
	}
}

// An optimiser in a compiled function takes the steps that it takes outside, to the bit, with the
// rate of each step, whether it is captured or not.
func TestCompiledOptimizersTakeTheSameSteps(t *testing.T) {
	rates := map[string]func(opt *Optimizer, step int){
		"constant": func(*Optimizer, int) {},
		"SetLR": func(opt *Optimizer, step int) {
			opt.SetLR(0.1 / float64(1+step))
		},
		"schedule": func(opt *Optimizer, step int) {
			if step == 0 {
				opt.SetSchedule(Warmup(0.1, 3, Cosine(0.1, 0, 6)))
			}
		},
		"schedule, then a rate": func(opt *Optimizer, step int) {
			switch step {
			case 1:
				opt.SetSchedule(Cosine(0.1, 0, 6))
			case 4:
				opt.SetLR(0.01)
			}
		},
	}
	for _, a := range algorithms {
		for name, rate := range rates {
			for _, opts := range [][]Option{nil, {Captured()}} {
				t.Run(a.name+"/"+name, func(t *testing.T) {
					eager, compiled := newRegression(t, newSession(t), loris.F32), newRegression(t, newSession(t), loris.F32)
					e, c := a.make(eager.params(), opts...), a.make(compiled.params(), opts...)
					call := compiledStep(t, compiled, c, 1)
					for i := range 8 {
						rate(e, i)
						rate(c, i)
						eager.step(t, e)
						if err := call(); err != nil {
							t.Fatal(err)
						}
						near(t, "w", floats(t, compiled.w.Value()), floats(t, eager.w.Value()), 0)
					}
					if e.Steps() != 8 || c.Steps() != 8 || e.LR() != c.LR() {
						t.Errorf("%d steps and the rate %v, compiled %d and %v", e.Steps(), e.LR(), c.Steps(), c.LR())
					}
				})
			}
		}
	}
}

// A function may take several steps in one call.
func TestStepsWithinOneCall(t *testing.T) {
	for _, opts := range [][]Option{nil, {Captured()}} {
		eager, compiled := newRegression(t, newSession(t), loris.F32), newRegression(t, newSession(t), loris.F32)
		e, c := NewAdam(eager.params(), 1, opts...), NewAdam(compiled.params(), 1, opts...)
		e.SetSchedule(Cosine(0.1, 0, 9))
		c.SetSchedule(Cosine(0.1, 0, 9))
		call := compiledStep(t, compiled, c, 3)
		for range 3 {
			for range 3 {
				eager.step(t, e)
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			near(t, "w", floats(t, compiled.w.Value()), floats(t, eager.w.Value()), 1e-6)
		}
		if c.Steps() != 9 {
			t.Errorf("%d steps, want 9", c.Steps())
		}
	}
}

// A rate set inside a function would be that of the trace in all calls.
func TestRatesAreSetOutside(t *testing.T) {
	for name, set := range map[string]func(opt *Optimizer){
		"SetLR":       func(opt *Optimizer) { opt.SetLR(0.1) },
		"SetSchedule": func(opt *Optimizer) { opt.SetSchedule(Constant(1)) },
	} {
		r := newRegression(t, newSession(t), loris.F32)
		opt := NewSGD(r.params(), 1)
		f := loris.Compile(func(...*loris.Tensor) []*loris.Tensor {
			set(opt)
			opt.Minimize(r.loss())
			return nil
		})
		if _, err := f.Call(t.Context(), r.x); !errors.Is(err, loris.ErrArg) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The schedule of a loaded optimiser goes on where that of the saved one was.
func TestLoadedScheduleInCompile(t *testing.T) {
	for _, opts := range [][]Option{nil, {Captured()}} {
		path := t.TempDir() + "/state.safetensors"
		r := newRegression(t, newSession(t), loris.F32)
		opt := NewAdam(r.params(), 0.1, opts...)
		opt.SetSchedule(Cosine(0.1, 0, 9))
		call := compiledStep(t, r, opt, 1)
		for range 4 {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
		if err := opt.SaveState(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		again := NewAdam(r.params(), 0.1, opts...)
		again.SetSchedule(Cosine(0.1, 0, 9))
		if err := again.LoadState(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if again.Steps() != 4 || again.LR() != opt.LR() {
			t.Errorf("%d steps at %v, want 4 at %v", again.Steps(), again.LR(), opt.LR())
		}
	}
}

// Layers in a compiled function follow SetTraining.
func TestTrainingModeInCompile(t *testing.T) {
	m := newSession(t).With()
	norm, drop := nn.NewBatchNorm1d(3, nn.With(m)), nn.NewDropout(0.5)
	net := nn.NewSequential(norm, drop)
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{net.Forward(in[0])}
	})
	x := m.Randn(64, 3).Keep()
	zeros := func() (n int) {
		out, err := f.Call(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range floats(t, out[0]) {
			if v == 0 {
				n++
			}
		}
		return n
	}
	mean := func() float64 { return floats(t, norm.RunningMean.Value())[0] }
	for round := range 3 {
		net.SetTraining(true)
		before := mean()
		if n := zeros(); n < 20 || n > 172 {
			t.Errorf("round %d: %d of 192 elements are dropped in training", round, n)
		}
		if mean() == before {
			t.Errorf("round %d: training left the running statistics alone", round)
		}
		net.SetTraining(false)
		before = mean()
		if n := zeros(); n != 0 {
			t.Errorf("round %d: %d elements are dropped in evaluation", round, n)
		}
		if mean() != before {
			t.Errorf("round %d: evaluation changed the running statistics", round)
		}
	}
}

// A function that sets the mode itself is traced once.
func TestModeSetInCompile(t *testing.T) {
	m := newSession(t).With()
	drop := nn.NewDropout(0.5)
	n := 0
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		n++
		drop.SetTraining(true)
		y := drop.Forward(in[0])
		drop.SetTraining(false)
		return []*loris.Tensor{y, drop.Forward(in[0])}
	})
	x := m.Ones(4).Keep()
	for range 4 {
		if _, err := f.Call(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d recordings, want the two of the first trace", n)
	}
}
