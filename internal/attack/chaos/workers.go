package chaos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/loris-ml/loris"
)

func floats(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

// compute steps variables of its own on a fork, beside a model of them: whole numbers below 2²⁴, which
// are exact.
func (r *run) compute(ctx context.Context, rng *rand.Rand) error {
	fork := r.s.Fork()
	model := make([]int64, 4)
	vars := make([]*loris.Variable, len(model))
	for i := range vars {
		vars[i] = loris.NewVariable(fork.With().Full(0.0, 3, 5))
	}
	for !over(ctx) {
		next := append([]int64(nil), model...)
		for range 1 + rng.IntN(12) {
			to, from, k := rng.IntN(len(model)), rng.IntN(len(model)), int64(rng.IntN(50))
			x := vars[from].ValueIn(fork)
			switch rng.IntN(4) {
			case 0:
				x, next[to] = x.Add(k), next[from]+k
			case 1:
				x, next[to] = x.Sub(k), next[from]-k
			case 2:
				x, next[to] = x.Add(vars[to].ValueIn(fork)), next[from]+next[to]
			default:
				x, next[to] = x.Mul(0).Add(k), k
			}
			if next[to] > 1<<20 || next[to] < -1<<20 {
				x, next[to] = x.Mul(0), 0
			}
			vars[to].Assign(x)
		}
		step, cancel := context.WithCancel(ctx)
		stopped := rng.IntN(10) == 0
		if stopped {
			cancel()
		}
		err := fork.MarkStep(step)
		cancel()
		if over(ctx) {
			return nil
		}
		switch {
		case stopped && errors.Is(err, context.Canceled):
			r.c.Cancelled.Add(1) // the step is open: the next one commits it
		case err != nil:
			return fmt.Errorf("compute: %w", err)
		}
		model = next
		r.c.Steps.Add(1)
		if rng.IntN(3) > 0 {
			continue
		}
		for i, v := range vars {
			got, err := loris.Read[float32](ctx, v.ValueIn(fork))
			if over(ctx) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("compute: %w", err)
			}
			for _, x := range got {
				if x != float32(model[i]) {
					return fmt.Errorf("compute: variable %d is %v, want %d", i, got, model[i])
				}
			}
			r.c.Reads.Add(1)
		}
	}
	return nil
}

// call calls a compiled function on inputs of many sizes.
func (r *run) call(ctx context.Context, rng *rand.Rand) error {
	fork := r.s.Fork()
	f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		return []*loris.Tensor{in[0].Mul(3).Add(1).Sum(), in[0].Neg()}
	})
	for !over(ctx) {
		x := make([]float32, rng.IntN(40))
		want := float32(0)
		for i := range x {
			x[i] = float32(rng.IntN(1000))
			want += 3*x[i] + 1
		}
		out, err := f.Call(ctx, fork.With().FromSlice(x))
		if over(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("call: %w", err)
		}
		got, err := loris.Fetch(ctx, out...)
		if over(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("call: %w", err)
		}
		if sum := floats(got[0]); sum[0] != want {
			return fmt.Errorf("call: the sum of %v is %v, want %v", x, sum, want)
		}
		for i, y := range floats(got[1]) {
			if y != -x[i] {
				return fmt.Errorf("call: minus %v is %v at %d", x, y, i)
			}
		}
		r.c.Calls.Add(1)
	}
	return nil
}

// sessions makes sessions and closes them, with work under way or not.
func (r *run) sessions(ctx context.Context, rng *rand.Rand) error {
	for !over(ctx) {
		s, err := loris.New()
		if err != nil {
			return err
		}
		in := s.With()
		n := 1 + rng.IntN(20)
		x := in.Arange(0, n, 1).Mul(2).Sum()
		want := float32(n * (n - 1))
		if rng.IntN(2) == 0 {
			if err := s.Sync(ctx, x); err != nil && !over(ctx) {
				return fmt.Errorf("sessions: %w", err)
			}
		}
		if rng.IntN(2) == 0 {
			got, err := loris.Read[int64](ctx, x)
			if over(ctx) {
				return s.Close(context.Background())
			}
			if err != nil {
				return fmt.Errorf("sessions: %w", err)
			}
			if float32(got[0]) != want {
				return fmt.Errorf("sessions: got %v, want %v", got, want)
			}
		}
		if err := s.Close(context.Background()); err != nil {
			return fmt.Errorf("sessions: close: %w", err)
		}
		if err := s.Sync(ctx, x); !errors.Is(err, loris.ErrClosed) && !over(ctx) {
			return fmt.Errorf("sessions: sync after Close: %w", wrongError(err))
		}
		r.c.Sessions.Add(1)
	}
	return nil
}
