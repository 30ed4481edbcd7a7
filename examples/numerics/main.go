// Command numerics computes three things in float64 that are no networks, each as one compiled graph or
// a few: an orbit by Runge and Kutta's method, positions by a Kalman filter, and the minimum of
// Rosenbrock's function in 100 dimensions by Newton's method with products of the Hessian:
//
//	go run ./examples/numerics
package main

import (
	"context"
	"fmt"
	"math"
	"os"

	"github.com/loris-ml/loris"
)

type tensors = []*loris.Tensor

func main() {
	session, err := loris.New(loris.WithSeed(1))
	if err == nil {
		err = run(context.Background(), session.With(loris.As(loris.F64)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "numerics:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, m loris.Maker) error {
	closure, drift, err := orbit(ctx, m, 2000)
	if err != nil {
		return err
	}
	fmt.Printf("orbit: after one revolution it is %.1e from where it began, its energy %.1e off\n", closure, drift)
	measured, filtered, err := track(ctx, m, 500)
	if err != nil {
		return err
	}
	fmt.Printf("Kalman filter: measured positions are off by %.3f, filtered ones by %.3f\n", measured, filtered)
	gradient, products, err := minimum(ctx, m, 100)
	if err != nil {
		return err
	}
	fmt.Printf("Rosenbrock: the gradient is %.1e after %.0f products with the Hessian\n", gradient, products)
	return nil
}

// orbit follows a planet for one revolution of an ellipse of eccentricity 0.5 and axis 1, in steps of
// the classical Runge–Kutta method. A state is x, y and their derivatives.
func orbit(ctx context.Context, m loris.Maker, steps int) (closure, drift float64, err error) {
	h := 2 * math.Pi / float64(steps)
	derivative := func(s *loris.Tensor) *loris.Tensor {
		x, v := s.Narrow(0, 0, 2), s.Narrow(0, 2, 2)
		return loris.Cat(tensors{v, x.Neg().Div(x.Square().Sum().Pow(1.5))})
	}
	energy := func(s *loris.Tensor) *loris.Tensor {
		x, v := s.Narrow(0, 0, 2), s.Narrow(0, 2, 2)
		return v.Square().Sum().Mul(0.5).Sub(x.Square().Sum().Rsqrt())
	}
	start := m.FromSlice([]float64{0.5, 0, 0, math.Sqrt(3)}, 4)
	last, _ := loris.Scan(func(carry, _ []*loris.Tensor) (next, results []*loris.Tensor) {
		s := carry[0]
		k1 := derivative(s)
		k2 := derivative(s.Add(k1.Mul(h / 2)))
		k3 := derivative(s.Add(k2.Mul(h / 2)))
		k4 := derivative(s.Add(k3.Mul(h)))
		return tensors{s.Add(k1.Add(k2.Mul(2)).Add(k3.Mul(2)).Add(k4).Mul(h / 6))}, nil
	}, tensors{start}, nil, loris.ScanLength(steps))
	return two(ctx, last[0].Sub(start).Square().Sum().Sqrt(), energy(last[0]).Div(energy(start)).Sub(1).Abs())
}

// track filters noisy measurements of the position of something that moves in a plane while random
// forces act on it (Kalman, "A new approach to linear filtering and prediction problems", 1960).
func track(ctx context.Context, m loris.Maker, n int) (measured, filtered float64, err error) {
	const dt, force, noise = 0.1, 0.5, 1.0
	f := m.FromSlice([]float64{1, 0, dt, 0, 0, 1, 0, dt, 0, 0, 1, 0, 0, 0, 0, 1}, 4, 4)
	g := m.FromSlice([]float64{dt * dt / 2, 0, 0, dt * dt / 2, dt, 0, 0, dt}, 4, 2)
	h := m.Eye(4).Narrow(0, 0, 2)
	q := g.MatMul(g.Transpose(0, 1)).Mul(force * force)
	_, truth := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		s := f.MatMul(carry[0]).Add(g.MatMul(x[0]))
		return tensors{s}, tensors{s.Narrow(0, 0, 2)}
	}, tensors{m.Zeros(4)}, tensors{m.Randn(n, 2).Mul(force)})
	seen := truth[0].Add(m.Randn(n, 2).Mul(noise))
	_, found := loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
		s := f.MatMul(carry[0])
		p := f.MatMul(carry[1]).MatMul(f.Transpose(0, 1)).Add(q)
		innovation := h.MatMul(p).MatMul(h.Transpose(0, 1)).Add(m.Eye(2).Mul(noise * noise))
		gain := loris.LinalgSolve(innovation, h.MatMul(p)).Transpose(0, 1) // both matrices are symmetric
		s = s.Add(gain.MatMul(x[0].Sub(h.MatMul(s))))
		return tensors{s, p.Sub(gain.MatMul(h).MatMul(p))}, tensors{s.Narrow(0, 0, 2)}
	}, tensors{m.Zeros(4), m.Eye(4)}, tensors{seen})
	rms := func(x *loris.Tensor) *loris.Tensor { return x.Sub(truth[0]).Square().Sum(loris.Dim(1)).Mean().Sqrt() }
	return two(ctx, rms(seen), rms(found[0]))
}

// two reads numbers that one graph computes.
func two(ctx context.Context, x, y *loris.Tensor) (a, b float64, err error) {
	v, err := loris.Read[float64](ctx, loris.Stack(tensors{x, y}))
	if err != nil {
		return 0, 0, err
	}
	return v[0], v[1], nil
}

// minimum takes Newton steps, whose directions conjugate gradients find: a product with the Hessian is
// the gradient of the gradient's product with a vector, so no matrix is made.
func minimum(ctx context.Context, m loris.Maker, n int) (gradient, products float64, err error) {
	value := func(x *loris.Tensor) *loris.Tensor {
		a, b := x.Narrow(0, 0, n-1), x.Narrow(0, 1, n-1)
		return b.Sub(a.Square()).Square().Mul(100).Add(a.Sub(1).Square()).Sum()
	}
	slope := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		g := loris.Grad(value(in[0]), in[0])[0]
		return tensors{g.Neg(), g.Abs().Amax()}
	})
	// One step of conjugate gradients: direction so far, residual, search direction.
	step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		x, d, r, p := in[0], in[1], in[2], in[3]
		hp := loris.Grad(loris.Grad(value(x), x)[0].Mul(p).Sum(), x)[0]
		rr := r.Square().Sum()
		alpha := rr.Div(p.Mul(hp).Sum())
		next := r.Sub(hp.Mul(alpha))
		return tensors{d.Add(p.Mul(alpha)), next, next.Add(p.Mul(next.Square().Sum().Div(rr))), next.Abs().Amax()}
	})
	x := m.Full(1.2, n)
	for range 50 {
		out, err := slope.Call(ctx, x)
		if err != nil {
			return 0, 0, err
		}
		if gradient, err = out[1].Item(ctx); err != nil || gradient < 1e-10 {
			return gradient, products, err
		}
		d, r, p, left := m.Zeros(n), out[0], out[0], gradient
		for ; left > 1e-3*gradient; products++ {
			if out, err = step.Call(ctx, x, d, r, p); err != nil {
				return 0, 0, err
			}
			d, r, p = out[0], out[1], out[2]
			if left, err = out[3].Item(ctx); err != nil {
				return 0, 0, err
			}
		}
		x = x.Add(d)
	}
	return gradient, products, nil
}
