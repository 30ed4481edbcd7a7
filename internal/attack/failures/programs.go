package failures

import (
	"context"
	"iter"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/optim"
)

// program is something that users do, in steps.
type program struct {
	name string
	make func(s *loris.Session) (vars []*loris.Variable, steps []step)
}

// step is one step of a program. end, if there is one, ends what do has recorded, and is tried again
// by itself if it fails: the step stays open. read, if there is one, reads what the step has made; it
// is tried again by itself, too: the step is done.
type step struct {
	do   func(ctx context.Context) error
	end  func(ctx context.Context) error
	read func(ctx context.Context) error
}

func repeated(n int, s step) []step { return slices.Repeat([]step{s}, n) }

var programs = []program{
	{"variables in Step", func(s *loris.Session) ([]*loris.Variable, []step) {
		a, b := pair(s)
		return []*loris.Variable{a, b}, repeated(3, step{do: func(ctx context.Context) error {
			return s.Step(ctx, func() error {
				x := a.Value().Mul(2.0).Add(s.With().FromSlice([]float32{1, 2, 3}))
				a.Assign(x)
				b.Assign(b.Value().Add(x.Sum()))
				return nil
			})
		}})
	}},
	{"variables in MarkStep", func(s *loris.Session) ([]*loris.Variable, []step) {
		a, b := pair(s)
		return []*loris.Variable{a, b}, repeated(3, step{
			do: func(context.Context) error {
				x := a.Value().Mul(2.0).Add(s.With().FromSlice([]float32{1, 2, 3}))
				a.Assign(x)
				b.Assign(b.Value().Add(x.Sum()))
				return nil
			},
			end: func(ctx context.Context) error { return s.MarkStep(ctx) },
		})
	}},
	{"training with Adam", training},
	{"compiled training", func(s *loris.Session) ([]*loris.Variable, []step) {
		w, opt := newModel(s)
		f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
			l := loss(w, in[0])
			opt.Minimize(l)
			return []*loris.Tensor{l}
		})
		var out []*loris.Tensor
		return state(w, opt), repeated(3, step{do: func(ctx context.Context) (err error) {
			out, err = f.Call(ctx, s.With().FromSlice([]float32{1, 2, 3, 4}, 2, 2))
			return err
		}, read: func(ctx context.Context) error {
			_, err := loris.Read[float32](ctx, out[0])
			return err
		}})
	}},
	{"reads in the middle of a Step", func(s *loris.Session) ([]*loris.Variable, []step) {
		a, b := pair(s)
		return []*loris.Variable{a, b}, repeated(2, step{do: func(ctx context.Context) error {
			return s.Step(ctx, func() error {
				x := a.Value().Add(1.0)
				got, err := loris.Read[float32](ctx, x.Sum())
				if err != nil {
					return err
				}
				a.Assign(x.Mul(float64(got[0])))
				b.Assign(x)
				return nil
			})
		}})
	}},
	{"a fork that publishes", func(s *loris.Session) ([]*loris.Variable, []step) {
		a, b := pair(s)
		fork := s.Fork()
		return []*loris.Variable{a, b}, repeated(2, step{do: func(ctx context.Context) error {
			sn := fork.Snapshot(a, b)
			defer sn.Release()
			x := sn.Value(fork, a).Add(sn.Value(fork, b))
			return loris.Publish(ctx, []*loris.Variable{a, b}, []*loris.Tensor{x, x.Neg()})
		}})
	}},
}

// pair returns two variables, one of data and one whose initial value is pending.
func pair(s *loris.Session) (a, b *loris.Variable) {
	in := s.With()
	return loris.NewVariable(in.FromSlice([]float32{1, 2, 3})), loris.NewVariable(in.Full(0.5, 3).Exp())
}

func newModel(s *loris.Session) (*loris.Variable, *optim.Optimizer) {
	w := loris.NewVariable(s.With().Full(0.25, 2, 2))
	return w, optim.NewAdam(named(w), 0.1)
}

func named(w *loris.Variable) iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) { yield("w", w) }
}

func loss(w *loris.Variable, x *loris.Tensor) *loris.Tensor {
	return x.MatMul(w.ValueIn(x.Session())).Sub(1.0).Square().Mean()
}

// state returns the parameter and what the optimiser keeps.
func state(w *loris.Variable, opt *optim.Optimizer) []*loris.Variable {
	vars := []*loris.Variable{w}
	for _, v := range opt.State() {
		vars = append(vars, v)
	}
	return vars
}

func training(s *loris.Session) ([]*loris.Variable, []step) {
	w, opt := newModel(s)
	return state(w, opt), repeated(3, step{do: func(ctx context.Context) error {
		return s.Step(ctx, func() error {
			opt.Minimize(loss(w, s.With().FromSlice([]float32{1, 2, 3, 4}, 2, 2)))
			return nil
		})
	}})
}
