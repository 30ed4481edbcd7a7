package optim

import (
	"context"
	"errors"
	"iter"
	"math"
	"testing"

	"github.com/loris-ml/loris"
)

// only yields one parameter.
func only(v *loris.Variable) iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) { yield("x", v) }
}

// wavy is a function of three numbers with a minimum near 0.
func wavy(v *loris.Variable) func() *loris.Tensor {
	return func() *loris.Tensor {
		x := v.Value()
		a, b, c := x.Select(0, 0), x.Select(0, 1), x.Select(0, 2)
		return x.Mul(x).Sum().Mul(0.5).Add(a.Mul(b).Sin().Mul(0.7)).Add(c.Sub(0.3).Pow(4))
	}
}

// Two calls take the steps of PyTorch's.
func TestLBFGSIsPyTorchs(t *testing.T) {
	s := newSession(t)
	for _, c := range []struct {
		iterations int
		want       []float64 // torch 2.15, lr 0.1, history 3, two calls of step
		loss       float64
	}{
		{6, []float64{-0.7672771083363386, 0.7125531666361913, -0.1913861917399232}, 0.2609154174156145},
		{8, []float64{-0.6110967630038747, 0.5779263494743557, -0.13017608103369124}, 0.15432499336818403},
	} {
		for _, d := range []loris.DType{loris.F64, loris.F32} {
			v := loris.NewVariable(s.With().FromSlice([]float64{-1.2, 1, -0.5}).Cast(d))
			o := &LBFGS{Rate: 0.1, Iterations: c.iterations, History: 3}
			loss := 0.0
			for range 2 {
				var err error
				if loss, err = o.Minimize(t.Context(), only(v), wavy(v)); err != nil {
					t.Fatal(err)
				}
			}
			near := 1e-12
			if d == loris.F32 {
				near = 1e-5
			}
			x := floats(t, v.Value())
			for i, want := range c.want {
				if !(math.Abs(x[i]-want) < near) {
					t.Errorf("%v, %d iterations: number %d is %v, want %v", d, c.iterations, i, x[i], want)
				}
			}
			if !(math.Abs(loss-c.loss) < near) {
				t.Errorf("%v, %d iterations: the loss is %v, want %v", d, c.iterations, loss, c.loss)
			}
		}
	}
}

// With a search for the length of steps the loss never increases, and the minimum of a bent valley is
// found, by one compilation of the loss.
func TestLBFGSSearches(t *testing.T) {
	s := newSession(t)
	v := loris.NewVariable(s.With().FromSlice([]float64{-1.2, 1, -1.2, 1}))
	valley := func() *loris.Tensor {
		x := v.Value()
		a, b := x.Narrow(0, 0, 3), x.Narrow(0, 1, 3)
		return b.Sub(a.Mul(a)).Square().Mul(100).Add(a.Sub(1).Square()).Sum()
	}
	o := &LBFGS{StrongWolfe: true, Iterations: 5, History: 10, Change: 1e-18}
	last := math.Inf(1)
	var early int64
	for i := range 30 {
		loss, err := o.Minimize(t.Context(), only(v), valley)
		if err != nil {
			t.Fatal(err)
		}
		if loss > last {
			t.Errorf("the loss goes from %v to %v", last, loss)
		}
		if last = loss; i == 1 {
			early = s.Report().Compiles
		}
	}
	if !(last < 1e-12) {
		t.Errorf("the least loss is %v at %v", last, floats(t, v.Value()))
	}
	if late := s.Report().Compiles; late > early+2 {
		t.Errorf("there are %d compilations, %d after two calls", late, early)
	}
}

// An error leaves the best values, and later calls go on from there.
func TestLBFGSErrors(t *testing.T) {
	s := newSession(t)
	v := loris.NewVariable(s.With().FromSlice([]float64{1}))
	o := &LBFGS{Rate: 10}
	root := func() *loris.Tensor { return v.Value().Sqrt().Sum() } // of a negative number after the first step
	if _, err := o.Minimize(t.Context(), only(v), root); err == nil {
		t.Fatal("a loss that is no number is taken")
	}
	if x := floats(t, v.Value()); x[0] != 1 {
		t.Errorf("the parameter is %v after an error", x)
	}
	if _, err := o.Minimize(t.Context(), only(v), func() *loris.Tensor { return v.Value().Square().Sum() }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Minimize(ctx, only(v), root); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	for name, f := range map[string]func(){
		"no parameters": func() { o.Minimize(t.Context(), func(func(string, *loris.Variable) bool) {}, root) },
		"a rate":        func() { (&LBFGS{Rate: -1}).Minimize(t.Context(), only(v), root) },
		"an integer": func() {
			o.Minimize(t.Context(), only(loris.NewVariable(s.With().FromSlice([]int64{1}))), root)
		},
		"others": func() {
			o.Minimize(t.Context(), only(loris.NewVariable(s.With().FromSlice([]float64{1, 2}))), root)
		},
	} {
		var e *loris.OpError
		if err := loris.Try(f); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
